package address

import (
	"fmt"
	"net/netip"
	"slices"
	"sync"
)

// Identity is who an address is for: a pod that may be deleted and come back. Either StatefulSet and Ordinal are set or
// Pod.
type Identity struct {
	Namespace, StatefulSet string
	Ordinal                int32
	Pod                    string
}

// Holding is a reservation that exists.
type Holding struct {
	Address netip.Addr
	// Object tells this reservation from later ones of the same address.
	Object string
	// Version grows with each change of any reservation; 0 if it is not known.
	Version  uint64
	Pool     string
	Domain   Domain
	Identity Identity
	// Pod is the UID of the pod that was given the address last.
	Pod string
}

// Ask is what a pod wants.
type Ask struct {
	// Pod is its UID.
	Pod        string
	Namespace  string
	Identities []Identity
	// Pool is empty for a pod that asks for none.
	Pool string
}

// Promise is an address that a pod is about to get.
type Promise struct {
	Address netip.Addr
	Pool    string
	Domain  Domain
	// Object is the reservation that exists already; empty if one is to be made.
	Object string
	// identities are those of the pod.
	identities []Identity
}

// Ledger knows who has which address. It is safe for concurrent use; the zero Ledger is empty.
type Ledger struct {
	mu         sync.RWMutex
	pools      map[string]*counted
	held       map[netip.Addr]Holding
	byIdentity map[Identity][]netip.Addr
	promises   map[string]Promise
	promised   map[netip.Addr]string
	// promisedTo are the pods that an address is promised to, by their identities.
	promisedTo map[Identity]string
	// ranWith is the address that the last pod of an identity has run with.
	ranWith map[Identity]netip.Addr
	// leaving are addresses whose reservation is being deleted.
	leaving map[netip.Addr]bool
}

// SetPools replaces all pools.
func (l *Ledger) SetPools(pools []*Pool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pools = make(map[string]*counted, len(pools))
	for _, p := range pools {
		l.pools[p.Name] = count(p, func(take func(netip.Addr)) {
			for a := range l.held {
				take(a)
			}
			for a := range l.promised {
				if _, both := l.held[a]; !both {
					take(a)
				}
			}
		})
	}
}

// taken reports whether the address is reserved or promised.
func (l *Ledger) taken(a netip.Addr) bool {
	_, held := l.held[a]
	_, promised := l.promised[a]
	return held || promised
}

// change runs f, which takes or gives back the address, and counts what it did.
func (l *Ledger) change(a netip.Addr, f func()) {
	before := l.taken(a)
	f()
	after := l.taken(a)
	for _, p := range l.pools {
		switch {
		case after && !before:
			p.take(a)
		case before && !after:
			p.giveBack(a)
		}
	}
}

// Observe notes a reservation that exists, and reports whether that changes who may have which address where. What is
// older than what is known of the address changes nothing: news of different sources overtake each other.
func (l *Ledger) Observe(h Holding) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held == nil {
		l.held, l.byIdentity = map[netip.Addr]Holding{}, map[Identity][]netip.Addr{}
	}
	before, known := l.held[h.Address]
	if known && h.Version < before.Version {
		return false
	}
	l.change(h.Address, func() {
		if known {
			l.forgetIdentity(before)
			if before.Object != h.Object {
				delete(l.leaving, h.Address)
				l.forgetRan(before)
			}
		}
		l.held[h.Address] = h
		addresses := append(l.byIdentity[h.Identity], h.Address)
		slices.SortFunc(addresses, netip.Addr.Compare)
		l.byIdentity[h.Identity] = addresses
	})
	before.Version, before.Pod = h.Version, h.Pod
	return before != h
}

func (l *Ledger) forgetIdentity(h Holding) {
	left := slices.DeleteFunc(l.byIdentity[h.Identity], func(a netip.Addr) bool { return a == h.Address })
	if len(left) == 0 {
		delete(l.byIdentity, h.Identity)
		return
	}
	l.byIdentity[h.Identity] = left
}

// forgetRan forgets that a pod ran with a reservation that is gone.
func (l *Ledger) forgetRan(h Holding) {
	if l.ranWith[h.Identity] == h.Address {
		delete(l.ranWith, h.Identity)
	}
}

// Forget notes that a reservation is gone, and reports whether it was known: what is told of an earlier one of the same
// address frees nothing.
func (l *Ledger) Forget(a netip.Addr, object string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	h, known := l.held[a]
	if !known || h.Object != object {
		return false
	}
	l.change(a, func() {
		l.forgetIdentity(h)
		delete(l.held, a)
		delete(l.leaving, a)
	})
	l.forgetRan(h)
	// A promise of what is gone is kept by making it again.
	if pod, ok := l.promised[a]; ok {
		p := l.promises[pod]
		p.Object = ""
		l.promises[pod] = p
	}
	return true
}

// Held returns the reservation of the address.
func (l *Ledger) Held(a netip.Addr) (Holding, bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	h, known := l.held[a]
	return h, known
}

// HeldBy returns the reservations for the identity.
func (l *Ledger) HeldBy(who Identity) []Holding {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.holdings(&Ask{Identities: []Identity{who}})
}

// BeginRelease keeps a reservation from being promised while it is deleted. It reports false if a pod is about to get
// the address, or if the reservation is not known.
func (l *Ledger) BeginRelease(a netip.Addr, object string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if h, known := l.held[a]; !known || h.Object != object {
		return false
	}
	if _, promised := l.promised[a]; promised {
		return false
	}
	if l.leaving == nil {
		l.leaving = map[netip.Addr]bool{}
	}
	l.leaving[a] = true
	return true
}

