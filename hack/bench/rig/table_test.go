package rig

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// sample is a run of a contender at a size.
type sample struct {
	contender, size string
	repeat          int
	cost            float64
}

var samples = []sample{
	{"stock", "small", 1, 2}, {"berth", "small", 1, 3}, {"berth", "small", 2, 10}, {"stock", "small", 2, 4},
	{"berth", "large", 1, 7},
}

func costOf(s sample) float64 { return s.cost }

func ratioOf(all []sample) func(sample) float64 {
	type key struct {
		size   string
		repeat int
	}
	return Ratio(all, costOf, func(s sample) key { return key{s.size, s.repeat} },
		func(s sample) bool { return s.contender == "stock" })
}

// cells are the cells of a printed table, by line.
func cells(text string) [][]string {
	var rows [][]string
	for line := range strings.Lines(text) {
		if parts := strings.Split(strings.TrimSpace(line), "│"); len(parts) > 1 {
			var row []string
			for _, part := range parts[1 : len(parts)-1] {
				row = append(row, strings.TrimSpace(part))
			}
			rows = append(rows, row)
		}
	}
	return rows
}

func TestTableHasARowForEachKey(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := Table(&out, []string{"size", "who"}, func(s sample) []string { return []string{s.size, s.contender} },
		[]Figure[sample]{Column("cost", "%.2f", costOf), Column("× stock", "%.2f", ratioOf(samples))}, samples); err != nil {
		t.Fatal(err)
	}
	want := [][]string{
		{"size", "who", "cost", "× stock"},
		{"small", "stock", "3.00 (2.00–4.00)", "1.00 (1.00–1.00)"},
		{"small", "berth", "6.50 (3.00–10.00)", "2.00 (1.50–2.50)"},
		{"large", "berth", "7.00", "-"},
	}
	if diff := cmp.Diff(want, cells(out.String())); diff != "" {
		t.Errorf("cells (-want +got):\n%s", diff)
	}
}

func TestPivotHasAColumnForEachKey(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := Pivot(&out, "size", func(s sample) string { return s.size }, func(s sample) string { return s.contender },
		Column("cost", "%.0f", costOf), samples); err != nil {
		t.Fatal(err)
	}
	want := [][]string{{"size", "stock", "berth"}, {"small", "3 (2–4)", "6 (3–10)"}, {"large", "-", "7"}}
	if diff := cmp.Diff(want, cells(out.String())); diff != "" {
		t.Errorf("cells (-want +got):\n%s", diff)
	}
}

func TestRunsWithoutAFigureAreLeftOut(t *testing.T) {
	t.Parallel()
	g := Group[float64]{Runs: []float64{1, math.NaN(), math.Inf(1), 3}}
	if diff := cmp.Diff([]float64{1, 3}, g.Values(func(v float64) float64 { return v })); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
}
