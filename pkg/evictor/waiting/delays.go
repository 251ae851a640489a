package waiting

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// Delays owns since when gangs and pods do not fit that evict others only after a while, so that an autoscaler can add
// nodes instead. A scheduler that takes over begins again.
type Delays struct {
	mu      sync.Mutex
	delayed map[string]*delay
	// looked is when it was last looked whose time has come: many may wait.
	looked time.Time
}

// delay is that of one gang or pod.
type delay struct {
	of    For
	until time.Time
	over  bool
}

// Left is how long the gang or pod has to wait yet before others are evicted for it.
func (d *Delays) Left(r For, after time.Duration, now time.Time) time.Duration {
	if after == 0 {
		return 0
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	known := d.delayed[r.Name]
	if known == nil || r.Only != nil && known.of.Only.UID != r.Only.UID {
		if d.delayed == nil {
			d.delayed = map[string]*delay{}
		}
		known = &delay{of: r, until: now.Add(after)}
		d.delayed[r.Name] = known
	}
	return max(0, known.until.Sub(now))
}

// Over returns those whose time has come, once, and forgets those that need no room any more.
func (d *Delays) Over(needs func(For) bool, now time.Time) []For {
	d.mu.Lock()
	defer d.mu.Unlock()
	if now.Sub(d.looked) < LookEvery {
		return nil
	}
	d.looked = now
	var over []For
	for _, name := range slices.Sorted(maps.Keys(d.delayed)) {
		known := d.delayed[name]
		switch {
		case !needs(known.of):
			delete(d.delayed, name)
		case !known.over && !now.Before(known.until):
			known.over = true
			over = append(over, known.of)
		}
	}
	return over
}

// CapacityFirst says for how long capacity may come before pods are evicted.
func CapacityFirst(left time.Duration) string {
	return fmt.Sprintf("pods of lower priority are evicted for it in %s, unless capacity comes first",
		left.Round(time.Second))
}
