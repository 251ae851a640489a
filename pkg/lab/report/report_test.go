package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jedib0t/go-pretty/v6/text"

	"berth.dev/berth/pkg/lab/replay/replayed"
	"berth.dev/berth/pkg/screen/tables"
	"berth.dev/berth/test/harness/assert"
	"berth.dev/berth/test/harness/require"
)

// result is a small replay; allocated is in milli-GPU of four GPUs.
func result(config string, seed uint64, allocated, microDollars int64, placements map[string]string) *replayed.Result {
	percent := float64(allocated) / 40
	return &replayed.Result{
		Input: "in<put>", Configuration: config, Profile: "p", Mode: replayed.VirtualTime, Seed: seed, Nodes: 1,
		CapacityMilli: 4000, Pods: 2,
		AllocatedPercent: percent, AllocatedMilli: allocated, IdleMilli: 4000 - allocated, MicroDollarsPerHour: microDollars,
		Placements: placements,
		Basis:      replayed.TimeMean, Window: &replayed.Window{To: 7200, Until: replayed.LastArrival}, Jobs: 1,
		Samples: []replayed.Sample{{Seconds: 0}, {Seconds: 7200, AllocatedPercent: percent, StrandedPercent: 1,
			MicroDollarsPerHour: microDollars}},
		PendingByReason: []replayed.Reason{{Reason: "Insufficient <cpu>", Pods: 1}},
	}
}

func comparison() *Comparison {
	a := []*replayed.Result{
		result("old.yaml", 1, 2000, 1_000_000, map[string]string{"x": "n", "y": "n"}),
		result("old.yaml", 2, 3000, 1_000_000, map[string]string{"x": "n", "y": "n"}),
	}
	b := []*replayed.Result{
		result("new.yaml", 1, 3000, 1_100_000, map[string]string{"x": "n", "y": "m"}),
		result("new.yaml", 2, 4000, 1_100_000, map[string]string{"x": "n", "y": "n"}),
	}
	b[0].Notes = []string{"Some<plugin> was silenced"}
	return Compare(a, b)
}

func TestDifferencesAreTakenSeedBySeed(t *testing.T) {
	t.Parallel()
	for _, r := range comparison().Rows {
		switch r.Key {
		case "allocated":
			if want := (Stat{Mean: 25, Min: 25, Max: 25}); r.Difference != want {
				t.Errorf("allocated differs by %+v, want %+v", r.Difference, want)
			}
			if got := verdict(r); got != " better" {
				t.Errorf("verdict%s, want better", got)
			}
		case placementsKey:
			if r.B.Mean != 25 {
				t.Errorf("placements differ by %v%%, want 25", r.B.Mean)
			}
		}
	}
}

