package report

import (
	"fmt"
	"io"
	"math"
	"strings"

	"berth.dev/berth/pkg/lab/replay/replayed"
	"berth.dev/berth/pkg/plural"
	"berth.dev/berth/pkg/schedulerconfig"
	"berth.dev/berth/pkg/screen/tables"
)

// WriteTable writes the comparison for a terminal: the verdict first, then the metrics and why pods are pending.
func WriteTable(w io.Writer, c *Comparison) error {
	v := c.Verdict.lines(len(c.Seeds))
	lines := []string{
		"Verdict: " + v[0], "Wins:    " + v[1], "Losses:  " + v[2],
		fmt.Sprintf("%s, %s, %s. %s", c.Input, modeWords(c.Mode), plural.Of(len(c.Seeds), "seed"), c.Basis()),
	}
	screen := tables.ScreenOf(w)
	for i := range lines {
		lines[i] = screen.Wrap(lines[i])
	}
	t := tables.New(screen, tables.Column{}, tables.Column{Name: "A: " + sideName(c.A), Number: true},
		tables.Column{Name: "B: " + sideName(c.B), Number: true}, tables.Column{Name: "B - A", Number: true, Extra: true},
		tables.Column{Name: "%", Number: true})
	for _, r := range c.shown() {
		t.Row(labelled(r), spread(r.A, r.Unit, len(c.Seeds)), spread(r.B, r.Unit, len(c.Seeds)),
			signed(r.Difference, r.Unit, len(c.Seeds)),
			percent(r)+colored(screen, verdict(r)))
	}
	for _, r := range c.Rows {
		if r.Key == placementsKey {
			t.Row(r.Label, "", "", "", spread(r.B, "%", len(c.Seeds)))
		}
	}
	lines = append(lines, strings.TrimSuffix(t.String(), "\n"))
	if len(c.Seeds) > 1 {
		const caption = "Means over the seeds, ranges in brackets; differences seed by seed. " +
			"Scheduler CPU is measured and no part of the verdict, the rest is simulated."
		lines = append(lines, screen.Wrap(caption))
	}
	if hidden := c.hidden(); hidden != "" {
		lines = append(lines, screen.Wrap(hidden))
	}
	for _, note := range c.Notes() {
		lines = append(lines, screen.Wrap("note: "+note))
	}
	_, err := fmt.Fprint(w, strings.Join(lines, "\n"), "\n", reasonTable(screen, "pending because", c.Pending),
		reasonTable(screen, "hours waited because", c.Waits))
	return err
}

// reasonTable is a table of reasons after an empty line, empty without any.
func reasonTable(screen tables.Screen, title string, rows []PendingRow) string {
	if len(rows) == 0 {
		return ""
	}
	t := tables.New(screen, tables.Column{Name: title}, tables.Column{Name: "A", Number: true},
		tables.Column{Name: "B", Number: true})
	for _, r := range rows {
		t.Row(r.Reason, number(r.A), number(r.B))
	}
	return "\n" + t.String()
}

// verdictColors are for terminals.
var verdictColors = map[string]tables.Color{" better": tables.Green, " worse": tables.Red, " mixed": tables.Yellow}

func colored(screen tables.Screen, verdict string) string {
	if color, ok := verdictColors[verdict]; ok {
		return screen.Paint(color, verdict)
	}
	return verdict
}

// mostWaits is how many reasons of waits are shown of one replay.
const mostWaits = 5

// WriteResult writes one replay for a terminal.
func WriteResult(w io.Writer, r *replayed.Result) error {
	screen := tables.ScreenOf(w)
	t := tables.New(screen, tables.Column{}, tables.Column{})
	t.Row("Nodes", fmt.Sprintf("%d with %s", r.Nodes, quantity(gpus(r.CapacityMilli), "GPUs")))
	pods := fmt.Sprint(r.Pods)
	if r.Jobs > 0 { // a dump has none
		pods += " in " + plural.Of(r.Jobs, "job")
	}
	state := fmt.Sprintf("%s; %d placed, %d pending", pods, r.Placed, r.Pending)
	if r.Incomplete > 0 {
		state += fmt.Sprintf(", %d of incomplete gangs", r.Incomplete)
	}
	t.Row("Pods", state)
	for _, m := range ordered(r) {
		if m.key == "pending" || m.key == "incomplete" || nothingOf(m.key, r) {
			continue
		}
		t.Row(m.label, quantity(m.of(r), m.unit))
	}
	if r.Refused8.Of > 0 {
		t.Row("8-GPU pods refused", fmt.Sprintf("%.1f %%", 100*float64(r.Refused8.Part)/float64(r.Refused8.Of)))
	}
	t.Row("Speed", fmt.Sprintf("%s pods/s, %s", number(r.Timing.PodsPerSecond), tables.Seconds(r.Timing.Wall)))
	for i, reason := range r.PendingByReason {
		label := ""
		if i == 0 {
			label = "Pending because"
		}
		t.Row(label, fmt.Sprintf("%d: %s", reason.Pods, reason.Reason))
	}
	for i, wait := range r.WaitByReason[:min(len(r.WaitByReason), mostWaits)] {
		label := ""
		if i == 0 {
			label = "Waited because"
		}
		t.Row(label, fmt.Sprintf("%s, %s in all: %s", plural.Of(wait.Pods, "pod"), tables.Seconds(wait.Seconds), wait.Reason))
	}
	title := fmt.Sprintf("%s, %s (profile %s), %s, seed %d", r.Input, r.Configuration, r.Profile, modeWords(r.Mode),
		r.Seed)
	lines := []string{screen.Wrap(title), screen.Wrap("Figures are " + basisWords(r) + "."),
		strings.TrimSuffix(t.String(), "\n")}
	for _, note := range append(unpriced(r), r.Notes...) {
		lines = append(lines, screen.Wrap("note: "+note))
	}
	_, err := fmt.Fprintln(w, strings.Join(lines, "\n"))
	return err
}

