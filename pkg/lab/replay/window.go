package replay

import (
	"fmt"
	"math"
	"slices"
	"time"

	"berth.dev/berth/pkg/lab/replay/replayed"
)

// measuredWindow is the time over which means are taken. Without an end it lasts until the last progress of the work.
type measuredWindow struct {
	from, to time.Time
	until    replayed.Until
}

// newWindow begins after the warm-up and ends with the last arrival, after which the cluster only empties. If all jobs
// arrive within the run time of the median job, such a window would mainly show how the cluster fills up. It then ends
// with the work.
func newWindow(c *cluster) measuredWindow {
	w := measuredWindow{from: c.start.Add(c.options.Warmup), until: replayed.WorkDone}
	last := time.Duration(0)
	durations := make([]time.Duration, 0, len(c.jobs))
	for i := range c.jobs {
		last = max(last, c.jobs[i].Arrival)
		if c.jobs[i].Duration > 0 {
			durations = append(durations, c.jobs[i].Duration)
		}
	}
	slices.Sort(durations)
	median := time.Duration(0)
	if len(durations) > 0 {
		median = durations[len(durations)/2]
	}
	if last > c.options.Warmup && last-c.options.Warmup >= median {
		w.to, w.until = c.start.Add(last), replayed.LastArrival
	}
	if horizon := c.start.Add(c.options.Horizon); c.options.Horizon > 0 && (w.to.IsZero() || horizon.Before(w.to)) {
		w.to, w.until = horizon, replayed.Horizon
	}
	return w
}

// integrals are sums over time.
type integrals struct {
	seconds, milli, stranded, held, waiting, spot, micro, inUse float64
	// bill is in micro-dollars and has no window.
	bill float64
}

// add counts the time between two changes.
func (i *integrals) add(w measuredWindow, from, to time.Time, l *ledger, strandedMilli int64) {
	i.bill += to.Sub(from).Seconds() * float64(l.microDollars) / 3600
	if from.Before(w.from) {
		from = w.from
	}
	if !w.to.IsZero() && to.After(w.to) {
		to = w.to
	}
	dt := to.Sub(from).Seconds()
	if dt <= 0 {
		return
	}
	i.seconds += dt
	i.milli += dt * float64(l.allocatedMilli)
	i.stranded += dt * float64(strandedMilli)
	i.held += dt * float64(l.heldMilli())
	i.waiting += dt * float64(l.waitingMilli)
	i.spot += dt * float64(l.spotMilli)
	i.micro += dt * float64(l.microDollars)
	i.inUse += dt * float64(l.nodesInUse)
}

// endState fills in the figures at the end.
func (r *recorder) endState(out *replayed.Result) {
	l := r.c.ledger
	out.Basis = replayed.EndState
	out.AllocatedMilli, out.StrandedMilli, out.SpotMilli = l.allocatedMilli, l.strandedMilli(), l.spotMilli
	out.HeldMilli, out.IncompleteMilli = l.heldMilli(), l.waitingMilli
	out.NodesInUse, out.MicroDollarsPerHour = float64(l.nodesInUse), l.microDollars
	out.AllocatedPercent = round(r.percent(l.allocatedMilli))
	if r.c.options.Mode == replayed.ArrivalOrder && r.fullCount > 0 {
		out.Basis = replayed.FullLoad
		out.AllocatedPercent = round(r.fullSum / float64(r.fullCount))
	}
}

// means replaces the figures at the end by means over time if jobs arrive and end. A dump without jobs, or jobs that
// all arrive at once and never end, reach their final state within milliseconds; then the figures at the end stay.
func (r *recorder) means(out *replayed.Result, now time.Time) error {
	c := r.c
	if c.options.Mode != replayed.VirtualTime {
		return nil
	}
	sums := r.marked
	cut := c.options.Horizon > 0 && !now.Before(c.start.Add(c.options.Horizon))
	if cut {
		sums = r.now
	}
	out.MicroDollars = int64(math.Round(sums.bill))
	if r.window.until == replayed.LastArrival {
		sums = r.now
	}
	end, until := r.window.to, r.window.until
	if end.IsZero() || until == replayed.Horizon && !cut {
		end, until = c.progress, replayed.WorkDone
	}
	ending := false
	for i := range c.jobs {
		ending = ending || c.jobs[i].Duration > 0
	}
	nothing := sums.seconds <= 0 && c.options.Warmup == 0 // no job of the start was ever placed
	if len(c.jobs) == 0 || nothing || r.window.until != replayed.LastArrival && !ending && !cut {
		if c.options.Warmup > 0 {
			return inputError{fmt.Errorf(
				"a warm-up of %v: there are no jobs that come and go, so the figures are those of the end", c.options.Warmup)}
		}
		out.MicroDollars = 0
		return nil
	}
	if sums.seconds <= 0 {
		return inputError{fmt.Errorf("a warm-up of %v leaves nothing to measure: the work ends after %v", c.options.Warmup,
			end.Sub(c.start).Round(time.Second))}
	}
	mean := func(sum float64) int64 { return int64(math.Round(sum / sums.seconds)) }
	out.Basis = replayed.TimeMean
	out.Window = &replayed.Window{From: c.options.Warmup.Seconds(), To: end.Sub(c.start).Round(time.Microsecond).Seconds(),
		Until: until}
	out.AllocatedMilli, out.StrandedMilli, out.SpotMilli = mean(sums.milli), mean(sums.stranded), mean(sums.spot)
	out.HeldMilli, out.IncompleteMilli = mean(sums.held), mean(sums.waiting)
	out.NodesInUse, out.MicroDollarsPerHour = round(sums.inUse/sums.seconds), mean(sums.micro)
	out.AllocatedPercent = round(r.percent(out.AllocatedMilli))
	return nil
}
