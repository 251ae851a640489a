package address

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Plan is what a pod may have on which node, at one time. It is not safe for concurrent changes; Clone it.
type Plan struct {
	own []Holding
	// elsewhere is the reason that nodes are given where none of the own addresses is routable.
	elsewhere string
	pool      string
	places    *places
	// free are the free addresses by subnet, taken those of them that planned pods take.
	free, taken []uint64
	promised    map[string]bool
	// planned are other pods that are to take an address, with the subnet that it is of.
	planned map[string]int
}

// places are the subnets of a pool by their domains. The reasons are made once: thousands of nodes are given the same.
type places struct {
	keys    []string
	subnets map[Domain][]int
	// full is the reason for a subnet without a free address, outside that for a node in none of the domains.
	full    []string
	outside string
}

func placesOf(p *Pool) *places {
	at := &places{subnets: map[Domain][]int{}, outside: outside(p.Name)}
	for i, s := range p.Subnets {
		at.subnets[s.Domain] = append(at.subnets[s.Domain], i)
		at.full = append(at.full, exhausted(p.Name, s.Domain))
		if s.Domain.Key != "" && !slices.Contains(at.keys, s.Domain.Key) {
			at.keys = append(at.keys, s.Domain.Key)
		}
	}
	return at
}

// Plan works out what the pod may have. It says why if it can have nothing anywhere.
func (l *Ledger) Plan(ask *Ask) (*Plan, string) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if reason := l.predecessor(ask); reason != "" {
		return nil, reason
	}
	if own := l.holdings(ask); len(own) > 0 {
		first := own[0].Address
		own = slices.DeleteFunc(own, func(h Holding) bool {
			pod, promised := l.promised[h.Address]
			return l.leaving[h.Address] || promised && pod != ask.Pod
		})
		if len(own) == 0 {
			return nil, fmt.Sprintf("address %s of the pod is being given back", first)
		}
		return &Plan{own: own, elsewhere: elsewhere(own)}, ""
	}
	p, reason := l.pool(ask)
	if reason != "" {
		return nil, reason
	}
	plan := &Plan{pool: p.Name, places: p.places, free: make([]uint64, len(p.subnets)),
		promised: make(map[string]bool, len(l.promises))}
	for i, u := range p.subnets {
		plan.free[i] = u.free()
	}
	for pod := range l.promises {
		plan.promised[pod] = true
	}
	return plan, ""
}

// Clone returns a plan of its own.
func (p *Plan) Clone() *Plan {
	c := *p
	c.planned, c.taken = maps.Clone(p.planned), slices.Clone(p.taken)
	return &c
}

// Hopeless reports whether the pod can have an address nowhere.
func (p *Plan) Hopeless() bool {
	return len(p.own) == 0 && !slices.ContainsFunc(p.free, func(n uint64) bool { return n > 0 })
}

// none is no subnet.
const none = -1

// subnetFor returns the subnet that Reserve takes an address of on a node with the labels, none if no address is free
// there. Full is then one without, and planned is set if a subnet would have one without the pods that are planned.
func (p *Plan) subnetFor(labels map[string]string) (free, full int, planned bool) {
	free, full = none, none
	try := func(d Domain) {
		for _, i := range p.places.subnets[d] {
			switch {
			case p.free[i] > p.takenOf(i):
				if free == none || i < free {
					free = i
				}
				return
			case full == none || i < full:
				full = i
			}
			planned = planned || p.free[i] > 0
		}
	}
	for _, key := range p.places.keys {
		try(Domain{key, labels[key]})
	}
	try(Domain{})
	return free, full, planned
}

func (p *Plan) takenOf(i int) uint64 {
	if p.taken == nil {
		return 0
	}
	return p.taken[i]
}

// Refuses says why the pod can have no address on a node with the labels; empty if it can. The second result is set if
// that is for the sake of pods that are planned, and not settled.
func (p *Plan) Refuses(labels map[string]string) (reason string, planned bool) {
	if len(p.own) > 0 {
		if slices.ContainsFunc(p.own, func(h Holding) bool { return h.Domain.Holds(labels) }) {
			return "", false
		}
		return p.elsewhere, false
	}
	free, full, planned := p.subnetFor(labels)
	switch {
	case free != none:
		return "", false
	case full != none:
		return p.places.full[full], planned
	}
	return p.places.outside, false
}

func elsewhere(own []Holding) string {
	texts := make([]string, len(own))
	for i, h := range own {
		texts[i] = fmt.Sprintf("%s (%s)", h.Address, h.Domain)
	}
	return "node(s) where the pod's address is not routable: " + strings.Join(texts, ", ")
}

func exhausted(pool string, d Domain) string {
	if d.Key == "" {
		return fmt.Sprintf("pool %s has no free address", pool)
	}
	return fmt.Sprintf("pool %s has no free address in domain %s", pool, d)
}

func outside(pool string) string { return fmt.Sprintf("node(s) outside the domains of pool %s", pool) }

// Add counts another pod that is to run on a node with the labels. Pods that have an address, or ask for another pool,
// take nothing. A pod that is counted already is counted there instead.
func (p *Plan) Add(l *Ledger, other *Ask, labels map[string]string) {
	if len(p.own) > 0 || other.Pool != p.pool || p.promised[other.Pod] || l.Concerns(other.Identities) {
		return
	}
	p.Remove(other.Pod)
	i, full, _ := p.subnetFor(labels)
	if i == none {
		i = full
	}
	if i == none {
		return
	}
	if p.planned == nil {
		p.planned, p.taken = map[string]int{}, make([]uint64, len(p.free))
	}
	p.planned[other.Pod] = i
	p.taken[i]++
}

// Remove takes back what Add has counted. A pod that has its address keeps it: whether the address is free when the pod
// is gone is for its release policy to say.
func (p *Plan) Remove(pod string) {
	if i, counted := p.planned[pod]; counted {
		delete(p.planned, pod)
		p.taken[i]--
	}
}
