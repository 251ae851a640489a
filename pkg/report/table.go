package report

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"berth.dev/berth/pkg/plural"
	"berth.dev/berth/pkg/replay"
)

// WriteTable writes the comparison for a terminal.
func WriteTable(w io.Writer, c *Comparison) error {
	if _, err := fmt.Fprintf(w, "%s, %s, %s\n", c.Input, modeWords(c.Mode), count(len(c.Seeds), "seed")); err != nil {
		return err
	}
	t := newTable()
	t.AppendHeader(table.Row{"", "A: " + sideName(c.A), "B: " + sideName(c.B), "B - A", "%"})
	for _, r := range c.Rows {
		if r.Key == placementsKey {
			t.AppendRow(table.Row{r.Label, "", "", spread(r.B, len(c.Seeds)) + " %", ""})
			continue
		}
		t.AppendRow(table.Row{
			labelled(r), spread(r.A, len(c.Seeds)), spread(r.B, len(c.Seeds)),
			signed(r.Difference, len(c.Seeds)), percent(r) + verdict(r),
		})
	}
	t.SetColumnConfigs(rightFrom(2, 5))
	if len(c.Seeds) > 1 {
		t.SetCaption("Means over the seeds, ranges in brackets; differences seed by seed. Scheduler CPU is measured, the rest simulated.")
	}
	if _, err := fmt.Fprintln(w, t.Render()); err != nil {
		return err
	}
	for _, note := range c.Notes() {
		if _, err := fmt.Fprintln(w, "note: "+note); err != nil {
			return err
		}
	}
	if len(c.Pending) == 0 {
		return nil
	}
	t = newTable()
	t.AppendHeader(table.Row{"Pending because", "A", "B"})
	for _, r := range c.Pending {
		t.AppendRow(table.Row{r.Reason, number(r.A), number(r.B)})
	}
	t.SetColumnConfigs(append(rightFrom(2, 3), table.ColumnConfig{Number: 1, WidthMax: 80, WidthMaxEnforcer: text.WrapSoft}))
	_, err := fmt.Fprintln(w, t.Render())
	return err
}

// WriteResult writes one replay for a terminal.
func WriteResult(w io.Writer, r *replay.Result) error {
	t := newTable()
	t.AppendRow(table.Row{"Nodes", fmt.Sprintf("%d with %s %s", r.Nodes, number(gpus(r.CapacityMilli)), gpuNoun(gpus(r.CapacityMilli)))})
	t.AppendRow(table.Row{"Pods", fmt.Sprintf("%d in %s; %d placed, %d pending", r.Pods, plural.Of(r.Jobs, "job"), r.Placed, r.Pending)})
	for _, m := range metrics {
		if m.timeOnly && r.Mode != replay.VirtualTime || m.key == "pending" || nothingOf(m.key, r) {
			continue
		}
		t.AppendRow(table.Row{m.label, quantity(m.of(r), m.unit)})
	}
	if r.Refused8.Of > 0 {
		t.AppendRow(table.Row{"8-GPU pods refused", fmt.Sprintf("%.1f %%", 100*float64(r.Refused8.Part)/float64(r.Refused8.Of))})
	}
	t.AppendRow(table.Row{"Speed", fmt.Sprintf("%s pods/s, %s", number(r.Timing.PodsPerSecond), seconds(r.Timing.Wall))})
	for i, reason := range r.PendingByReason {
		label := ""
		if i == 0 {
			label = "Pending because"
		}
		t.AppendRow(table.Row{label, fmt.Sprintf("%d: %s", reason.Pods, reason.Reason)})
	}
	t.SetColumnConfigs([]table.ColumnConfig{{Number: 2, WidthMax: 90, WidthMaxEnforcer: text.WrapSoft}})
	lines := []string{fmt.Sprintf("%s, %s (profile %s), %s, seed %d", r.Input, r.Configuration, r.Profile, modeWords(r.Mode), r.Seed), t.Render()}
	for _, note := range append(unpriced(r), r.Notes...) {
		lines = append(lines, "note: "+note)
	}
	_, err := fmt.Fprintln(w, strings.Join(lines, "\n"))
	return err
}

