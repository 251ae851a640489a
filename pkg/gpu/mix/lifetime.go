package mix

import "time"

const (
	// lifetimePrior is as how many pods that ran as long as all do a class counts until its own have ended.
	lifetimePrior = 8
	// shortestPart bounds how little the arrivals of a class count whose pods end at once.
	shortestPart = 1.0 / 64
	// lifetimeMemory is after how many ends all of them count half.
	lifetimeMemory = 8192
)

// lifetimes tell how long the pods of each class run. An arrival is demand for as long as the pod runs: a CronJob that
// fails every minute arrives more often than everything else, and holds nothing.
type lifetimes struct {
	byClass map[Class]*lifetime
	all     lifetime
	// now is the latest time that was heard of.
	now time.Time
}

// lifetime is that of some pods.
type lifetime struct {
	running int
	// began is the sum of the times at which those began that run, ran that of the times for which those ran that have
	// ended; in seconds.
	began, ran float64
	ended      float64
}

// exposure is how long pods have run in sum, those that still run included.
func (l *lifetime) exposure(now float64) float64 {
	return l.ran + max(0, float64(l.running)*now-l.began)
}

func (l *lifetimes) hear(at time.Time) {
	if at.After(l.now) {
		l.now = at
	}
}

func (l *lifetimes) of(c Class) *lifetime {
	if l.byClass == nil {
		l.byClass = map[Class]*lifetime{}
	}
	if l.byClass[c] == nil {
		l.byClass[c] = &lifetime{}
	}
	return l.byClass[c]
}

func (l *lifetimes) started(c Class, at time.Time) {
	l.hear(at)
	l.of(c).start(at)
	l.all.start(at)
}

func (l *lifetime) start(at time.Time) {
	l.running++
	l.began += seconds(at)
}

func (l *lifetime) end(began, at time.Time) {
	l.running--
	l.began -= seconds(began)
	l.ran += max(0, at.Sub(began).Seconds())
	l.ended++
}

func (l *lifetimes) ended(c Class, began, at time.Time) {
	l.hear(at)
	of := l.byClass[c]
	if of == nil || of.running == 0 {
		return // It began unseen.
	}
	of.end(began, at)
	l.all.end(began, at)
	if l.all.ended > lifetimeMemory {
		for _, t := range l.byClass {
			t.ran, t.ended = t.ran/2, t.ended/2
		}
		l.all.ran, l.all.ended = l.all.ran/2, l.all.ended/2
	}
}

// part is how much an arrival of the class counts, from shortestPart to 1: the mean time that its pods run, as a part
// of that of all. The mean is what all pods have run, divided by how many have ended: with lifetimes that are
// exponential this is the estimate of the greatest likelihood, and it needs no pod to have ended. Classes that run
// longer than the mean count no more for it: that a pod has not ended yet says little while a cluster fills.
func (l *lifetimes) part(c Class) float64 {
	t := l.byClass[c]
	if t == nil || t.ended == 0 {
		return 1
	}
	now := seconds(l.now)
	mean := l.all.exposure(now) / l.all.ended
	if mean <= 0 {
		return 1
	}
	own := (t.exposure(now) + lifetimePrior*mean) / (t.ended + lifetimePrior)
	return min(1, max(shortestPart, own/mean))
}

// knows reports whether pods of the class were counted.
func (l *lifetimes) knows(c Class) bool { return l.byClass[c] != nil }

// merge counts each class as another. The sum of all stays as it is.
func (l *lifetimes) merge(as func(Class) Class) {
	before := l.byClass
	l.byClass = make(map[Class]*lifetime, len(before))
	for _, c := range inOrder(before) {
		t, into := before[c], l.of(as(c))
		into.running += t.running
		into.began += t.began
		into.ran += t.ran
		into.ended += t.ended
	}
}

// forget drops a class without running pods.
func (l *lifetimes) forget(c Class) {
	if t := l.byClass[c]; t != nil && t.running == 0 {
		l.all.ran -= t.ran
		l.all.ended -= t.ended
		delete(l.byClass, c)
	}
}

// epoch keeps seconds small enough for sums of them to be exact to the millisecond.
var epoch = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

func seconds(t time.Time) float64 { return t.Sub(epoch).Seconds() }
