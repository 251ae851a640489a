package main

import (
	"fmt"
	"hash/fnv"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"berth.dev/berth/pkg/lab/simulation/memapi"
	"berth.dev/berth/test/histories/history"
)

// userAgent is that of the steps, which no weather touches.
const userAgent = "histories"

// noticed is how long it takes at most to notice that no answer comes.
const noticed = time.Second

// weather delays and loses by chance. What happens to a request depends on the seed, its path and how many there have
// been to the same path, not on which goroutine comes first.
type weather struct {
	seed        uint64
	lostPercent int
	maxDelay    time.Duration
	calm        atomic.Bool

	mu     sync.Mutex
	seen   map[string]uint64
	events uint64
}

func newWeather(h *history.History) *weather {
	return &weather{seed: h.Seed, lostPercent: h.LostPercent, maxDelay: time.Duration(h.MaxDelayMillis) * time.Millisecond,
		seen: map[string]uint64{}}
}

// underWay is how long it takes at most from the decision about a pod, which may be made before an event that is late,
// to its binding: the scheduler writes devices, claims and nominations before, and each request and its answer may be
// late.
func (w *weather) underWay() time.Duration {
	longest := 100*time.Millisecond + 10*w.maxDelay
	if w.lostPercent > 0 {
		longest += noticed + 2*w.maxDelay
	}
	return longest
}

// roll is a number that looks random.
func (w *weather) roll(of string, n uint64) uint64 {
	hash := fnv.New64a()
	_, _ = fmt.Fprint(hash, w.seed, of, n)
	x := hash.Sum64()
	// The last step of splitmix64: FNV leaves the high bits of short texts alike.
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func (w *weather) delay(roll uint64) time.Duration {
	if w.maxDelay == 0 || w.calm.Load() {
		return 0
	}
	return time.Duration(roll % uint64(w.maxDelay)) //nolint:gosec // less than maxDelay
}

// Request implements memapi.Network.
func (w *weather) Request(req *http.Request) (there, back time.Duration, delivery memapi.Delivery) {
	if req.UserAgent() == userAgent || w.calm.Load() {
		return 0, 0, memapi.Delivered
	}
	to := req.Method + req.URL.Path
	w.mu.Lock()
	n := w.seen[to]
	w.seen[to]++
	w.mu.Unlock()
	back = w.delay(w.roll("back"+to, n))
	if lost := w.roll("lost"+to, n); int(lost%100) < w.lostPercent { //nolint:gosec // less than 100
		delivery = memapi.RequestLost
		if lost>>32%2 == 0 {
			delivery = memapi.ResponseLost
		}
		back = time.Duration(lost >> 8 % uint64(noticed+2*w.maxDelay)) //nolint:gosec // less than that
	}
	return w.delay(w.roll("there"+to, n)), back, delivery
}

// Event implements memapi.Network.
func (w *weather) Event() time.Duration {
	w.mu.Lock()
	w.events++
	n := w.events
	w.mu.Unlock()
	return w.delay(w.roll("event", n))
}
