package starttime

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"berth.dev/berth/pkg/runtimes"
)

// slots is a node on which each end makes room for one pod.
func slots(name string, free int, ends ...time.Duration) Node {
	n := Node{Name: name, Fits: [][]int{make([]int, len(ends)+1), make([]int, len(ends)+1)}}
	for k := range n.Fits[0] {
		n.Fits[0][k] = free + k
	}
	n.Fits[1][len(ends)] = 1
	for _, end := range ends {
		n.Ends = append(n.Ends, runtimes.Certain(end))
	}
	return n
}

func single(name string, shape int) Single {
	return Single{Name: name, Shape: shape, Run: runtimes.Certain(time.Hour)}
}

func TestSinglePodsAreToldTheirStarts(t *testing.T) {
	t.Parallel()
	reservation := &Reservation{At: now, Start: runtimes.Certain(3 * time.Hour), waited: 10 * time.Hour}
	wide := runtimes.Forecast{minute, 2 * minute, 5 * minute, 60 * minute, 90 * minute, 120 * minute, 200 * minute}
	uncertain := func(count int) []Node {
		var nodes []Node
		for i := range count {
			n := slots(fmt.Sprint("n", i), 0, 0)
			n.Ends[0] = wide
			nodes = append(nodes, n)
		}
		return nodes
	}
	for _, c := range []struct {
		name    string
		nodes   []Node
		kept    []Kept
		singles []Single
		// want holds the likely starts, 0 for none.
		want []time.Duration
	}{
		{name: "one after the other, as pods end", nodes: []Node{slots("a", 0, 20*minute, 50*minute),
			slots("b", 0, 30*minute)},
			singles: []Single{single("p", 0), single("q", 0), single("r", 0)}, want: []time.Duration{20 * minute, 30 * minute,
				50 * minute}},
		{name: "one that there is a place for waits for something else", nodes: []Node{slots("a", 1, 20*minute)},
			singles: []Single{single("p", 0), single("q", 0)}, want: []time.Duration{0, 20 * minute}},
		{name: "a pod that asks for less passes one that asks for more", nodes: []Node{slots("a", 0, 20*minute, 50*minute)},
			singles: []Single{single("whole", 1), single("p", 0)}, want: []time.Duration{50 * minute, 20 * minute}},
		{name: "a pod that asks for more comes after those before it",
			nodes:   []Node{slots("a", 0, 20*minute), slots("b", 0, 50*minute)},
			singles: []Single{single("p", 0), single("whole", 1)}, want: []time.Duration{20 * minute, 50 * minute}},
		{name: "services do not end", nodes: []Node{slots("a", 0, runtimes.Never)}, singles: []Single{single("p", 0)},
			want: []time.Duration{0}},
		{name: "the first of many uncertain ends is soon", nodes: uncertain(12), singles: []Single{single("p", 0)},
			want: []time.Duration{67 * time.Second}},
		{name: "the end of a single one is not", nodes: uncertain(1), singles: []Single{single("p", 0)},
			want: []time.Duration{60 * minute}},
		{name: "a pod that is gone before the gang starts", nodes: []Node{slots("a", 0, 20*minute)},
			kept:    []Kept{{Node: 0, Share: 1, Start: reservation, Until: runtimes.Certain(8 * time.Hour)}},
			singles: []Single{single("p", 0)}, want: []time.Duration{20 * minute}},
		{name: "a pod that is not starts after the gang", nodes: []Node{slots("a", 0, 150*minute)},
			kept:    []Kept{{Node: 0, Share: 1, Start: reservation, Until: runtimes.Certain(8 * time.Hour)}},
			singles: []Single{single("p", 0)}, want: []time.Duration{8 * time.Hour}},
		{name: "no pod enters what is kept without a time", nodes: []Node{slots("a", 1, 20*minute)},
			kept:    []Kept{{Node: 0, Share: 1, Until: runtimes.Certain(8 * time.Hour)}},
			singles: []Single{single("p", 0)}, want: []time.Duration{8 * time.Hour}},
		{name: "nothing is kept from a pod that backfills", nodes: []Node{slots("a", 0, 20*minute)},
			kept:    []Kept{{Node: 0, Share: 1, Until: runtimes.Certain(8 * time.Hour)}},
			singles: []Single{{Name: "p", Backfills: true}}, want: []time.Duration{20 * minute}},
		{name: "a part of the node is kept", nodes: []Node{slots("a", 0, 20*minute, 40*minute)},
			kept:    []Kept{{Node: 0, Share: 0.5, Until: runtimes.Certain(8 * time.Hour)}},
			singles: []Single{single("p", 0), single("q", 0)}, want: []time.Duration{20 * minute, 8 * time.Hour}},
		{name: "two gangs on one node, one behind the other", nodes: []Node{slots("a", 0, 20*minute)},
			kept: []Kept{{Node: 0, Share: 1, Until: runtimes.Certain(8 * time.Hour)},
				{Node: 0, Share: 1, Until: runtimes.Certain(9 * time.Hour)}},
			singles: []Single{single("p", 0)}, want: []time.Duration{9 * time.Hour}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := make([]time.Duration, len(c.singles))
			for _, e := range NewBoard(Defaults()).PlanSingles(c.nodes, c.kept, c.singles, now) {
				got[e.Single] = e.Told.Likely.Sub(now)
			}
			for i := range got {
				if math.Abs(float64(got[i]-c.want[i])) > 0.021*float64(c.want[i]) {
					t.Errorf("pod %s starts in %v, want %v", c.singles[i].Name, got[i], c.want[i])
				}
			}
		})
	}
}

