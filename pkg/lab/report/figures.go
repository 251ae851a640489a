package report

import (
	"cmp"
	"fmt"
	"html/template"
	"math"
	"slices"
	"sort"

	"berth.dev/berth/pkg/lab/replay/replayed"
	"berth.dev/berth/pkg/screen/svg"
)

// gridPoints is the number of points along the x axis at which the seeds are averaged.
const gridPoints = 120

// line averages one value over the seeds of a side, at gridPoints places of x between 0 and end.
func line(class string, results []*replayed.Result, end float64, x, y func(replayed.Sample) float64) svg.Series {
	s := svg.Series{Class: class}
	for i := 0; i <= gridPoints; i++ {
		at := end * float64(i) / gridPoints
		sum, low, top := 0.0, math.Inf(1), math.Inf(-1)
		for _, r := range results {
			v := valueAt(r.Samples, at, x, y)
			sum += v
			low, top = math.Min(low, v), math.Max(top, v)
		}
		s.X = append(s.X, at)
		s.Y = append(s.Y, sum/float64(len(results)))
		if len(results) > 1 {
			s.Low, s.Top = append(s.Low, low), append(s.Top, top)
		}
	}
	return s
}

// valueAt is the value of the last sample not after x, nothing before the first.
func valueAt(samples []replayed.Sample, at float64, x, y func(replayed.Sample) float64) float64 {
	i := sort.Search(len(samples), func(i int) bool { return x(samples[i]) > at })
	if i == 0 {
		return 0
	}
	return y(samples[i-1])
}

func arrivedPercent(s replayed.Sample) float64   { return s.ArrivedPercent }
func allocatedPercent(s replayed.Sample) float64 { return s.AllocatedPercent }
func strandedPercent(s replayed.Sample) float64  { return s.StrandedPercent }
func dollarsPerHour(s replayed.Sample) float64   { return dollars(s.MicroDollarsPerHour) }
func atSeconds(s replayed.Sample) float64        { return s.Seconds }

// along is the x axis of a mode: the demand that has arrived, or time.
func along(c *Comparison) (svg.Axis, func(replayed.Sample) float64) {
	if c.Mode != replayed.VirtualTime {
		return svg.Axis{Label: "GPUs asked for so far, % of the cluster",
			Max: cmp.Or(lastX(arrivedPercent, c.A, c.B), 1), Format: number}, arrivedPercent
	}
	end := cmp.Or(lastX(atSeconds, c.A, c.B), 1)
	unit, name := timeUnit(end)
	return svg.Axis{Label: "time, " + name, Max: end / unit, Format: number},
		func(s replayed.Sample) float64 { return s.Seconds / unit }
}

func timeUnit(end float64) (float64, string) {
	switch {
	case end > 3*86400:
		return 86400, "days"
	case end > 3*3600:
		return 3600, "hours"
	case end > 300:
		return 60, "minutes"
	default:
		return 1, "seconds"
	}
}

// over makes the figure of one value along the x axis of the mode.
func over(c *Comparison, id, title, unit string, y func(replayed.Sample) float64, top float64, diagonal bool) figure {
	x, of := along(c)
	a, b := line("a", c.A.Results, x.Max, of, y), line("b", c.B.Results, x.Max, of, y)
	if top == 0 {
		top = svg.Above(slices.Max(slices.Concat(a.Y, b.Y, a.Top, b.Top)))
	}
	p := svg.Plot{ID: id, Title: title, X: x, Y: svg.Axis{Max: top, Format: number}, Lines: []svg.Series{a, b},
		Diagonal: diagonal}
	p.Description = fmt.Sprintf("The highest is %s for A and %s for B, in %s; ", number(round3(slices.Max(a.Y))),
		number(round3(slices.Max(b.Y))), unit)
	if c.Mode == replayed.VirtualTime {
		p.Description += fmt.Sprintf("the mean over the plot is %s and %s.", number(round3(meanOf(a.Y))),
			number(round3(meanOf(b.Y))))
	} else {
		p.Description += fmt.Sprintf("at the end they are at %s and %s.", number(round3(a.Y[gridPoints])),
			number(round3(b.Y[gridPoints])))
	}
	f := figure{Title: title + ", " + unit, Caption: p.Description, Head: []string{x.Label, "A", "B"}}
	for i := 0; i <= gridPoints; i += gridPoints / 12 {
		f.Table = append(f.Table, []string{number(round3(a.X[i])), number(round3(a.Y[i])), number(round3(b.Y[i]))})
	}
	f.SVG = template.HTML(p.SVG()) //nolint:gosec // every text in it is escaped where it is written
	return f
}

func meanOf(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}

func round3(x float64) float64 { return math.Round(x*1000) / 1000 }

// courseFigures plot the course of the replays. A value that is always zero has no plot.
func courseFigures(c *Comparison) []figure {
	_, of := along(c)
	if lastX(of, c.A, c.B) == 0 || atOnce(c.A) && atOnce(c.B) {
		return nil
	}
	course := " over time"
	if c.Mode == replayed.ArrivalOrder {
		course = " over arrived load"
	}
	var plots []figure
	for _, plot := range []struct {
		id, title, unit string
		of              func(replayed.Sample) float64
		top             float64
		diagonal        bool
	}{
		{"allocation", "GPUs allocated", "% of the cluster", allocatedPercent, 100, c.Mode == replayed.ArrivalOrder},
		{"stranded", "GPUs stranded", "% of the cluster", strandedPercent, 0, false},
		{"cost", "Cost of nodes in use", "dollars an hour", dollarsPerHour, 0, false},
	} {
		if anyOf(c, func(r *replayed.Result) bool {
			return slices.ContainsFunc(r.Samples, func(s replayed.Sample) bool { return plot.of(s) != 0 })
		}) {
			plots = append(plots, over(c, plot.id, plot.title+course, plot.unit, plot.of, plot.top, plot.diagonal))
		}
	}
	return plots
}

// atOnce reports whether a replay in virtual time ended so soon that there is no course to plot.
func atOnce(s Side) bool {
	r := s.Results[0]
	return r.Mode == replayed.VirtualTime && r.Basis == replayed.EndState
}

// lastX is the end of the x axis.
func lastX(x func(replayed.Sample) float64, sides ...Side) float64 {
	end := 0.0
	for _, side := range sides {
		for _, r := range side.Results {
			if n := len(r.Samples); n > 0 {
				end = math.Max(end, x(r.Samples[n-1]))
			}
		}
	}
	return end
}

func anyOf(c *Comparison, is func(*replayed.Result) bool) bool {
	return slices.ContainsFunc(c.A.Results, is) || slices.ContainsFunc(c.B.Results, is)
}
