package address

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Plan is what a pod may have on which node, at one time. It is not safe for concurrent changes; Clone it.
type Plan struct {
	own      []Holding
	pool     string
	keys     []string
	free     map[Domain]uint64
	promised map[string]bool
	// planned are other pods that take an address on a node where the scheduler only tries them.
	planned map[string]Domain
}

// Plan works out what the pod may have. It says why if it can have nothing anywhere.
func (l *Ledger) Plan(ask *Ask) (*Plan, string) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if own := l.holdings(ask.Identities); len(own) > 0 {
		first := own[0].Address
		own = slices.DeleteFunc(own, func(h Holding) bool {
			pod, promised := l.promised[h.Address]
			return l.leaving[h.Address] || promised && pod != ask.Pod
		})
		if len(own) == 0 {
			return nil, fmt.Sprintf("address %s of the pod is being given back", first)
		}
		return &Plan{own: own}, ""
	}
	p, reason := l.pool(ask)
	if reason != "" {
		return nil, reason
	}
	plan := &Plan{pool: p.Name, free: map[Domain]uint64{}, promised: make(map[string]bool, len(l.promises))}
	for domain, u := range p.byDomain() {
		plan.free[domain] = u.Free
		if domain.Key != "" && !slices.Contains(plan.keys, domain.Key) {
			plan.keys = append(plan.keys, domain.Key)
		}
	}
	slices.Sort(plan.keys)
	for pod := range l.promises {
		plan.promised[pod] = true
	}
	return plan, ""
}

// byDomain adds up the subnets of each domain.
func (c *counted) byDomain() map[Domain]Usage {
	sums := map[Domain]Usage{}
	for i, s := range c.Subnets {
		u := sums[s.Domain]
		u.Free, u.Used = add(u.Free, c.subnets[i].free()), add(u.Used, c.subnets[i].used)
		sums[s.Domain] = u
	}
	return sums
}

func compareUsages(a, b *Usage) int {
	return cmp.Or(cmp.Compare(a.Pool, b.Pool), cmp.Compare(a.Domain.Key, b.Domain.Key), cmp.Compare(a.Domain.Value, b.Domain.Value))
}

// Clone returns a plan of its own.
func (p *Plan) Clone() *Plan {
	c := *p
	c.planned = maps.Clone(p.planned)
	return &c
}

// domainOf returns a domain of the node that has a free address; if none has, full is one without.
func (p *Plan) domainOf(labels map[string]string) (free, full Domain, hasFree, hasFull bool) {
	try := func(d Domain) {
		n, known := p.free[d]
		switch {
		case !known || hasFree:
		case n > p.takenIn(d):
			free, hasFree = d, true
		default:
			full, hasFull = d, true
		}
	}
	for _, key := range p.keys {
		try(Domain{key, labels[key]})
	}
	try(Domain{})
	return free, full, hasFree, hasFull
}

func (p *Plan) takenIn(d Domain) uint64 {
	var n uint64
	for _, other := range p.planned {
		if other == d {
			n++
		}
	}
	return n
}

// Refuses says why the pod can have no address on a node with the labels; empty if it can. The second result is set if
// that is for the sake of pods that are planned, and not settled.
func (p *Plan) Refuses(labels map[string]string) (reason string, planned bool) {
	if len(p.own) > 0 {
		if slices.ContainsFunc(p.own, func(h Holding) bool { return h.Domain.Holds(labels) }) {
			return "", false
		}
		texts := make([]string, len(p.own))
		for i, h := range p.own {
			texts[i] = fmt.Sprintf("%s (%s)", h.Address, h.Domain)
		}
		return "node(s) where the pod's address is not routable: " + strings.Join(texts, ", "), false
	}
	_, full, hasFree, hasFull := p.domainOf(labels)
	switch {
	case hasFree:
		return "", false
	case hasFull:
		return exhausted(p.pool, full), p.takenIn(full) > 0 && p.free[full] > 0
	}
	return outside(p.pool), false
}

func exhausted(pool string, d Domain) string {
	if d.Key == "" {
		return fmt.Sprintf("pool %s has no free address", pool)
	}
	return fmt.Sprintf("pool %s has no free address in domain %s", pool, d)
}

func outside(pool string) string { return fmt.Sprintf("node(s) outside the domains of pool %s", pool) }

// Add counts another pod that is tried on a node. Pods that have an address, or ask for another pool, take nothing.
func (p *Plan) Add(l *Ledger, other *Ask, labels map[string]string) {
	if len(p.own) > 0 || other.Pool != p.pool || p.promised[other.Pod] || l.Concerns(other.Identities) {
		return
	}
	if _, twice := p.planned[other.Pod]; twice {
		return
	}
	d, full, hasFree, hasFull := p.domainOf(labels)
	switch {
	case hasFree:
	case hasFull:
		d = full
	default:
		return
	}
	if p.planned == nil {
		p.planned = map[string]Domain{}
	}
	p.planned[other.Pod] = d
}

// Remove takes back what Add has counted. A pod that has its address keeps it: whether the address is free when the pod
// is gone is for its release policy to say.
func (p *Plan) Remove(pod string) { delete(p.planned, pod) }
