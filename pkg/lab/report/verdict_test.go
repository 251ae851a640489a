package report

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"berth.dev/berth/pkg/lab/replay/replayed"
	"berth.dev/berth/test/harness/assert"
	"berth.dev/berth/test/harness/require"
)

// compared compares sides whose results differ by what change does to those of B.
func compared(seeds int, change func(seed int, b *replayed.Result)) *Comparison {
	var a, b []*replayed.Result
	for seed := range seeds {
		a = append(a, result("a.yaml", uint64(seed), 2000, 1_000_000, nil))
		b = append(b, result("b.yaml", uint64(seed), 2000, 1_000_000, nil))
		change(seed, b[seed])
	}
	return Compare(a, b)
}

func TestVerdicts(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		seeds  int
		change func(seed int, b *replayed.Result)
		want   []string
	}{
		"no metric differs": {2, func(int, *replayed.Result) {}, []string{"B does as well as A: no metric differs.", "none",
			"none"}},
		"the largest first, with its range": {2, func(seed int, b *replayed.Result) {
			b.AllocatedPercent = []float64{52, 53}[seed]
			b.MicroDollarsPerHour = []int64{700_000, 500_000}[seed]
		}, []string{"B is better than A in 2 of 2 metrics and worse in 0.",
			"Cost of nodes in use -40.0% [-50.0, -30.0]; GPUs allocated +5.0% [+4.0, +6.0]", "none"}},
		"from nothing, in the unit": {1, func(_ int, b *replayed.Result) { b.Preemptions = 3 },
			[]string{"B is better than A in 0 of 3 metrics and worse in 1.", "none", "Preempted pods +3 pods"}},
		"it depends on the seed": {2, func(seed int, b *replayed.Result) { b.AllocatedPercent += float64(2*seed - 1) },
			[]string{"B is better than A in 0 of 2 metrics and worse in 0; in 1 it depends on the seed.", "none", "none"}},
		"less than anybody would speak of": {1, func(_ int, b *replayed.Result) { b.MicroDollarsPerHour += 100 },
			[]string{"B does as well as A: no metric differs.", "none", "none"}},
		"work that is left undone": {1, func(_ int, b *replayed.Result) {
			b.Preemptions, b.Pending, b.StrandedMilli, b.MicroDollars = 1, 2, 3000, 4_000_000
			b.PendingByReason = []replayed.Reason{{Reason: "no room", Pods: 1}, {Reason: "spot capacity", Pods: 2}}
		}, []string{"B leaves 2 pods pending, A 0: spot capacity. So cost, nodes in use, stranded GPUs, waits and " +
			"completion are not compared. B is better than A in 0 of 3 metrics and worse in 2.", "none",
			"Pods pending at the end +2 pods; Preempted pods +1 pod"}},
		"less work at less cost": {1, func(_ int, b *replayed.Result) {
			b.Pending, b.MicroDollarsPerHour, b.NodesInUse = 40, 100, 0.1
		}, []string{"B leaves 40 pods pending, A 0. So cost, nodes in use, stranded GPUs, waits and completion are not " +
			"compared. B is better than A in 0 of 2 metrics and worse in 1.", "none", "Pods pending at the end +40 pods"}},
		"jobs that end on one side alone": {1, func(_ int, b *replayed.Result) { b.JobsCompleted = 3 },
			[]string{"A completes 0 jobs, B 3. So cost, nodes in use, stranded GPUs, waits and completion are not " +
				"compared. B is better than A in 1 of 2 metrics and worse in 0.", "Jobs completed +3 jobs", "none"}},
		"more than are named": {2, func(_ int, b *replayed.Result) {
			b.Preemptions, b.StrandedMilli, b.MicroDollars = 1, 3000, 4_000_000
			b.PodWait, b.GangWait = replayed.Waits{P50: 7200, P95: 7200}, replayed.Waits{P50: 0.4}
		}, []string{"B is better than A in 0 of 8 metrics and worse in 5.", "none",
			"Whole bill +$4; Pod wait, median +2h; Pod wait, 95th percentile +2h; and 2 more"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := compared(tc.seeds, tc.change).Verdict.lines(tc.seeds)
			assert.Equal(t, "", tc.want, got)
		})
	}
}

