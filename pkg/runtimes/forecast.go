package runtimes

import (
	"math"
	"time"
)

// Never is the time until something ends that does not end.
const Never = time.Duration(math.MaxInt64)

// Levels are the probabilities at which a Forecast holds times.
var Levels = [...]float64{0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95}

// Forecast is a distribution of the time that is left until something ends: by the time at each of Levels it has ended
// with that probability. Between two times the probability is linear, and beyond the last one it approaches 1.
type Forecast [len(Levels)]time.Duration

// Certain forecasts an end at one time.
func Certain(left time.Duration) Forecast {
	var f Forecast
	for i := range f {
		f[i] = left
	}
	return f
}

// Ends reports whether an end is to be expected at all.
func (f *Forecast) Ends() bool { return f[0] != Never }

// At returns the time by which the end comes with this probability, of those at Levels the nearest that is not lower.
func (f *Forecast) At(probability float64) time.Duration {
	for i, level := range Levels {
		if level >= probability-1e-9 {
			return f[i]
		}
	}
	return f[len(f)-1]
}

// GoneBy returns the probability that the end comes within this time.
func (f *Forecast) GoneBy(left time.Duration) float64 {
	const last = len(Levels) - 1
	if left >= f[last] {
		if f[last] == Never {
			return 0
		}
		// The tail beyond the last level is as long as the distance from the median to it.
		width := float64(f[last] - f[last/2])
		if width <= 0 {
			return 1
		}
		return 1 - (1-Levels[last])*math.Exp(-float64(left-f[last])/width)
	}
	from, low := time.Duration(0), 0.0
	for i, level := range Levels {
		if left < f[i] {
			if f[i] == Never || left < 0 {
				return low
			}
			return low + (level-low)*float64(left-from)/float64(f[i]-from)
		}
		from, low = f[i], level
	}
	return low
}

// After forecasts the end of what begins at the end of the first: to a good approximation, as if both were late
// together.
func (f *Forecast) After(first *Forecast) Forecast {
	var sum Forecast
	for i := range sum {
		if sum[i] = Never; first[i] < Never/2 && f[i] < Never/2 {
			sum[i] = first[i] + f[i]
		}
	}
	return sum
}

// Later returns the forecast as it is after some time without an end, until a better one is made.
func (f *Forecast) Later(by time.Duration) Forecast {
	later := *f
	for i := range later {
		if later[i] != Never {
			later[i] = max(later[i]-by, 0)
		}
	}
	return later
}

// LastAt returns the time by which the last of several ends has come with this probability, if they do not depend on
// each other.
func LastAt(all []Forecast, probability float64) time.Duration {
	return lastAt(all, probability, 0)
}

// Last returns the forecast of the last of several ends that do not depend on each other.
func Last(all []Forecast) Forecast {
	if len(all) == 1 {
		return all[0]
	}
	var last Forecast
	var from time.Duration
	for i, level := range Levels {
		from = lastAt(all, level, from)
		last[i] = from
	}
	return last
}

// lastAt looks for the time from another one on.
func lastAt(all []Forecast, probability float64, from time.Duration) time.Duration {
	low, high := from, time.Second
	for i := range all {
		if !all[i].Ends() {
			return Never
		}
		// The last end is no sooner than each single one.
		low = max(low, all[i].At(probability))
		high = max(high, all[i][len(Levels)-1])
	}
	if len(all) == 1 || allGone(all, low) >= probability {
		return low
	}
	for high = max(high, low); allGone(all, high) < probability && high < Never/4; {
		high += high/2 + time.Second
	}
	for high-low > time.Second && high-low > low/128 {
		if middle := low + (high-low)/2; allGone(all, middle) >= probability {
			high = middle
		} else {
			low = middle
		}
	}
	return high
}

// allGone returns the probability that all ends come within this time.
func allGone(all []Forecast, left time.Duration) float64 {
	p := 1.0
	for i := range all {
		if p *= all[i].GoneBy(left); p == 0 {
			break
		}
	}
	return p
}
