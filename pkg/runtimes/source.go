package runtimes

import "time"

const (
	// strength is how many runs of a class weigh as much as all that is known of the wider ones.
	strength = 3
	// typical is how many seconds half of all pods run if nothing is known.
	typical = 30 * 60
)

// Source forecasts the ends of pods of one class that declare the same. It stays valid until the book changes.
type Source struct {
	levels [widths]level
	// prior is the weight of what is assumed without any run.
	prior   float64
	scale   scale
	unit    time.Duration
	limit   time.Duration
	endless bool
}

// level is what is known of a class, and how much it weighs.
type level struct {
	sorted []length
	weight float64
}

// Of returns what forecasts the ends of such pods.
func (b *Book) Of(class *Class, claim *Claim) Source {
	s := Source{prior: 1, limit: claim.Limit, endless: claim.endless()}
	if s.endless {
		return s
	}
	s.scale, s.unit = claim.unit()
	for w := range widths {
		if r := b.records[class.key(w, s.scale)]; r != nil {
			n := float64(len(r.sorted))
			s.levels[w] = level{r.sorted, s.prior * n / (n + strength)}
			s.prior -= s.levels[w].weight
		}
	}
	return s
}

// Left forecasts what is left of a run that has lasted for the age.
func (s *Source) Left(age time.Duration) Forecast {
	if s.endless {
		return Certain(Never)
	}
	from := lengthOf(float64(age-s.blur(age)) / float64(s.unit))
	alive := s.survival(from)
	var f Forecast
	low := from
	for i, level := range Levels {
		// The smallest length by which this part of those that are alive has ended.
		target := alive*(1-level) + 1e-12
		high := longest
		for low < high {
			if middle := low + (high-low)/2; s.survival(middle) <= target {
				high = middle
			} else {
				low = middle + 1
			}
		}
		end := time.Duration(min(low.units()*float64(s.unit), float64(Never/4)))
		if s.limit > 0 {
			end = min(end, s.limit)
		}
		f[i] = max(end-age, 0)
	}
	return f
}

// blur is by how much longer a run has to be before it counts as one that outlives what is known: lengths are rounded,
// and what a pod declares does not know how long it takes to begin and to go. Until then, its end is due.
func (s *Source) blur(age time.Duration) time.Duration {
	if s.scale == bySecond {
		return age / 256
	}
	return age/256 + 30*time.Second
}

// survival returns the probability that a run is longer.
func (s *Source) survival(than length) float64 {
	p := s.prior * s.assumed(than.units())
	for w := range s.levels {
		if l := &s.levels[w]; l.weight > 0 {
			p += l.weight * longer(l.sorted, than)
		}
	}
	return p
}

// assumed is the probability that a run is longer if no run is known. All fall slowly enough that what is left of a run
// that outlives everything that is known grows with its age.
func (s *Source) assumed(units float64) float64 {
	switch {
	case s.scale == byExpected && units < 1:
		// Three of four end by the time that they declare, and few much sooner.
		return 1 - 0.75*units*units*units*units
	case s.scale == byExpected:
		return 0.25 / (units * units)
	case s.scale == byLimit:
		// Any time up to the limit is as likely.
		return max(1-units, 0.05/max(units, 1))
	}
	return 1 / (1 + units/typical)
}

// Basis says what a forecast rests on.
type Basis byte

// What a forecast may rest on: nothing but a guess, runs of pods of other kinds, earlier runs of the same controller,
// what the pod declares, and after what time it is ended. What does not end on its own is Endless.
const (
	Guessed Basis = iota
	FromOthers
	FromItsRuns
	Declared
	Limited
	Endless
)

// Basis returns what the forecasts rest on: what has half of the weight.
func (s *Source) Basis() Basis {
	switch {
	case s.endless:
		return Endless
	case s.scale == byExpected:
		return Declared
	case s.scale == byLimit:
		return Limited
	case s.levels[exact].weight+s.levels[anyImage].weight >= 0.5:
		return FromItsRuns
	case s.prior <= 0.5:
		return FromOthers
	}
	return Guessed
}