// nothingOf reports whether a metric describes something that did not occur in the replay.
func nothingOf(key string, r *replayed.Result) bool {
	priced := r.Nodes - r.NodesUnpriced
	switch key {
	case "gangs-started":
		return r.Gangs == 0
	case "held":
		return r.HeldMilli == 0
	case "bill":
		return r.MicroDollars == 0
	}
	for prefix, count := range map[string]int{
		"wait-": r.PodWait.Count, "gang": r.GangWait.Count, "told": r.ToldStartError.Count, "complet": r.JobsCompleted,
		"cost": priced,
	} {
		if strings.HasPrefix(key, prefix) && count == 0 {
			return true
		}
	}
	return false
}

func modeWords(m replayed.Mode) string {
	if m == replayed.ArrivalOrder {
		return "in arrival order"
	}
	return "in virtual time"
}

func sideName(s Side) string {
	name := s.Name
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		name = name[i+1:]
	}
	if s.Name == schedulerconfig.Stock {
		return name
	}
	return name + " (" + s.Profile + ")"
}

// spread is the mean, and the range where there are several seeds that differ.
func spread(s Stat, unit string, seeds int) string {
	if seeds < 2 || s.Min == s.Max {
		return valueIn(s.Mean, unit)
	}
	return fmt.Sprintf("%s [%s,%s]", valueIn(s.Mean, unit), valueIn(s.Min, unit), valueIn(s.Max, unit))
}

// valueIn is a value without its unit, which the label names. Durations have units of their own.
func valueIn(x float64, unit string) string {
	if unit == "s" {
		return tables.Seconds(x)
	}
	return number(x)
}

func signed(s Stat, unit string, seeds int) string {
	sign := func(x float64) string {
		if x > 0 {
			return "+" + valueIn(x, unit)
		}
		return valueIn(x, unit)
	}
	if seeds < 2 || s.Min == s.Max {
		return sign(s.Mean)
	}
	return fmt.Sprintf("%s [%s,%s]", sign(s.Mean), sign(s.Min), sign(s.Max))
}

// labelled is the label with the unit, unless the label or each value names it.
func labelled(r Row) string {
	if r.Unit == "s" || strings.Contains(strings.ToLower(r.Label), strings.ToLower(r.Unit)) {
		return r.Label
	}
	return r.Label + ", " + r.Unit
}

// percent is the change in percent of A; empty without a change, or if A is too small for a useful percentage.
func percent(r Row) string {
	if r.Percent == nil || r.Difference == (Stat{}) {
		return ""
	}
	if math.Abs(*r.Percent) >= 1000 {
		return ""
	}
	return fmt.Sprintf("%+.1f", *r.Percent)
}

// verdict says in a word whether B is better than A with every seed.
func verdict(r Row) string {
	switch sign := float64(r.Better); {
	case r.Better == 0 || r.Difference.Mean == 0 || r.Unit == "s" && !r.Measured &&
		math.Abs(r.Difference.Mean) < noiseSeconds:
		return ""
	case r.OtherWork:
		return " of other work"
	case r.Difference.Min*sign > 0 && r.Difference.Max*sign > 0:
		return " better"
	case r.Difference.Min*sign < 0 && r.Difference.Max*sign < 0:
		return " worse"
	default:
		return " mixed"
	}
}

// number writes three to five significant digits, without an exponent.
func number(x float64) string {
	switch abs := max(x, -x); {
	case x == float64(int64(x)) && abs < 1e12:
		return fmt.Sprintf("%d", int64(x))
	case abs >= 1000:
		return fmt.Sprintf("%.0f", x)
	case abs >= 10:
		return fmt.Sprintf("%.2f", x)
	default:
		return fmt.Sprintf("%.3g", x)
	}
}

// quantity writes a value with its unit, and seconds in suitable units.
func quantity(x float64, unit string) string {
	switch unit {
	case "s":
		return tables.Seconds(x)
	case "$", "$/h":
		return "$" + number(x) + strings.TrimPrefix(unit, "$")
	case "GPUs", "nodes", "pods", "gangs", "jobs":
		if x == 1 {
			unit = strings.TrimSuffix(unit, "s")
		}
		return number(x) + " " + unit
	default:
		return number(x) + " " + unit
	}
}
