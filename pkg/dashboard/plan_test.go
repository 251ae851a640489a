package dashboard

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/pkg/overview"
	"berth.dev/berth/pkg/runtimes"
)

// nothingPlanned is the plan of a cluster in which nothing runs.
func nothingPlanned(rows [][]string, _ time.Time) *overview.Plan {
	return &overview.Plan{Rows: make([]overview.PlanRow, len(rows))}
}

// after is a moment that many minutes after the cluster was taken.
func after(minutes float64) time.Time {
	return cluster().Taken.Add(time.Duration(minutes * float64(time.Minute)))
}

// runs is a stay of two pods that began five minutes ago and is to end in ten.
func runs() overview.Stay {
	return overview.Stay{Kind: overview.StayRunning, Namespace: "team", Workload: "before", Pods: 2, Nodes: 1,
		MilliGPU: 2000,
		From:     after(-5), To: after(10), By: after(12), Basis: runtimes.Declared}
}

// waits is a gang that is to start in ten minutes.
func waits() overview.Stay {
	return overview.Stay{Kind: overview.StayReserved, Namespace: "team", Workload: "g", Nodes: 1, From: after(10),
		Earliest: after(8),
		Latest:   after(14), To: after(40), By: after(50), Basis: runtimes.FromItsRuns}
}

// evilPlan is one in which every text would be harmful on a page.
func evilPlan(rows [][]string, now time.Time) *overview.Plan {
	p := nothingPlanned(rows, now)
	bad := runs()
	bad.Namespace, bad.Workload = evil, evil
	if len(rows) > 0 {
		p.Rows[0] = overview.PlanRow{Stays: []overview.Stay{bad, waits()}, More: 3}
	}
	alone := waits()
	alone.Workload = evil
	p.Waiting, p.Unread = []overview.Stay{alone}, evil
	return p
}

