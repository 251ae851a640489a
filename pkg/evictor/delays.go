package evictor

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// delays owns since when gangs and pods do not fit that evict others only after a while, so that an autoscaler can add
// nodes instead. A scheduler that takes over begins again.
type delays struct {
	mu      sync.Mutex
	delayed map[string]*delay
	// looked is when it was last looked whose time has come: many may wait.
	looked time.Time
}

// delay is that of one gang or pod.
type delay struct {
	request *request
	until   time.Time
	over    bool
}

// left is how long the gang or pod has to wait yet before others are evicted for it.
func (d *delays) left(r *request, after time.Duration, now time.Time) time.Duration {
	if after == 0 {
		return 0
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	known := d.delayed[r.name]
	if known == nil || r.only != nil && known.request.only.UID != r.only.UID {
		if d.delayed == nil {
			d.delayed = map[string]*delay{}
		}
		// What all nodes say of it is large, and out of date by then.
		known = &delay{request: &request{name: r.name, id: r.id, only: r.only}, until: now.Add(after)}
		d.delayed[r.name] = known
	}
	return max(0, known.until.Sub(now))
}

// over returns those whose time has come, once, and forgets those that need no room any more.
func (d *delays) over(needs func(*request) bool, now time.Time) []*request {
	d.mu.Lock()
	defer d.mu.Unlock()
	if now.Sub(d.looked) < lookEvery {
		return nil
	}
	d.looked = now
	var over []*request
	for _, name := range slices.Sorted(maps.Keys(d.delayed)) {
		known := d.delayed[name]
		switch {
		case !needs(known.request):
			delete(d.delayed, name)
		case !known.over && !now.Before(known.until):
			known.over = true
			over = append(over, known.request)
		}
	}
	return over
}

// capacityFirst says for how long capacity may come before pods are evicted.
func capacityFirst(left time.Duration) string {
	return fmt.Sprintf("pods of lower priority are evicted for it in %s, unless capacity comes first",
		left.Round(time.Second))
}