func TestAnEstimateNamesThePodWhoseEndMakesThePlace(t *testing.T) {
	t.Parallel()
	nodes := []Node{slots("a", 0, 20*minute, 50*minute), slots("b", 0, 30*minute)}
	got := NewBoard(Defaults()).PlanSingles(nodes, nil, []Single{single("p", 0), single("q", 0), single("whole", 1)}, now)
	for i, want := range [][2]int{{0, 0}, {1, 0}, {0, 1}} {
		if got[i].Node != want[0] || got[i].Last != want[1] {
			t.Errorf("pod %d waits for pod %d of node %d, want %v", i, got[i].Last, got[i].Node, want)
		}
	}
}

func TestWhatASinglePodIsToldStaysWhileItMayBeTrue(t *testing.T) {
	t.Parallel()
	b := NewBoard(Defaults())
	plan := func(at, end time.Duration) Told {
		return b.PlanSingles([]Node{slots("a", 0, end)}, nil, []Single{single("p", 0)}, now.Add(at))[0].Told
	}
	first := plan(0, time.Hour)
	if next := plan(minute, time.Hour); next != first {
		t.Errorf("told %v, then %v", first, next)
	}
	if next := plan(2*minute, 30*time.Hour); next == first {
		t.Error("a start that is much later is not told")
	}
	if told, ok := b.Started("p", now.Add(time.Hour)); !ok || told != first {
		t.Errorf("told %v first, want %v", told, first)
	}
}

// learnt is what is known of pods after 256 that ran for an hour in the mean.
func learnt(r *rand.Rand) runtimes.Source {
	book := runtimes.NewBook()
	class := runtimes.Class{GPUs: 1}
	for range 256 {
		book.Ended(&class, &runtimes.Claim{}, time.Duration(r.ExpFloat64()*float64(time.Hour)))
	}
	return book.Of(&class, &runtimes.Claim{})
}

func BenchmarkPlanSingles(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	source := learnt(r)
	nodes := make([]Node, 5000)
	for i := range nodes {
		nodes[i] = slots(fmt.Sprint("n", i), 0, make([]time.Duration, 8)...)
		for k := range nodes[i].Ends {
			nodes[i].Ends[k] = source.Left(time.Duration(r.ExpFloat64() * float64(time.Hour)))
		}
	}
	var singles []Single
	for i := range 16 {
		singles = append(singles, single(fmt.Sprint("p", i), i%2))
	}
	board := NewBoard(Defaults())
	b.ReportAllocs()
	for b.Loop() {
		board.PlanSingles(nodes, nil, singles, now)
	}
}