// nothingOf says whether a metric is about something that the replay had none of.
func nothingOf(key string, r *replay.Result) bool {
	priced := r.Nodes - r.NodesUnpriced
	for prefix, count := range map[string]int{
		"wait-": r.PodWait.Count, "gang": r.GangWait.Count, "complet": r.JobsCompleted, "cost": priced, "bill": priced,
	} {
		if strings.HasPrefix(key, prefix) && count == 0 {
			return true
		}
	}
	return false
}

func newTable() table.Writer {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Options.SeparateRows = false
	t.Style().Format.Header = text.FormatDefault
	return t
}

func rightFrom(first, last int) []table.ColumnConfig {
	var list []table.ColumnConfig
	for i := first; i <= last; i++ {
		list = append(list, table.ColumnConfig{Number: i, Align: text.AlignRight})
	}
	return list
}

func modeWords(m replay.Mode) string {
	if m == replay.ArrivalOrder {
		return "in arrival order"
	}
	return "in virtual time"
}

func sideName(s Side) string {
	name := s.Name
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		name = name[i+1:]
	}
	if s.Name == replay.Stock {
		return name
	}
	return name + " (" + s.Profile + ")"
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// spread is the mean, and the range where there are several seeds that differ.
func spread(s Stat, seeds int) string {
	if seeds < 2 || s.Min == s.Max {
		return number(s.Mean)
	}
	return fmt.Sprintf("%s [%s, %s]", number(s.Mean), number(s.Min), number(s.Max))
}

func signed(s Stat, seeds int) string {
	sign := func(x float64) string {
		if x > 0 {
			return "+" + number(x)
		}
		return number(x)
	}
	if seeds < 2 || s.Min == s.Max {
		return sign(s.Mean)
	}
	return fmt.Sprintf("%s [%s, %s]", sign(s.Mean), sign(s.Min), sign(s.Max))
}

// labelled is the label with the unit, unless it names that already.
func labelled(r Row) string {
	if strings.Contains(strings.ToLower(r.Label), strings.ToLower(r.Unit)) && r.Unit != "s" {
		return r.Label
	}
	return r.Label + ", " + r.Unit
}

// percent is the change in percent of A; empty without a change, and where A is nothing or so little that a percentage says
// nothing.
func percent(r Row) string {
	if r.Percent == nil || r.Difference == (Stat{}) {
		return ""
	}
	if math.Abs(*r.Percent) >= 1000 {
		return ""
	}
	return fmt.Sprintf("%+.1f", *r.Percent)
}

// verdict says in a word whether the change is for the better on every seed.
func verdict(r Row) string {
	switch sign := float64(r.Better); {
	case r.Better == 0 || r.Difference.Mean == 0:
		return ""
	case r.Difference.Min*sign > 0 && r.Difference.Max*sign > 0:
		return " better"
	case r.Difference.Min*sign < 0 && r.Difference.Max*sign < 0:
		return " worse"
	default:
		return " mixed"
	}
}

// gpuNoun follows a number of GPUs.
func gpuNoun(gpus float64) string {
	if gpus == 1 {
		return "GPU"
	}
	return "GPUs"
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

// quantity writes a value with its unit, and seconds in the unit in which people would say them.
func quantity(x float64, unit string) string {
	switch unit {
	case "s":
		return seconds(x)
	case "$", "$/h":
		return "$" + number(x) + strings.TrimPrefix(unit, "$")
	default:
		return number(x) + " " + unit
	}
}

func seconds(s float64) string {
	switch {
	case s < 120:
		return number(s) + " s"
	case s < 2*3600:
		return number(s/60) + " min"
	case s < 72*3600:
		return number(s/3600) + " h"
	default:
		return number(s/86400) + " days"
	}
}
