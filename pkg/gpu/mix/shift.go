package mix

import (
	"math"
	"slices"
)

const (
	// windowPods is how many GPU pods the latest are, and comparedEvery after how many they are compared with those
	// before them.
	windowPods, comparedEvery = 64, 4
	// fewestPods is how many must have come before them for a comparison.
	fewestPods = 32
	// fewestOfKind is how many of the latest pods a kind must be expected to have; the rest count as one kind.
	fewestOfKind = 1.5
	// shiftedPods is as how many arrivals all that is known counts once the work has changed.
	shiftedPods = 16
)

// workKind is what must stay the same of GPU pods for the work to be the same: about what they take, and where.
type workKind struct {
	gpus, quarters, cpu int
	models              string
	minMemMiB           int
	linked              bool
}

// kindCount counts the pods of a kind: of the latest, and of those before them.
type kindCount struct {
	workKind
	recent, before float64
}

// shift notices that the work is no longer what it was: that the GPU pods that came last are of other kinds, beyond
// chance, than those before them.
type shift struct {
	// latest is a ring. total is how many pods have left it; they fade.
	latest       [windowPods]workKind
	next, filled int
	// kinds are in the order in which they came, so that sums are the same from run to run.
	kinds []kindCount
	total float64
}

// observe counts a pod and returns true if the work has changed. It then begins again with no pod.
func (s *shift) observe(c Class) bool {
	if c.Count == 0 || c.Slices != "" {
		return false
	}
	if s.filled == windowPods {
		old := s.of(s.latest[s.next])
		old.recent--
		old.before++
		s.total++
	} else {
		s.filled++
	}
	cpu := cpuStep(float64(c.CPUMilli)/float64(c.Count)) / cpuSteps
	s.latest[s.next] = workKind{c.Count, 4 * c.Milli / WholeMilli, cpu, c.Models, c.MinMemMiB, c.Linked}
	s.of(s.latest[s.next]).recent++
	s.next = (s.next + 1) % windowPods
	if s.total > mixHalfLife {
		s.fade()
	}
	if s.filled < windowPods || s.total < fewestPods || s.next%comparedEvery != 0 || !s.changed() {
		return false
	}
	*s = shift{}
	return true
}

func (s *shift) of(k workKind) *kindCount {
	i := slices.IndexFunc(s.kinds, func(t kindCount) bool { return t.workKind == k })
	if i < 0 {
		i = len(s.kinds)
		s.kinds = append(s.kinds, kindCount{workKind: k})
	}
	return &s.kinds[i]
}

// fade halves what came before, and forgets kinds that have all but faded.
func (s *shift) fade() {
	s.total = 0
	s.kinds = slices.DeleteFunc(s.kinds, func(t kindCount) bool { return t.recent == 0 && t.before < 1 })
	for i := range s.kinds {
		s.kinds[i].before /= 2
		s.total += s.kinds[i].before
	}
}

// changed is a chi-squared test of whether both are drawn from one mix. Its limit is far above chance, about one in a
// million, because it is made so often.
func (s *shift) changed() bool {
	all := windowPods + s.total
	sum, free := 0.0, -1.0
	add := func(t *kindCount) {
		if t.recent+t.before > 0 {
			differs := t.recent/windowPods - t.before/s.total
			sum += differs * differs / ((t.recent + t.before) / all * (1.0/windowPods + 1/s.total))
			free++
		}
	}
	var rest kindCount
	for i := range s.kinds {
		if t := &s.kinds[i]; (t.recent+t.before)/all*windowPods >= fewestOfKind {
			add(t)
		} else {
			rest.recent += t.recent
			rest.before += t.before
		}
	}
	add(&rest)
	return sum > free+6*math.Sqrt(2*max(0, free))+10
}
