package gang

import "slices"

// evictPools is the state of the pools in the search for victims.
type evictPools struct {
	p *EvictProblem
	// left is what they have after the evictions and the placement, emptied when all units are gone.
	left, emptied []int64
	// holders are, by pool, the units that hold some, the least important first.
	holders [][]int
}

func newEvictPools(s *evictSearch) evictPools {
	e := evictPools{p: s.p, holders: make([][]int, len(s.p.Pools))}
	for _, pool := range s.p.Pools {
		e.left = append(e.left, pool.Free)
	}
	e.emptied = slices.Clone(e.left)
	for _, i := range s.importance {
		for pool, amount := range s.units[i].holdsAll {
			if amount > 0 {
				e.holders[pool] = append(e.holders[pool], i)
			}
			e.emptied[pool] += s.units[i].holds[pool]
		}
	}
	return e
}

// covers reports whether members on the node hold something of the pool.
func (e *evictPools) covers(pool, node int) bool {
	c := e.p.Pools[pool].Covers
	return c == nil || node < len(c) && c[node]
}

// askedHolders returns the units that hold something for which a class asks.
func (s *evictSearch) askedHolders() []int {
	var units []int
	for pool, holders := range s.pools.holders {
		if slices.ContainsFunc(s.classes, func(c evictSearchClass) bool { return c.asks[pool] > 0 }) {
			units = append(units, holders...)
		}
	}
	return units
}

// shortOfPools notes what is missing of the pools for a member on the node.
func (s *evictSearch) shortOfPools(class, node int) {
	for pool, amount := range s.classes[class].asks {
		at := s.dims + pool
		s.work.freed[at], s.work.short[at] = 0, 0
		if left := s.pools.left[pool]; amount > left && amount > 0 && s.pools.covers(pool, node) {
			s.work.short[at] = amount - left
		}
	}
}

// elsewhere calls yield for the units that are not on the node and hold what is short.
func (s *evictSearch) elsewhere(node int, yield func(unit int)) {
	short := s.work.short[s.dims:]
	for pool, holders := range s.pools.holders {
		if short[pool] == 0 {
			continue
		}
		for _, i := range holders {
			u := &s.units[i]
			seen := slices.ContainsFunc(u.parts, func(part unitPart) bool { return part.node == node })
			for earlier := 0; earlier < pool && !seen; earlier++ {
				seen = short[earlier] > 0 && u.holdsAll[earlier] > 0
			}
			if !seen {
				yield(i)
			}
		}
	}
}

// displaceHolders takes members off nodes until no pool is overcommitted.
func (s *evictSearch) displaceHolders() {
	for pool := range s.pools.left {
		for _, class := range s.easiest {
			for _, n := range s.nodes {
				for s.pools.left[pool] < 0 && s.classes[class].asks[pool] > 0 && s.placed[class][n] > 0 && s.pools.covers(pool, n) {
					s.assign(class, n, -1)
				}
			}
		}
	}
}
