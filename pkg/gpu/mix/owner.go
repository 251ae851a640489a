package mix

import (
	"maps"
	"slices"
	"time"
)

const (
	// mostOwners bounds how many owners are told apart. The least are left out: they are not those that must be kept
	// within bounds.
	mostOwners = 1024
	// leastOfOwner bounds how little a pod counts of an owner to which nearly all belong.
	leastOfOwner = 1.0 / 8
)

// Owner is who made a pod: its namespace, and in it the controller, empty for none.
type Owner struct{ Namespace, Controller string }

// owners keep one controller, and one namespace, that make more pods than all others together from being taken for the
// workload.
type owners struct {
	controllers, namespaces shares
	lives                   map[string]*lifetime
}

// part counts an arrival of that weight and returns how much of it is to count. A controller with more than half of all
// pods counts as one with half. So does a namespace, unless its pods run as long as those of the others: most of the
// work of a cluster may be one team's, but pods that come and go in numbers are no reason to place all others for them.
func (o *owners) part(of Owner, weight float64, now time.Time) float64 {
	part := 1.0
	if s := o.controllers.add(of.Controller, weight); of.Controller != "" {
		part = halved(s)
	}
	if half := halved(o.namespaces.add(of.Namespace, weight)); half < 1 {
		part = min(part, max(half, min(1, o.relativeLife(of.Namespace, seconds(now)))))
	}
	return part
}

// halved is by what the arrivals of an owner with that share count so that it counts as one with half.
func halved(share float64) float64 { return min(1, max(leastOfOwner, (1-share)/share)) }

// started and ended count the pods of a namespace that run.
func (o *owners) started(of Owner, at time.Time) {
	l := o.lives[of.Namespace]
	if l == nil {
		if len(o.lives) >= mostOwners {
			return
		}
		if o.lives == nil {
			o.lives = map[string]*lifetime{}
		}
		l = &lifetime{}
		o.lives[of.Namespace] = l
	}
	l.start(at)
}

func (o *owners) ended(of Owner, began, at time.Time) {
	l := o.lives[of.Namespace]
	if l == nil || l.running == 0 {
		return
	}
	l.end(began, at)
	if l.ended > lifetimeMemory {
		l.ran, l.ended = l.ran/2, l.ended/2
	}
}

// relativeLife is how long the pods of a namespace run, as a part of how long those of a namespace run in the mean of
// the others, and 1 as long as that is not known. Each of the others counts once, however many pods it has.
func (o *owners) relativeLife(namespace string, now float64) float64 {
	own := o.lives[namespace]
	if own == nil || own.ended == 0 {
		return 1
	}
	sum, n := 0.0, 0.0
	for _, name := range slices.Sorted(
		maps.Keys(o.lives)) { // in a fixed order, in which sums are the same from run to run
		if l := o.lives[name]; name != namespace && l.running+int(l.ended) > 0 {
			sum += l.exposure(now) / max(1, l.ended)
			n++
		}
	}
	if sum <= 0 {
		return 1
	}
	mean := sum / n
	return (own.exposure(now) + lifetimePrior*mean) / (own.ended + lifetimePrior) / mean
}

// rescale divides all weights, and forgets namespaces without running pods that no pod has come from for long.
func (o *owners) rescale(by float64) {
	o.controllers.rescale(by)
	o.namespaces.rescale(by)
	for name, l := range o.lives {
		if _, known := o.namespaces.arrived[name]; !known && l.running == 0 {
			delete(o.lives, name)
		}
	}
}

// shares are how much of all arrivals is whose.
type shares struct {
	arrived map[string]float64
	total   float64
}

// add counts an arrival and returns the share of its owner. An empty owner is told apart from no other.
func (s *shares) add(owner string, weight float64) float64 {
	s.total += weight
	if owner == "" {
		return 0
	}
	if s.arrived == nil {
		s.arrived = map[string]float64{}
	}
	s.arrived[owner] += weight
	if len(s.arrived) > mostOwners {
		for name, arrived := range s.arrived {
			if name != owner && arrived < s.total/mostOwners {
				delete(s.arrived, name)
			}
		}
	}
	return s.arrived[owner] / s.total
}

func (s *shares) rescale(by float64) {
	s.total /= by
	for name := range s.arrived {
		if s.arrived[name] /= by; s.arrived[name] < 1e-6 {
			delete(s.arrived, name)
		}
	}
}
