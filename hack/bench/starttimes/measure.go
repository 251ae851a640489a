package main

import (
	"math"
	"slices"
)

// figures are waits in minutes. told is the part of the told starts that came within their interval.
type figures struct {
	gangs, p50, p95, max       float64
	others, weighted, slowdown float64
	told                       float64
	// error50 and error95 are how far the starts were from what was told first: the median and 95%.
	error50, error95 float64
	// missed is the part of the deadlines that were missed, due how many there are.
	missed, due float64
}

func (f *figures) add(o figures, part float64) {
	for _, v := range [][2]*float64{{&f.gangs, &o.gangs}, {&f.p50, &o.p50}, {&f.p95, &o.p95}, {&f.max, &o.max}, {&f.others, &o.others},
		{&f.weighted, &o.weighted}, {&f.slowdown, &o.slowdown}, {&f.told, &o.told},
		{&f.error50, &o.error50}, {&f.error95, &o.error95}, {&f.missed, &o.missed}, {&f.due, &o.due}} {
		*v[0] += *v[1] * part
	}
}

func measure(jobs []job) figures {
	var f figures
	var gangs, errors []float64
	others, gpus, told, all := 0.0, 0.0, 0.0, 0.0
	for i := range jobs {
		j := &jobs[i]
		if j.due > 0 {
			f.due++
			if j.nodes == nil || j.start-j.submit+j.run > j.due {
				f.missed++
			}
		}
		if j.nodes == nil {
			continue
		}
		wait := (j.start - j.submit) / 60
		all++
		f.weighted += wait * float64(j.gpus)
		gpus += float64(j.gpus)
		// The bounded slowdown of the literature, with ten minutes.
		f.slowdown += max(1, (wait+j.run/60)/max(j.run/60, 10))
		if j.members() > 0 {
			gangs = append(gangs, wait)
			f.gangs += wait
		} else {
			others++
			f.others += wait
		}
		if j.toldOnce {
			told++
			if start := at(j.start); !start.Before(j.told.Earliest) && !start.After(j.told.Latest) {
				f.told++
			}
			errors = append(errors, math.Abs(at(j.start).Sub(j.told.Likely).Minutes()))
		}
	}
	slices.Sort(gangs)
	f.gangs /= float64(len(gangs))
	f.others /= others
	f.weighted /= gpus
	f.slowdown /= all
	f.told /= max(told, 1)
	f.missed /= max(f.due, 1)
	last := len(gangs) - 1
	f.p50, f.p95, f.max = gangs[last/2], gangs[last*95/100], gangs[last]
	if slices.Sort(errors); len(errors) > 0 {
		last = len(errors) - 1
		f.error50, f.error95 = errors[last/2], errors[last*95/100]
	}
	return f
}
