package showback

import (
	"fmt"
	"time"

	"berth.dev/berth/pkg/price"
)

// Sample is what the pods of a key had at a moment.
type Sample struct {
	At       time.Time
	Key      string
	MilliGPU int64
	// UsedMilliGPU is how busy they kept it, where it was Measured.
	UsedMilliGPU int64
	Measured     bool
	// Hourly is what it costs an hour.
	Hourly price.MicroDollars
}

// Capacity is how much GPU there was at a moment.
type Capacity struct {
	At       time.Time
	MilliGPU int64
}

// FromSamples makes a statement of samples that were taken at every step from the beginning: each stands for the time
// until the next step. Capacity beyond the samples of a moment is idle.
func FromSamples(from, to time.Time, step time.Duration, samples []Sample, capacities []Capacity) (*Statement, error) {
	from, to = from.UTC(), to.UTC()
	if !from.Before(to) || step <= 0 || to.Sub(from) > maxDays*24*time.Hour {
		return nil, fmt.Errorf("a statement from %s to %s by steps of %s: want a time of at most 100 years",
			from.Format(time.RFC3339), to.Format(time.RFC3339), step)
	}
	b := newBook(from, to)
	held := map[int64]int64{}
	for _, s := range samples {
		held[s.At.UnixNano()] += s.MilliGPU
		b.each(s.At, step, func(d *daySums, lasting time.Duration) {
			sum := d.lines[s.Key].plus(s.MilliGPU, s.Hourly, lasting)
			if s.Measured {
				sum.used, sum.measured = sum.used.plus(product(s.UsedMilliGPU, int64(lasting))), true
			}
			d.lines[s.Key] = sum
		})
	}
	for _, c := range capacities {
		b.each(c.At, step, func(d *daySums, lasting time.Duration) {
			d.idle = d.idle.plus(max(0, c.MilliGPU-held[c.At.UnixNano()]), 0, lasting)
		})
	}
	return b.statement(), nil
}

// each calls f for the days that a step from a moment touches, as far as they belong to the book.
func (b *book) each(at time.Time, step time.Duration, f func(*daySums, time.Duration)) {
	end := at.Add(step)
	if end.After(b.to) {
		end = b.to
	}
	if at.Before(b.from) {
		at = b.from
	}
	for at.Before(end) {
		day := b.day(at)
		until := end
		if midnight := b.dayEnd(day); midnight.Before(until) {
			until = midnight
		}
		f(&b.days[day], until.Sub(at))
		at = until
	}
}
