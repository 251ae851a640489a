package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"text/tabwriter"
	"time"
)

// report is what a run found.
type report struct {
	Command string    `json:"command"`
	Began   time.Time `json:"began"`
	Took    string    `json:"took"`
	// LoadBefore is the load average of the machine just before the run, and BusyCores how many cores all of its
	// processes used during it.
	LoadBefore    string   `json:"loadBefore"`
	BusyCores     float64  `json:"busyCores"`
	PodsPerSecond float64  `json:"podsPerSecond"`
	Lines         []line   `json:"disasters"`
	Samples       []sample `json:"samples,omitempty"`
	Trends        []trend  `json:"trends,omitempty"`
	Rounds        []*round `json:"rounds"`
}

// line sums up the rounds of one disaster.
type line struct {
	Disaster string     `json:"disaster"`
	Rounds   int        `json:"rounds"`
	Broken   int        `json:"broken"`
	Pods     int        `json:"pods"`
	Bound    int        `json:"bound"`
	Evicted  int        `json:"evicted"`
	Recovery [3]float64 `json:"recoverySecondsMinMedianMax"`
	Drain    [3]float64 `json:"drainSecondsMinMedianMax"`
}

// sum makes a line of each disaster, in the order in which they came first.
func sum(rounds []*round) []line {
	var lines []line
	for _, r := range rounds {
		if !slices.ContainsFunc(lines, func(l line) bool { return l.Disaster == r.Disaster }) {
			lines = append(lines, line{Disaster: r.Disaster})
		}
	}
	for i := range lines {
		l := &lines[i]
		var recovery, drain []float64
		for _, r := range rounds {
			if r.Disaster != l.Disaster {
				continue
			}
			l.Rounds++
			l.Pods, l.Bound, l.Evicted = l.Pods+r.Pods, l.Bound+r.Bound, l.Evicted+r.Evicted
			if len(r.Broken) > 0 {
				l.Broken++
			}
			recovery, drain = append(recovery, r.RecoverySeconds), append(drain, r.DrainSeconds)
		}
		l.Recovery, l.Drain = spread(recovery), spread(drain)
	}
	return lines
}

// spread is the least, the median and the most of some numbers.
func spread(of []float64) [3]float64 {
	if len(of) == 0 {
		return [3]float64{}
	}
	of = slices.Clone(of)
	slices.Sort(of)
	middle := (of[(len(of)-1)/2] + of[len(of)/2]) / 2
	return [3]float64{hundredths(of[0]), hundredths(middle), hundredths(of[len(of)-1])}
}

func hundredths(x float64) float64 { return math.Round(x*100) / 100 }

// print writes the report as JSON or as a table.
func (r *report) print(out io.Writer, asJSON bool) error {
	if asJSON {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(r)
	}
	if len(r.Samples) > 0 {
		if err := r.printSoak(out); err != nil {
			return err
		}
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table,
		"fault\trounds\tbroken\tpods\tbound\tevicted\trecovery s (min/median/max)\tdrain s (min/median/max)")
	for _, l := range r.Lines {
		_, _ = fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%d\t%.2f / %.2f / %.2f\t%.1f / %.1f / %.1f\n", l.Disaster, l.Rounds,
			l.Broken, l.Pods, l.Bound,
			l.Evicted, l.Recovery[0], l.Recovery[1], l.Recovery[2], l.Drain[0], l.Drain[1], l.Drain[2])
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, round := range r.Rounds {
		for _, broken := range round.Broken {
			_, _ = fmt.Fprintf(out, "%s, seed %d: %s\n", round.Disaster, round.Seed, broken)
		}
	}
	_, err := fmt.Fprintf(out, "%d rounds in %s, %.1f pods a second, load average before %s, %.1f cores busy\n",
		len(r.Rounds), r.Took, r.PodsPerSecond, r.LoadBefore, r.BusyCores)
	return err
}