func TestConditions(t *testing.T) {
	t.Parallel()
	tests := map[string]bool{
		"cost>+2%": true, "cost>10%": false, "cost > 0.05": true, "allocated<-0.5": false, "allocated>24": true,
		"preemptions>0%": false, "placements>20": true,
	}
	for text, want := range tests {
		c, err := ParseCondition(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if sentence := c.Check(comparison()); (sentence != "") != want {
			t.Errorf("%s: %q; want it to hold: %v", text, sentence, want)
		}
	}
	for _, text := range []string{"", "cost", "cost>", "cost=2", "speed>2", "cost>2%%", "cost>1e9"} {
		if _, err := ParseCondition(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

func TestConditionsAboutWhatAModeDoesNotMeasure(t *testing.T) {
	t.Parallel()
	for mode, results := range map[replayed.Mode]*replayed.Result{
		replayed.ArrivalOrder: {Mode: replayed.ArrivalOrder}, replayed.VirtualTime: {Mode: replayed.VirtualTime},
	} {
		rows := Compare([]*replayed.Result{results}, []*replayed.Result{results}).Rows
		for _, metric := range ConditionMetrics() {
			c, err := ParseCondition(metric + ">1")
			require.NoError(t, err)
			measured := slices.ContainsFunc(rows, func(r Row) bool { return r.Key == metric })
			if err := c.MeasuredIn(mode); (err == nil) != measured {
				t.Errorf("%s in mode %s: %v; it is among the metrics of a comparison: %v", metric, mode, err, measured)
			}
		}
	}
}

func FuzzParseCondition(f *testing.F) {
	f.Add("cost>+2%")
	f.Fuzz(func(t *testing.T, text string) {
		if c, err := ParseCondition(text); err == nil {
			c.Check(comparison())
		}
	})
}

func TestThePageStandsAlone(t *testing.T) {
	t.Parallel()
	var page bytes.Buffer
	require.NoError(t, WriteHTML(&page, comparison()))
	text := page.String()
	if outside := regexp.MustCompile(`(?i)(src|href|url|@import|<script|<link)\s*[=(]`).FindString(text); outside != "" {
		t.Errorf("the page refers to something else: %s", outside)
	}
	if strings.Contains(text, "<cpu>") || strings.Contains(text, "in<put>") ||
		!strings.Contains(text, "B: Some&lt;plugin&gt; was silenced") {
		t.Error("text of the input is not escaped")
	}
	plots := regexp.MustCompile(`(?s)<svg [^>]*role="img".*?</svg>`).FindAllString(text, -1)
	if len(plots) != 3 {
		t.Errorf("%d plots, want 3", len(plots))
	}
	for _, plot := range plots {
		if !strings.Contains(plot, "<title") || !regexp.MustCompile(`<desc [^>]*>[^<]{20,}</desc>`).MatchString(plot) {
			t.Errorf("a plot without a text alternative: %.120s", plot)
		}
		d := xml.NewDecoder(strings.NewReader(plot))
		for {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("a plot is not well-formed: %v", err)
			}
		}
		if strings.Contains(plot, "NaN") || strings.Contains(plot, "Inf") {
			t.Errorf("a plot has a coordinate that is no number: %.200s", plot)
		}
	}
}

func TestTheTableSaysWhatChanges(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, WriteTable(&out, comparison()))
	assert.Contains(t, out.String(), "GPUs allocated", "better", "worse", "Insufficient <cpu>", "2 seeds",
		"note: B: Some<plugin> was silenced")
}

func TestAReplayTellsOnlyOfWhatItHad(t *testing.T) {
	t.Parallel()
	written := func(unpriced int) string {
		r := result("c", 1, 1000, 1_000_000, nil)
		r.Nodes, r.NodesUnpriced = 4, unpriced
		if unpriced == r.Nodes {
			r.Samples[1].MicroDollarsPerHour = 0
		}
		r.PodWait = replayed.Waits{Count: 1, P50: 7200, P95: 7200}
		var out bytes.Buffer
		require.NoError(t, WriteResult(&out, r))
		return out.String()
	}
	for _, tc := range []struct {
		unpriced int
		wants    map[string]bool
	}{
		{0, map[string]bool{"Pod wait, median": true, "2h": true, "$1/h": true, "Gang wait": false, "Gangs started": false,
			"Job completion": false, "price": false}},
		{1, map[string]bool{"$1/h": true, "note: 1 of the 4 nodes has no price and counts nothing in the cost": true}},
		{4, map[string]bool{"$": false, "note: no node has a price": true}},
	} {
		out := written(tc.unpriced)
		for text, want := range tc.wants {
			if strings.Contains(out, text) != want {
				t.Errorf("%d nodes without a price: %q is there: %v, want %v, in\n%s", tc.unpriced, text, !want, want, out)
			}
		}
	}
}

func TestAPageWithoutPricesDrawsNoCost(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name        string
		unpriced    int
		plots       int
		plotOfCosts bool
	}{
		{"all nodes have a price", 0, 3, true},
		{"one node has none", 1, 3, true},
		{"no node has one", 4, 2, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := comparison()
			for _, side := range []Side{c.A, c.B} {
				for _, r := range side.Results {
					r.Nodes, r.NodesUnpriced = 4, tc.unpriced
					if tc.unpriced == r.Nodes {
						r.Samples[1].MicroDollarsPerHour = 0
					}
				}
			}
			var page bytes.Buffer
			require.NoError(t, WriteHTML(&page, c))
			text := page.String()
			if got := strings.Count(text, `role="img"`); got != tc.plots {
				t.Errorf("%d plots, want %d", got, tc.plots)
			}
			assert.Equal(t, "a plot of costs", tc.plotOfCosts, strings.Contains(text, "Cost of nodes in use over time"))
			if got := strings.Contains(text, "no node has a price"); got == tc.plotOfCosts {
				t.Errorf("the page says that no node has a price: %v", got)
			}
		})
	}
}

func TestTablesFitTheTerminal(t *testing.T) {
	t.Parallel()
	c := comparison()
	c.Pending = append(c.Pending,
		PendingRow{Reason: "0/40 nodes are available: 12 Insufficient nvidia.com/gpu, 28 node(s) had untolerated taint(s)",
			A: 12, B: 7.5})
	for _, width := range []int{60, 80, 120, 200} {
		for name, write := range map[string]func(io.Writer) error{
			"a comparison": func(w io.Writer) error { return WriteTable(w, c) },
			"a replay":     func(w io.Writer) error { return WriteResult(w, c.B.Results[0]) },
		} {
			var out bytes.Buffer
			require.NoError(t, write(tables.Output{Writer: &out, Screen: tables.Screen{Width: width, Color: true}}))
			if widest := text.LongestLineLen(out.String()); widest > width {
				t.Errorf("%s is %d columns wide on a terminal of %d:\n%s", name, widest, width, out.String())
			}
			if strings.Contains(out.String(), "no room") &&
				(width > 80 || !strings.Contains(out.String(), "no room for B - A (--wide)")) {
				t.Errorf("%s of %d columns lacks some:\n%s", name, width, out.String())
			}
		}
	}
}

func TestDurationsOfAComparisonHaveUnits(t *testing.T) {
	t.Parallel()
	row := Row{Label: "Pod wait, median", Unit: "s", A: Stat{Mean: 6000, Min: 6000, Max: 6000},
		Difference: Stat{Mean: 90, Min: -1.5, Max: 183600}}
	got := []string{labelled(row), spread(row.A, row.Unit, 2), signed(row.Difference, row.Unit, 2)}
	assert.Equal(t, "", []string{"Pod wait, median", "1h40m", "+1m30s [-1.5s,+2d3h]"}, got)
}

func TestNounsAgreeWithTheirNumbers(t *testing.T) {
	t.Parallel()
	r := result("c", 1, 1000, 1_000_000, nil)
	r.Nodes, r.NodesInUse, r.Gangs, r.GangsStarted, r.Preemptions, r.Jobs = 4, 1, 2, 1, 2, 0
	r.Pods, r.Placed, r.Pending = 7, 5, 2
	var out bytes.Buffer
	require.NoError(t, WriteResult(&out, r))
	words := strings.Join(strings.Fields(out.String()), " ")
	assert.Contains(t, words, "Nodes in use 1 node ", "Gangs started 1 gang ", "Preempted pods 2 pods ",
		"Pods 7; 5 placed, 2 pending ")
}
