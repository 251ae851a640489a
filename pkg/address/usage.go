package address

import (
	"cmp"
	"slices"
)

// Usage is how much of a pool is in use in a domain.
type Usage struct {
	Pool       string
	Domain     Domain
	Free, Used uint64
}

// Plus adds up what two subnets of a pool have.
func (u Usage) Plus(o Usage) Usage {
	return Usage{Pool: o.Pool, Free: add(u.Free, o.Free), Used: add(u.Used, o.Used)}
}

// Size is how many addresses there are.
func (u Usage) Size() uint64 { return add(u.Free, u.Used) }

// Usages tells how much of each pool is in use, by pool and subnet.
func (l *Ledger) Usages() []Usage {
	l.mu.RLock()
	defer l.mu.RUnlock()
	var all []Usage
	for _, p := range l.pools {
		for domain, u := range p.byDomain() {
			u.Pool, u.Domain = p.Name, domain
			all = append(all, u)
		}
	}
	slices.SortFunc(all, func(a, b Usage) int { return compareUsages(&a, &b) })
	return all
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
	return cmp.Or(cmp.Compare(a.Pool, b.Pool), cmp.Compare(a.Domain.Key, b.Domain.Key),
		cmp.Compare(a.Domain.Value, b.Domain.Value))
}
