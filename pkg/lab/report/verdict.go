package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"berth.dev/berth/pkg/lab/replay/replayed"
	"berth.dev/berth/pkg/plural"
	"berth.dev/berth/pkg/screen/tables"
)

// Verdict is the summary of a comparison. A metric counts as better or worse if it is so with every seed.
type Verdict struct {
	Better int `json:"better"`
	Worse  int `json:"worse"`
	Mixed  int `json:"mixed"`
	Same   int `json:"same"`
	// Wins and Losses are the metrics that are better and worse, the largest change first.
	Wins   []Change `json:"wins"`
	Losses []Change `json:"losses"`
	// Undone says which work only one side left undone; empty if both did the same work.
	Undone string `json:"undone,omitempty"`
}

// Change is how a metric differs from A to B.
type Change struct {
	Metric     string `json:"metric"`
	Label      string `json:"label"`
	Unit       string `json:"unit"`
	Difference Stat   `json:"difference"`
	// Percent is the difference in percent of A, seed by seed; nil if A is 0 with any seed.
	Percent *Stat `json:"differencePercent"`
	// ofMeans is the difference of the means in percent of A's, as in the table.
	ofMeans *float64
	size    float64
}

// Changes that are too small to mention: as a part of the metric, and for times in seconds.
const (
	noise        = 0.0005
	noiseSeconds = 1
)

// verdictOn counts the metrics and orders the changes. It leaves out metrics that are measured on this machine or
// follow from another metric.
func verdictOn(rows []Row, undone string) Verdict {
	v := Verdict{Wins: []Change{}, Losses: []Change{}, Undone: undone}
	for _, r := range rows {
		if r.Better == 0 || r.Measured || r.derived || r.OtherWork || r.nothing() {
			continue
		}
		word := verdict(r)
		size := math.Abs(r.Difference.Mean) / max(math.Abs(r.A.Mean), math.Abs(r.B.Mean), math.SmallestNonzeroFloat64)
		change := Change{Metric: r.Key, Label: r.Label, Unit: r.Unit, Difference: r.Difference, Percent: r.BySeed,
			ofMeans: r.Percent, size: size}
		switch {
		case r.Difference == (Stat{}), word == "" && r.Difference.Mean != 0, (word == " better" || word == " worse") &&
			size < noise:
			v.Same++
		case word == " better":
			v.Better++
			v.Wins = append(v.Wins, change)
		case word == " worse":
			v.Worse++
			v.Losses = append(v.Losses, change)
		default:
			v.Mixed++
		}
	}
	for _, list := range [][]Change{v.Wins, v.Losses} {
		slices.SortStableFunc(list, func(a, b Change) int { return cmp.Compare(b.size, a.size) })
	}
	return v
}

// mostNamed is how many wins and losses are named.
const mostNamed = 3

// lines are the verdict in three lines: the summary, the largest wins and the largest losses.
func (v Verdict) lines(seeds int) []string {
	of := v.Better + v.Worse + v.Mixed + v.Same
	sum := fmt.Sprintf("B is better than A in %d of %s and worse in %d", v.Better, plural.Of(of, "metric"), v.Worse)
	switch {
	case v.Better+v.Worse+v.Mixed == 0:
		sum = "B does as well as A: no metric differs"
	case v.Mixed > 0:
		sum += fmt.Sprintf("; in %d it depends on the seed", v.Mixed)
	}
	if v.Undone != "" {
		sum = v.Undone + " " + sum
	}
	return []string{sum + ".", named(v.Wins, seeds), named(v.Losses, seeds)}
}

func named(list []Change, seeds int) string {
	if len(list) == 0 {
		return "none"
	}
	var parts []string
	for _, c := range list[:min(len(list), mostNamed)] {
		parts = append(parts, c.text(seeds))
	}
	if more := len(list) - mostNamed; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, "; ")
}

// text is the change of the mean with its range over the seeds, in percent if that is meaningful, else in the unit.
func (c Change) text(seeds int) string {
	if c.Percent == nil || c.ofMeans == nil || math.Abs(*c.ofMeans) >= 1000 {
		say := func(x float64) string {
			if x < 0 {
				return "-" + quantity(-x, c.Unit)
			}
			return "+" + quantity(x, c.Unit)
		}
		if d := c.Difference; seeds > 1 && d.Min != d.Max {
			return fmt.Sprintf("%s %s [%s, %s]", c.Label, say(d.Mean), say(d.Min), say(d.Max))
		}
		return c.Label + " " + say(c.Difference.Mean)
	}
	tenths := func(x float64) string { return fmt.Sprintf("%+.1f", x) }
	mean, low, top := tenths(*c.ofMeans), tenths(c.Percent.Min), tenths(c.Percent.Max)
	if seeds < 2 || low == top {
		return c.Label + " " + mean + "%"
	}
	return fmt.Sprintf("%s %s%% [%s, %s]", c.Label, mean, low, top)
}

// undone says which work only one side left undone, and the main reason. The costs and times of less work cannot be
// compared with those of more.
func undone(mode replayed.Mode, rows []Row, pending []PendingRow) string {
	of := map[string]Row{}
	for _, r := range rows {
		of[r.Key] = r
	}
	waits, incomplete, completed := of["pending"], of["incomplete"], of["completed"]
	if mode != replayed.VirtualTime || waits.Difference == (Stat{}) && incomplete.Difference == (Stat{}) &&
		completed.Difference == (Stat{}) {
		return ""
	}
	what, left := "pending", []float64{waits.A.Mean + incomplete.A.Mean, waits.B.Mean + incomplete.B.Mean}
	if !incomplete.nothing() {
		what = "pending or in incomplete gangs"
	}
	text := fmt.Sprintf("A completes %s jobs, B %s", number(round3(completed.A.Mean)), number(round3(completed.B.Mean)))
	if left[0] != left[1] {
		more, fewer := 0, 1
		if left[1] > left[0] {
			more, fewer = 1, 0
		}
		text = fmt.Sprintf("%c leaves %s pods %s, %c %s", "AB"[more], number(round3(left[more])), what, "AB"[fewer],
			number(round3(left[fewer])))
		if reason := mostBeyond(pending, more == 1); reason != "" {
			text += ": " + reason
		}
	}
	return text + ". So cost, nodes in use, stranded GPUs, waits and completion are not compared."
}

// mostBeyond is the reason for which one side has the most pods pending in excess of the other side, empty for none.
func mostBeyond(pending []PendingRow, ofB bool) string {
	reason, most := "", 0.0
	for _, row := range pending {
		beyond := row.A - row.B
		if ofB {
			beyond = -beyond
		}
		if beyond > most {
			reason, most = row.Reason, beyond
		}
	}
	return tables.Shorten(reason)
}

// nothing says whether the metric is zero on both sides with every seed.
func (r Row) nothing() bool { return r.A == (Stat{}) && r.B == (Stat{}) }

// shown returns the rows that are not zero on both sides.
func (c *Comparison) shown() []Row {
	return slices.DeleteFunc(slices.Clone(c.Rows), func(r Row) bool { return r.nothing() || r.Key == placementsKey })
}

// hidden is a sentence on the rows that are zero on both sides, empty without any. A median of no waits is zero, too.
func (c *Comparison) hidden() string {
	var labels []string
	for _, r := range c.Rows {
		if r.nothing() && r.Key != placementsKey {
			labels = append(labels, r.Label)
		}
	}
	if len(labels) == 0 {
		return ""
	}
	return "Zero, or nothing to measure, on both sides: " + strings.Join(labels, "; ") + "."
}