func TestJobsThatComeAndGoAreJudgedByBillWaitsAndCompletion(t *testing.T) {
	t.Parallel()
	keys := func(r *replayed.Result) (list []string) {
		for _, m := range ordered(r) {
			list = append(list, m.key)
		}
		return list
	}
	trace, dump, order := &replayed.Result{Mode: replayed.VirtualTime,
		Jobs: 1}, &replayed.Result{Mode: replayed.VirtualTime}, &replayed.Result{Mode: replayed.ArrivalOrder, Jobs: 1}
	if got := keys(trace); got[0] != "bill" || got[1] != "wait-p50" ||
		slices.Index(got, "completion-p95") > slices.Index(got, "allocated") {
		t.Errorf("a trace's metrics are %v", got)
	}
	if got := keys(dump)[0]; got != "allocated" {
		t.Errorf("a dump's first metric is %s", got)
	}
	if got := keys(order); got[0] != "allocated" || slices.Contains(got, "bill") {
		t.Errorf("the metrics in arrival order are %v", got)
	}
}

func TestASideThatTellsNoStartsIsNotTheBetterOne(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ toldByA, better int }{"only one tells": {0, 0}, "both tell": {4, -1}} {
		a, b := result("a", 1, 0, 0, nil), result("b", 1, 0, 0, nil)
		a.Mode, b.Mode = replayed.VirtualTime, replayed.VirtualTime
		a.ToldStartError.Count, b.ToldStartError.Count, b.ToldStartError.P50 = test.toldByA, 4, 60
		rows := Compare([]*replayed.Result{a}, []*replayed.Result{b}).Rows
		at := slices.IndexFunc(rows, func(r Row) bool { return r.Key == "told-error-p50" })
		if at < 0 || rows[at].Better != test.better {
			t.Errorf("%s: row %d of %+v, want that better is %d", name, at, rows, test.better)
		}
	}
}

func TestWhatIsNothingIsNotShown(t *testing.T) {
	t.Parallel()
	empty := func() []*replayed.Result {
		return []*replayed.Result{{Input: "i", Configuration: "c", Profile: "p", Mode: replayed.VirtualTime,
			Basis: replayed.EndState, Nodes: 1, NodesUnpriced: 1}}
	}
	c := Compare(empty(), empty())
	var out, page bytes.Buffer
	require.NoError(t, WriteTable(&out, c))
	require.NoError(t, WriteHTML(&page, c))
	for _, text := range []string{out.String(), page.String()} {
		if !strings.Contains(text, "nothing to measure, on both sides: GPUs allocated;") || strings.Contains(text, "▁") ||
			strings.Contains(text, "<figure") || strings.Contains(text, ">Plots<") {
			t.Errorf("something is shown of nothing:\n%s", text)
		}
	}
	if len(c.Rows) != len(metrics)+1 {
		t.Errorf("%d metrics are left for conditions and JSON, want all %d", len(c.Rows), len(metrics)+1)
	}
}

func TestTheNotesSayWhatOneSideAloneDoes(t *testing.T) {
	t.Parallel()
	c := compared(1, func(_ int, b *replayed.Result) { b.SharesGPUs, b.KnowsGangs = true, true })
	if sides := c.sides(); len(sides) != 0 {
		t.Errorf("without shares and gangs: %q", sides)
	}
	a := c.A.Results[0]
	a.SharePods, a.Gangs, a.HeldMilli, a.IncompleteMilli = 7, 1, 3500, 2000
	want := []string{
		"A gives a whole GPU to each pod that asks for a share (7 such pods), 1.5 GPUs more than they ask for; B places " +
			"shares. On both sides a share counts as what it asks for",
		"A places the pods of a gang one by one (1 gang), and incomplete gangs hold 2 GPUs without working; B starts them " +
			"together. On both sides an incomplete gang counts as not allocated",
	}
	assert.Equal(t, "", want, c.sides())
}

func TestBasisWords(t *testing.T) {
	t.Parallel()
	c := compared(1, func(_ int, b *replayed.Result) {
		b.Window = &replayed.Window{From: 600, To: 3 * 3600, Until: replayed.WorkDone}
	})
	if got, want := c.Basis(), "Figures of A are means over the time from 0s to 2h, the last arrival; of B means over "+
		"the time from 10m to 3h, when the work is done."; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	c.B.Results[0].Basis, c.A.Results[0].Basis = replayed.EndState, replayed.EndState
	if got, want := c.Basis(), "Figures are from the end."; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestTheVerdictSaysTheChangeThatTheTableSays(t *testing.T) {
	t.Parallel()
	// Two seeds: 10 to 20 is +100%, 40 to 50 is +25%, and the means go from 25 to 35.
	rows := []Row{{Key: "pending", Label: "Pods pending", Better: -1, A: Stat{Mean: 25, Min: 10, Max: 40},
		B:          Stat{Mean: 35, Min: 20, Max: 50},
		Difference: Stat{Mean: 10, Min: 10, Max: 10}, Percent: new(40.0), BySeed: &Stat{Mean: 62.5, Min: 25, Max: 100}}}
	if got, want := verdictOn(rows, "").lines(2)[2], "Pods pending +40.0% [+25.0, +100.0]"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
