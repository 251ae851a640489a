package address

import (
	"fmt"
	"net/netip"
	"slices"
)

// Domain is the nodes with a label; without a key it is all nodes.
type Domain struct{ Key, Value string }

// Contains reports whether a node with the labels is in the domain.
func (d Domain) Contains(labels map[string]string) bool {
	return d.Key == "" || labels[d.Key] == d.Value
}

// String is how messages name the domain.
func (d Domain) String() string {
	if d.Key == "" {
		return "any node"
	}
	return d.Key + "=" + d.Value
}

// Pool is addresses that pods of some namespaces may have, by subnets. A subnet is addresses that are routable in one
// domain; it is named by its place in Domains.
type Pool struct {
	Name string
	// Domains are those of the subnets, in the order in which these are used.
	Domains []Domain
	// Namespaces may use the pool; all if there are none.
	Namespaces []string
	// Problem says why the pool cannot be used, if it cannot.
	Problem string

	// parts are the ranges of all subnets in ascending order. None has an address in common with another.
	parts []part
	// used is how many addresses of each subnet are taken; the ledger counts them.
	used []int64
}

// part is addresses of a subnet.
type part struct {
	Range

	subnet int
}

// Add adds addresses to a subnet. It fails if the pool has one of them already: an address would be routable in two
// domains, or count twice.
func (p *Pool) Add(subnet int, r Range) error {
	at, _ := p.search(r.First)
	for _, beside := range p.parts[max(at-1, 0):min(at+1, len(p.parts))] {
		if !beside.Last.Less(r.First) && !r.Last.Less(beside.First) {
			return fmt.Errorf("has addresses in common with %s-%s of subnets[%d]", beside.First, beside.Last, beside.subnet)
		}
	}
	p.parts = slices.Insert(p.parts, at, part{r, subnet})
	return nil
}

// search returns where a range that begins with the address is, or would be.
func (p *Pool) search(a netip.Addr) (at int, exact bool) {
	return slices.BinarySearchFunc(p.parts, a, func(s part, a netip.Addr) int { return s.First.Compare(a) })
}

// subnetOf returns the subnet that the address is of, false if the pool does not have it.
func (p *Pool) subnetOf(a netip.Addr) (subnet int, ok bool) {
	at, exact := p.search(a)
	if !exact {
		at--
	}
	if at < 0 || p.parts[at].Last.Less(a) {
		return 0, false
	}
	return p.parts[at].subnet, true
}

// count counts n more addresses as taken where the address is, if it is in the pool.
func (p *Pool) count(a netip.Addr, n int64) {
	if subnet, ok := p.subnetOf(a); ok {
		p.used[subnet] += n
	}
}

// free returns how many addresses of each subnet are not taken.
func (p *Pool) free() []int64 {
	n := make([]int64, len(p.Domains))
	for _, s := range p.parts {
		n[s.subnet] += s.size()
	}
	for i := range n {
		n[i] -= p.used[i]
	}
	return n
}

// lowest returns the lowest address of the subnet that is not taken, the zero address if all are.
func (p *Pool) lowest(subnet int, taken func(netip.Addr) bool) netip.Addr {
	for _, s := range p.parts {
		if s.subnet != subnet {
			continue
		}
		// After the last address of all, Next returns an invalid one, which is less than any other.
		for a := s.First; a.IsValid() && !s.Last.Less(a); a = a.Next() {
			if !taken(a) {
				return a
			}
		}
	}
	return netip.Addr{}
}