// EndRelease says that the reservation was not deleted.
func (l *Ledger) EndRelease(a netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.leaving, a)
}

// Concerns reports whether there is a reservation for one of the identities.
func (l *Ledger) Concerns(identities []Identity) bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return slices.ContainsFunc(identities, func(i Identity) bool { return len(l.byIdentity[i]) > 0 })
}

// Count returns how many reservations there are for the identities.
func (l *Ledger) Count(identities []Identity) int {
	l.mu.RLock()
	defer l.mu.RUnlock()
	n := 0
	for _, i := range identities {
		n += len(l.byIdentity[i])
	}
	return n
}

// Empty reports whether there are no reservations, so that only pods that name a pool are concerned.
func (l *Ledger) Empty() bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return len(l.held) == 0
}

// Ran notes that a pod of the identities has run. Which of several reservations it ran with is not known from these
// alone: one may have been made for a pod that was deleted before it could run.
func (l *Ledger) Ran(identities []Identity, pod string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, i := range identities {
		for _, a := range l.byIdentity[i] {
			if l.held[a].Pod == pod {
				if l.ranWith == nil {
					l.ranWith = map[Identity]netip.Addr{}
				}
				l.ranWith[i] = a
			}
		}
	}
}

// holdings returns the reservations for the pod, in the order in which they are preferred: what the pod was given
// already before what the last pod of its identity ran with, and that before what an earlier pod had.
func (l *Ledger) holdings(ask *Ask) []Holding {
	var found []Holding
	for _, i := range ask.Identities {
		for _, a := range l.byIdentity[i] {
			found = append(found, l.held[a])
		}
	}
	if len(found) > 1 {
		rank := func(h Holding) int {
			switch {
			case h.Pod == ask.Pod:
				return 0
			case l.ranWith[h.Identity] == h.Address:
				return 1
			}
			return 2
		}
		slices.SortStableFunc(found, func(a, b Holding) int { return rank(a) - rank(b) })
	}
	return found
}

// predecessor says why the pod waits if an address is promised to another pod of its identity, empty if none is. One of
// a deleted pod may still be written, and its successor is to get that one, not another.
func (l *Ledger) predecessor(ask *Ask) string {
	for _, i := range ask.Identities {
		if pod, ok := l.promisedTo[i]; ok && pod != ask.Pod {
			return fmt.Sprintf("address %s is promised to an earlier pod of the same name, whose binding has not ended",
				l.promises[pod].Address)
		}
	}
	return ""
}

// Reserve promises an address to the pod that is routable on a node with the labels, or says why not. A pod that has
// reservations gets one of these and no other address, and a pod whose predecessor is promised one waits.
func (l *Ledger) Reserve(ask *Ask, labels map[string]string) (Promise, string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop(ask.Pod)
	if reason := l.predecessor(ask); reason != "" {
		return Promise{}, reason
	}
	if own := l.holdings(ask); len(own) > 0 {
		for _, h := range own {
			if _, promised := l.promised[h.Address]; !promised && !l.leaving[h.Address] && h.Domain.Holds(labels) {
				return l.promise(ask, Promise{Address: h.Address, Pool: h.Pool, Domain: h.Domain, Object: h.Object}), ""
			}
		}
		return Promise{}, fmt.Sprintf("address %s of the pod is not free, or not routable on the node", own[0].Address)
	}
	p, reason := l.pool(ask)
	if reason != "" {
		return Promise{}, reason
	}
	full := ""
	for i, s := range p.Subnets {
		if !s.Domain.Holds(labels) {
			continue
		}
		if a, ok := p.find(i, l.taken); ok {
			return l.promise(ask, Promise{Address: a, Pool: p.Name, Domain: s.Domain}), ""
		}
		if full == "" {
			full = exhausted(p.Name, s.Domain)
		}
	}
	if full == "" {
		full = outside(p.Name)
	}
	return Promise{}, full
}

// pool returns the pool that the pod asks for, or says why it cannot have addresses of it.
func (l *Ledger) pool(ask *Ask) (*counted, string) {
	p := l.pools[ask.Pool]
	switch {
	case p == nil:
		return nil, fmt.Sprintf("there is no IPPool %s", ask.Pool)
	case p.Problem != "":
		return nil, fmt.Sprintf("pool %s cannot be used: %s", ask.Pool, p.Problem)
	case !p.Admits(ask.Namespace):
		return nil, fmt.Sprintf("pool %s is not for pods of namespace %s", ask.Pool, ask.Namespace)
	}
	return p, ""
}

func (l *Ledger) promise(ask *Ask, p Promise) Promise {
	if l.promises == nil {
		l.promises, l.promised, l.promisedTo = map[string]Promise{}, map[netip.Addr]string{}, map[Identity]string{}
	}
	p.identities = ask.Identities
	l.change(p.Address, func() { l.promises[ask.Pod], l.promised[p.Address] = p, ask.Pod })
	for _, i := range ask.Identities {
		l.promisedTo[i] = ask.Pod
	}
	return p
}

// Promised returns what is promised to the pod.
func (l *Ledger) Promised(pod string) (Promise, bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	p, ok := l.promises[pod]
	return p, ok
}

// Drop ends the promise to the pod: it is kept, or the pod does not need it. A reservation that exists stays.
func (l *Ledger) Drop(pod string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.drop(pod)
}

func (l *Ledger) drop(pod string) bool {
	p, ok := l.promises[pod]
	if !ok {
		return false
	}
	l.change(p.Address, func() {
		delete(l.promises, pod)
		delete(l.promised, p.Address)
	})
	for _, i := range p.identities {
		delete(l.promisedTo, i)
	}
	return true
}