func TestThePageHasThePlan(t *testing.T) {
	t.Parallel()
	_, address := started(t)
	_, body, _ := get(t, address)
	for _, want := range []string{
		`<option value="">as long as needed</option>`, `class="span running"`, `class="span reserved"`, ">in 10m</text>", ">now</text>",
		"What was learned of run times is left out", "and 3 smaller workloads",
		"expected to start at 12:10:00 UTC, between 12:08:00 UTC and 12:14:00 UTC",
		"to end at 12:40:00 UTC, nine times in ten by 12:50:00 UTC, by its earlier runs",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if strings.Contains(body, "<script>alert") {
		t.Error("a name is taken for a part of the page")
	}
	_, body, _ = get(t, address+"?span=6h")
	if !strings.Contains(body, `<option value="6h" selected>`) || !strings.Contains(body, ">in 6h</text>") {
		t.Error("the plan does not look ahead for as long as is chosen")
	}
	_, body, _ = get(t, address+"?filter=nothing-of-this-name")
	if strings.Contains(body, `class="span`) {
		t.Error("a filter leaves what it does not name in the plan")
	}
}

func TestHowFarThePlanLooksAhead(t *testing.T) {
	t.Parallel()
	stays := func(list ...overview.Stay) []placed { return []placed{{stays: list}} }
	long, service := runs(), runs()
	long.To = after(60 * 24 * 90)
	service.To, service.By, service.Basis = time.Time{}, time.Time{}, runtimes.Endless
	for _, tc := range []struct {
		name string
		all  []placed
		want time.Duration
	}{
		{"nothing is known", stays(service), time.Hour},
		{"half of the ends that are known, and half as long again", stays(runs(), runs(), long), 15 * time.Minute},
		{"a start that is told counts before them", stays(long, waits()), 30 * time.Minute},
		{"and never longer than four weeks", stays(long), 28 * 24 * time.Hour},
	} {
		if got := aheadOf(tc.all, after(0)); got != tc.want {
			t.Errorf("%s: the plan looks ahead for %s, want %s", tc.name, got, tc.want)
		}
	}
}

func TestWhatABarOfThePlanSays(t *testing.T) {
	t.Parallel()
	change := func(s overview.Stay, f func(*overview.Stay)) overview.Stay { f(&s); return s }
	unknown := func(basis runtimes.Basis) func(*overview.Stay) {
		return func(s *overview.Stay) { s.To, s.By, s.Basis = time.Time{}, time.Time{}, basis }
	}
	for _, tc := range []struct {
		name         string
		stay         overview.Stay
		label, words string
		open         bool
	}{
		{"what runs", runs(), "before ×2",
			"team/before: running, 2 pods with 2 GPUs; since 11:55:00 UTC; to end at 12:10:00 UTC, nine times in ten by " +
				"12:12:00 UTC, by what it declares", false},
		{"what should have ended", change(runs(), func(s *overview.Stay) { s.To = after(0) }), "before ×2",
			"team/before: running, 2 pods with 2 GPUs; since 11:55:00 UTC; its end is due, by what it declares", false},
		{"a pod that may run for any time", change(runs(), unknown(runtimes.Guessed)), "before ×2, end unknown",
			"team/before: running, 2 pods with 2 GPUs; since 11:55:00 UTC; end not known", true},
		{"a service", change(runs(), unknown(runtimes.Endless)), "before ×2, no end of its own",
			"team/before: running, 2 pods with 2 GPUs; since 11:55:00 UTC; does not end on its own", true},
		{"what a limit ends", change(runs(), func(s *overview.Stay) { s.Basis, s.By, s.Pods = runtimes.Limited, s.To, 1 }),
			"before",
			"team/before: running, 1 pod with 2 GPUs; since 11:55:00 UTC; to end at 12:10:00 UTC, by its limit", false},
		{"a gang with nodes", change(waits(), func(s *overview.Stay) { s.Nodes = 3 }), "g on 3 nodes",
			"team/g: reserved on 3 nodes; expected to start at 12:10:00 UTC, between 12:08:00 UTC and 12:14:00 UTC; to end at " +
				"12:40:00 UTC, nine times in ten by 12:50:00 UTC, by its earlier runs", false},
		{"a gang with nodes and no start", overview.Stay{Kind: overview.StayReserved, Namespace: "team", Workload: "g",
			Nodes: 1}, "g, start unknown",
			"team/g: reserved; start not known; end not known", true},
		{"one of another day and of others", change(runs(), func(s *overview.Stay) {
			s.Namespace, s.Workload, s.From, s.Basis = "", otherNamespaces, after(-60*24), runtimes.FromOthers
		}), "other namespaces ×2",
			"other namespaces: running, 2 pods with 2 GPUs; since Feb 28 12:00 UTC; to end at 12:10:00 UTC, nine times in ten " +
				"by 12:12:00 UTC, by runs of other pods", false},
	} {
		bar := barOf(&tc.stay, func(at time.Time) float64 { return at.Sub(after(0)).Seconds() }, after(0))
		if diff := cmp.Diff([]any{tc.label, tc.words, tc.open}, []any{bar.Label, bar.Title, bar.Open}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}

func TestManyNodesAreShownByRack(t *testing.T) {
	t.Parallel()
	nodes := func(racks, each int) []overview.Node {
		var list []overview.Node
		for r := range racks {
			for i := range each {
				list = append(list, overview.Node{Name: fmt.Sprintf("n-%d-%d", r, i), Rack: fmt.Sprintf("r%02d", r),
					Model: "NVIDIA-H100"})
			}
		}
		return list
	}
	for _, tc := range []struct {
		name        string
		nodes       []overview.Node
		first, more string
		rows        int
	}{
		{"few nodes have a row each", nodes(2, mostPlanned/2), "n-0-0", "", mostPlanned},
		{"more are shown by rack", nodes(3, mostPlanned), "r00  H100", "", 3},
		{"and of more racks the first ones", nodes(mostPlanned+2, 2), "r00  H100", "2 more groups of nodes", mostPlanned},
	} {
		names, lists, more := planned(tc.nodes)
		if len(names) != tc.rows || len(lists) != tc.rows || names[0] != tc.first || more != tc.more {
			t.Errorf("%s: %d rows, the first is %q, and %q", tc.name, len(names), names[0], more)
		}
	}
}

func TestReadersSeeNoNamesOfOthersInThePlan(t *testing.T) {
	t.Parallel()
	s := New(Source{Cluster: cluster, Plan: func(rows [][]string, now time.Time) *overview.Plan {
		p := nothingPlanned(rows, now)
		secret := waits()
		secret.Namespace, secret.Workload = "secret", "launch"
		p.Rows[0].Stays, p.Waiting = []overview.Stay{runs(), secret}, []overview.Stay{secret}
		return p
	}})
	v := s.view(nil, &reader{nodes: true, namespaces: map[string]bool{"team": true}})
	text := string(v.Plan.Line) + fmt.Sprint(v.Plan.Table.List)
	if strings.Contains(text, "launch") || strings.Contains(text, "secret") || !strings.Contains(text, otherNamespaces) {
		t.Errorf("a reader of team sees\n%s", text)
	}
	if !strings.Contains(text, "before") || len(v.Plan.Table.List) != 2 {
		t.Errorf("a reader of team does not see his own, or a gang of others without nodes:\n%s", text)
	}
}

// What a page says changes as seldom as its drawing does.
func TestTheDrawingStaysWhileNothingMovesByMuch(t *testing.T) {
	t.Parallel()
	all := []placed{{name: "n", stays: []overview.Stay{runs(), waits()}}}
	begin := after(0).Truncate((time.Hour / planSteps).Truncate(time.Second))
	if a, b := drawPlan(all, time.Hour, begin), drawPlan(all, time.Hour, begin.Add(3*time.Second)); a != b {
		t.Error("the drawing of an hour changes within three seconds")
	}
	if a, b := drawPlan(all, time.Hour, begin), drawPlan(all, time.Hour, begin.Add(time.Minute)); a == b {
		t.Error("the drawing of an hour stays the same for a minute")
	}
}
