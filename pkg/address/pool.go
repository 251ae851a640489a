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
	places  *places
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
	c := &counted{Pool: p, places: placesOf(p), subnets: make([]usage, len(p.Subnets))}
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

// Overlaps returns for each pool that has addresses in common with others the names of these, in order. That is
// allowed, but each address is given once, so that what is free in one pool shrinks with what others give.
func Overlaps(pools []*Pool) map[string][]string {
	type part struct {
		Range
		pool string
	}
	var parts []part
	for _, p := range pools {
		for _, s := range p.Subnets {
			for _, r := range s.Addresses {
				parts = append(parts, part{r, p.Name})
			}
		}
	}
	slices.SortFunc(parts, func(a, b part) int { return a.First.Compare(b.First) })
	common := map[string][]string{}
	note := func(pool, other string) {
		if at, known := slices.BinarySearch(common[pool], other); !known {
			common[pool] = slices.Insert(common[pool], at, other)
		}
	}
	var open []part
	for _, p := range parts {
		open = slices.DeleteFunc(open, func(o part) bool { return o.Last.Less(p.First) })
		for _, o := range open {
			if o.pool != p.pool {
				note(p.pool, o.pool)
				note(o.pool, p.pool)
			}
		}
		open = append(open, p)
	}
	return common
}
