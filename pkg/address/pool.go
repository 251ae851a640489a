package address

import (
	"net/netip"
	"slices"
)

// Domain is the nodes with a label; without a key it is all nodes.
type Domain struct{ Key, Value string }

// Holds reports whether a node with the labels is in the domain.
func (d Domain) Holds(labels map[string]string) bool {
	return d.Key == "" || labels[d.Key] == d.Value
}

// String is how messages name the domain.
func (d Domain) String() string {
	if d.Key == "" {
		return "any node"
	}
	return d.Key + "=" + d.Value
}

// Subnet is addresses that are routable in one domain.
type Subnet struct {
	Domain    Domain
	Addresses Set
}

// Pool is addresses that pods of some namespaces may have.
type Pool struct {
	Name    string
	Subnets []Subnet
	// Namespaces are all if there are none.
	Namespaces []string
	// Problem says why the pool cannot be used, if it cannot.
	Problem string
}

// Admits reports whether pods of the namespace may use the pool.
func (p *Pool) Admits(namespace string) bool {
	return len(p.Namespaces) == 0 || slices.Contains(p.Namespaces, namespace)
}

// counted is a pool with what is in use of it.
type counted struct {
	*Pool
	subnets []usage
}

// usage counts a subnet's addresses.
type usage struct {
	size, used uint64
	// lowest is below or at the lowest address that is free; the zero address is below all.
	lowest netip.Addr
}

func (u usage) free() uint64 { return u.size - min(u.size, u.used) }

// count counts the pool's addresses that are taken.
func count(p *Pool, taken func(func(netip.Addr))) *counted {
	c := &counted{Pool: p, subnets: make([]usage, len(p.Subnets))}
	for i, s := range p.Subnets {
		c.subnets[i].size = s.Addresses.Size()
	}
	taken(c.take)
	return c
}

func (c *counted) take(a netip.Addr) {
	for i := range c.subnets {
		if c.Subnets[i].Addresses.Contains(a) {
			c.subnets[i].used++
		}
	}
}

func (c *counted) giveBack(a netip.Addr) {
	for i := range c.subnets {
		if !c.Subnets[i].Addresses.Contains(a) {
			continue
		}
		u := &c.subnets[i]
		u.used--
		if a.Less(u.lowest) {
			u.lowest = a
		}
	}
}

// find returns the lowest free address of the subnet.
func (c *counted) find(i int, taken func(netip.Addr) bool) (netip.Addr, bool) {
	u, set := &c.subnets[i], c.Subnets[i].Addresses
	for {
		a, ok := set.from(u.lowest)
		if !ok {
			return netip.Addr{}, false
		}
		u.lowest = a
		if !taken(a) {
			return a, true
		}
		if u.lowest = a.Next(); !u.lowest.IsValid() {
			// It was the last address that there is.
			u.lowest = a
			return netip.Addr{}, false
		}
	}
}
