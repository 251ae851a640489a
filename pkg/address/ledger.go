package address

import (
	"fmt"
	"net/netip"
	"slices"
	"sync"
)

// PodName names the pod that an address is for, which may be deleted and come back under its name.
type PodName struct{ Namespace, Name string }

// Reservation is an IPReservation that exists.
type Reservation struct {
	Address netip.Addr
	// Object tells this reservation from later ones of the same address.
	Object string
	Domain Domain
	Pod    PodName
}

// Ask is a pod's request for an address.
type Ask struct {
	UID string
	Pod PodName
	// Pool is empty for a pod that asks for none.
	Pool string
}

// Promise is an address that a pod is about to get.
type Promise struct {
	// Reservation is the reservation; without an Object it is yet to be created.
	Reservation

	UID  string
	Pool string
}

// Ledger records which pod has which address. It is safe for concurrent use; make it with NewLedger.
type Ledger struct {
	mu       sync.RWMutex
	pools    map[string]*Pool
	reserved map[netip.Addr]Reservation
	// byPod are the reserved addresses of a pod in ascending order.
	byPod map[PodName][]netip.Addr
	// promises are few, those of pods that are about to be bound, and are searched one by one.
	promises map[netip.Addr]Promise
}

// NewLedger returns an empty ledger.
func NewLedger() *Ledger {
	return &Ledger{pools: map[string]*Pool{}, reserved: map[netip.Addr]Reservation{}, byPod: map[PodName][]netip.Addr{},
		promises: map[netip.Addr]Promise{}}
}

// SetPools replaces all pools.
func (l *Ledger) SetPools(pools []*Pool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pools = make(map[string]*Pool, len(pools))
	for _, p := range pools {
		p.used = make([]int64, len(p.Domains))
		for a := range l.reserved {
			p.count(a, 1)
		}
		for a := range l.promises {
			if _, both := l.reserved[a]; !both {
				p.count(a, 1)
			}
		}
		l.pools[p.Name] = p
	}
}

// taken reports whether the address is reserved or promised.
func (l *Ledger) taken(a netip.Addr) bool {
	_, reserved := l.reserved[a]
	_, promised := l.promises[a]
	return reserved || promised
}

// change runs f, which takes or frees the address, and counts the difference.
func (l *Ledger) change(a netip.Addr, f func()) {
	before := l.taken(a)
	f()
	after := l.taken(a)
	for _, p := range l.pools {
		switch {
		case after && !before:
			p.count(a, 1)
		case before && !after:
			p.count(a, -1)
		}
	}
}

// Observe records a reservation that exists, and reports whether that changes anything.
func (l *Ledger) Observe(h Reservation) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	before, known := l.reserved[h.Address]
	if before == h {
		return false
	}
	l.change(h.Address, func() {
		if known {
			l.forget(before)
		}
		l.reserved[h.Address] = h
		addresses := append(l.byPod[h.Pod], h.Address)
		slices.SortFunc(addresses, netip.Addr.Compare)
		l.byPod[h.Pod] = addresses
	})
	return true
}

// Forget removes a reservation that is gone, and reports whether it was known: the deletion of an earlier reservation
// of the same address frees nothing.
func (l *Ledger) Forget(a netip.Addr, object string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	h, known := l.reserved[a]
	if !known || h.Object != object {
		return false
	}
	l.change(a, func() { l.forget(h) })
	return true
}

func (l *Ledger) forget(h Reservation) {
	delete(l.reserved, h.Address)
	left := slices.DeleteFunc(l.byPod[h.Pod], func(a netip.Addr) bool { return a == h.Address })
	if len(left) == 0 {
		delete(l.byPod, h.Pod)
		return
	}
	l.byPod[h.Pod] = left
}

// HasReservation reports whether there is a reservation for the pod.
func (l *Ledger) HasReservation(pod PodName) bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return len(l.byPod[pod]) > 0
}

// Reserve promises an address to the pod that is routable on a node with the labels, or says why not. A pod that has
// reservations gets one of these and no other address.
func (l *Ledger) Reserve(ask *Ask, labels map[string]string) (Promise, string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop(ask.UID)
	plan, reason := l.plan(ask)
	if reason == "" {
		reason, _ = plan.Refuses(labels)
	}
	if reason != "" {
		return Promise{}, reason
	}
	subnet, _ := plan.subnet(labels)
	p := Promise{UID: ask.UID}
	if plan.pool == nil {
		p.Reservation = plan.own[subnet]
	} else {
		p.Pool = plan.pool.Name
		p.Reservation = Reservation{Address: plan.pool.lowest(subnet, l.taken), Domain: plan.domains[subnet], Pod: ask.Pod}
	}
	l.change(p.Address, func() { l.promises[p.Address] = p })
	return p, ""
}

// pool returns the pool that the pod asks for, or says why it cannot have addresses of it.
func (l *Ledger) pool(ask *Ask) (*Pool, string) {
	p := l.pools[ask.Pool]
	switch {
	case p == nil:
		return nil, fmt.Sprintf("there is no IPPool %s", ask.Pool)
	case p.Problem != "":
		return nil, fmt.Sprintf("pool %s cannot be used: %s", ask.Pool, p.Problem)
	case len(p.Namespaces) > 0 && !slices.Contains(p.Namespaces, ask.Pod.Namespace):
		return nil, fmt.Sprintf("pool %s is not for pods of namespace %s", ask.Pool, ask.Pod.Namespace)
	}
	return p, ""
}

// Promised returns what is promised to the pod.
func (l *Ledger) Promised(uid string) (Promise, bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.promised(uid)
}

func (l *Ledger) promised(uid string) (Promise, bool) {
	for _, p := range l.promises {
		if p.UID == uid {
			return p, true
		}
	}
	return Promise{}, false
}

// Drop ends the promise to the pod, once it is kept or not needed. A reservation that exists stays.
func (l *Ledger) Drop(uid string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.drop(uid)
}

func (l *Ledger) drop(uid string) bool {
	p, ok := l.promised(uid)
	if ok {
		l.change(p.Address, func() { delete(l.promises, p.Address) })
	}
	return ok
}

// Place is a domain of a pool.
type Place struct {
	Pool   string
	Domain Domain
}

// Usage is how many addresses there are.
type Usage struct{ Free, Used int64 }

// Usages returns how much of each pool is in use, by domain.
func (l *Ledger) Usages() map[Place]Usage {
	l.mu.RLock()
	defer l.mu.RUnlock()
	all := map[Place]Usage{}
	for _, p := range l.pools {
		free := p.free()
		for i, d := range p.Domains {
			at := Place{p.Name, d}
			all[at] = Usage{Free: all[at].Free + free[i], Used: all[at].Used + p.used[i]}
		}
	}
	return all
}
