package showback

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"berth.dev/berth/pkg/price"
)

var (
	monday    = time.Date(2026, time.January, 5, 0, 0, 0, 0, time.UTC)
	reference = price.Rates{Core: 30_000, MemoryGiB: 4_000, GPU: 350_000}
	// eight is a node on which one GPU with an eighth of the host costs 3 dollars.
	eight  = price.Capacity{MilliCPU: 96_000, MemoryMiB: 1 << 20, MilliGPU: 8000}
	eighth = price.Capacity{MilliCPU: 12_000, MemoryMiB: 1 << 17, MilliGPU: 1000}
)

func priced(name string, amount price.MicroDollars) Node {
	return Node{Name: name, Split: price.NewSplit(amount, eight, reference), Priced: true}
}

func hours(h float64) time.Time { return monday.Add(time.Duration(h * float64(time.Hour))) }

const gpuHour = 3_600_000 // in milli-GPU·seconds

func TestAccount(t *testing.T) {
	t.Parallel()
	type want struct {
		lines       []Line
		idle, empty Amount
	}
	node := priced("n", 24*price.Dollar)
	unpriced := Node{Name: "n", Split: price.NewSplit(0, eight, reference)}
	for name, tc := range map[string]struct {
		node Node
		uses []Use
		want want
	}{
		"a node without pods is empty": {
			node: node, want: want{lines: []Line{}, empty: Amount{16 * gpuHour, 48_000_000}},
		},
		"a pod pays for its part, and the rest is idle while it runs": {
			node: node, uses: []Use{{Key: "a", From: hours(0), To: hours(1), Request: eighth, KeepsNode: true}},
			want: want{lines: []Line{{Key: "a", MilliGPUSeconds: gpuHour, MicroDollars: 3_000_000}},
				idle: Amount{7 * gpuHour, 21_000_000}, empty: Amount{8 * gpuHour, 24_000_000}},
		},
		"a pod that never ends pays until the end": {
			node: node, uses: []Use{{Key: "a", From: hours(1), Request: eighth, KeepsNode: true}},
			want: want{lines: []Line{{Key: "a", MilliGPUSeconds: gpuHour, MicroDollars: 3_000_000}},
				idle: Amount{7 * gpuHour, 21_000_000}, empty: Amount{8 * gpuHour, 24_000_000}},
		},
		"what is before the beginning and after the end does not count": {
			node: node, uses: []Use{{Key: "a", From: hours(-5), To: hours(20), Request: eighth, KeepsNode: true},
				{Key: "b", From: hours(3), Request: eighth},
				{Key: "b", From: hours(-3), To: hours(-1), Request: eighth}},
			want: want{lines: []Line{{Key: "a", MilliGPUSeconds: 2 * gpuHour, MicroDollars: 6_000_000}},
				idle: Amount{14 * gpuHour, 42_000_000}},
		},
		"a pod that ends when it begins, or before, has nothing": {
			node: node, uses: []Use{{Key: "a", From: hours(1), To: hours(1), Request: eighth, KeepsNode: true},
				{Key: "a", From: hours(1), To: hours(0.5), Request: eighth}},
			want: want{lines: []Line{}, empty: Amount{16 * gpuHour, 48_000_000}},
		},
		"a pod that starts again on its node pays twice, the instant between them not": {
			node: node, uses: []Use{{Key: "a", From: hours(0), To: hours(1), Request: eighth, KeepsNode: true},
				{Key: "a", From: hours(1), To: hours(2), Request: eighth, KeepsNode: true}},
			want: want{lines: []Line{{Key: "a", MilliGPUSeconds: 2 * gpuHour, MicroDollars: 6_000_000}},
				idle: Amount{14 * gpuHour, 42_000_000}},
		},
		"a pod that belongs to its node pays, and the node is empty": {
			node: node, uses: []Use{{Key: "a", From: hours(0), Request: price.Capacity{MilliCPU: 12_000, MemoryMiB: 1 << 17}}},
			want: want{lines: []Line{{Key: "a", MicroDollars: 1_744_000}}, empty: Amount{16 * gpuHour, 46_256_000}},
		},
		"pods that hold more than the node has share its price": {
			node: node, uses: []Use{{Key: "a", From: hours(0), Request: eight, KeepsNode: true},
				{Key: "b", From: hours(0), Request: eight, KeepsNode: true},
				{Key: "b", From: hours(0), Request: eight, KeepsNode: true}},
			want: want{lines: []Line{{Key: "b", MilliGPUSeconds: 32 * gpuHour, MicroDollars: 32_000_000},
				{Key: "a", MilliGPUSeconds: 16 * gpuHour, MicroDollars: 16_000_000}}},
		},
		"a node without a price costs nothing and is counted": {
			node: unpriced, uses: []Use{{Key: "a", From: hours(0), Request: eighth, KeepsNode: true}},
			want: want{lines: []Line{{Key: "a", MilliGPUSeconds: 2 * gpuHour}}, idle: Amount{MilliGPUSeconds: 14 * gpuHour}},
		},
		"a node of which nothing is priced costs nothing, whatever it may cost": {
			node: Node{Name: "n", Split: price.NewSplit(24*price.Dollar, eight, reference)},
			uses: []Use{{Key: "a", From: hours(0), Request: eighth, KeepsNode: true}},
			want: want{lines: []Line{{Key: "a", MilliGPUSeconds: 2 * gpuHour}}, idle: Amount{MilliGPUSeconds: 14 * gpuHour}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for i := range tc.uses {
				tc.uses[i].Node = "n"
			}
			s, err := Account(hours(0), hours(2), []Node{tc.node}, tc.uses)
			if err != nil {
				t.Fatal(err)
			}
			got := want{s.Lines, s.Idle, s.Empty}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("statement (-want +got):\n%s", diff)
			}
			if wantUnpriced := map[bool]int{true: 0, false: 1}[tc.node.Priced]; s.NodesWithoutPrice != wantUnpriced ||
				(s.UnpricedMilliGPUSeconds == 16*gpuHour) == tc.node.Priced {
				t.Errorf("%d nodes without a price with %d milli-GPU·seconds, want %d", s.NodesWithoutPrice,
					s.UnpricedMilliGPUSeconds, wantUnpriced)
			}
		})
	}
}

func TestAccountRefuses(t *testing.T) {
	t.Parallel()
	node := priced("n", price.Dollar)
	for name, tc := range map[string]struct {
		from, to time.Time
		nodes    []Node
		uses     []Use
	}{
		"no time":                           {hours(1), hours(1), []Node{node}, nil},
		"time that goes back":               {hours(1), hours(0), []Node{node}, nil},
		"more than a century":               {hours(0), monday.AddDate(101, 0, 0), []Node{node}, nil},
		"a node that is there twice":        {hours(0), hours(1), []Node{node, node}, nil},
		"a use of a node that is not there": {hours(0), hours(1), []Node{node}, []Use{{Node: "m", From: hours(0)}}},
		"a bill that cannot be written down": {hours(0), monday.AddDate(99, 0, 0),
			[]Node{priced("a", price.MaxPrice), priced("b", price.MaxPrice)}, nil},
	} {
		if s, err := Account(tc.from, tc.to, tc.nodes, tc.uses); err == nil {
			t.Errorf("%s: %+v, want an error", name, s)
		}
	}
}

// drawn is a cluster with uses, of odd prices, times and requests.
func drawn(t *rapid.T) (from, to time.Time, nodes []Node, uses []Use) {
	from = monday.Add(time.Duration(rapid.Int64Range(0, int64(72*time.Hour)).Draw(t, "from")))
	to = from.Add(time.Duration(rapid.Int64Range(1, int64(100*time.Hour)).Draw(t, "lasting")))
	for i := range rapid.IntRange(0, 4).Draw(t, "nodes") {
		name := fmt.Sprint("n", i)
		n := priced(name, price.MicroDollars(rapid.Int64Range(0, int64(100*price.Dollar)).Draw(t, "price")))
		n.Priced = rapid.IntRange(0, 3).Draw(t, "priced") > 0
		nodes = append(nodes, n)
		for range rapid.IntRange(0, 12).Draw(t, "uses") {
			u := Use{Node: name, Key: rapid.SampledFrom([]string{"a", "b", None}).Draw(t, "key"),
				KeepsNode: rapid.Bool().Draw(t, "keeps"),
				From:      monday.Add(time.Duration(rapid.Int64Range(0, int64(150*time.Hour)).Draw(t, "begin"))),
				Request: price.Capacity{MilliCPU: rapid.Int64Range(0, 50_000).Draw(t, "cpu"),
					MemoryMiB: rapid.Int64Range(0, 1<<19).Draw(t, "memory"),
					MilliGPU:  rapid.Int64Range(0, 4000).Draw(t, "gpu")}}
			if rapid.Bool().Draw(t, "ends") {
				u.To = u.From.Add(time.Duration(rapid.Int64Range(0, int64(50*time.Hour)).Draw(t, "runs")))
			}
			uses = append(uses, u)
		}
	}
	return from, to, nodes, uses
}

func TestLinesAddUpToTheBill(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		from, to, nodes, uses := drawn(t)
		s, err := Account(from, to, nodes, uses)
		if err != nil {
			t.Fatal(err)
		}
		// The whole bill is that of all nodes with a price, to the micro-dollar.
		bill := wide{}
		for _, n := range nodes {
			if n.Priced {
				bill = bill.plus(product(int64(n.Split.Price), int64(to.Sub(from))))
			}
		}
		if want, _ := bill.over(moneyUnit); s.Total.MicroDollars != want {
			t.Fatalf("the whole is %d micro-dollars, want the price of the nodes, %d", s.Total.MicroDollars, want)
		}
		check := func(what string, lines []Line, idle, empty, total Amount) {
			sum := idle
			sum.add(empty)
			for _, l := range lines {
				sum.add(Amount{l.MilliGPUSeconds, l.MicroDollars})
				if l.MicroDollars < 0 || l.MilliGPUSeconds < 0 {
					t.Fatalf("%s: a line is negative: %+v", what, l)
				}
			}
			if sum != total || idle.MicroDollars < 0 || empty.MicroDollars < 0 {
				t.Fatalf("%s: lines add up to %+v, want %+v", what, sum, total)
			}
		}
		check("all", s.Lines, s.Idle, s.Empty, s.Total)
		var total Amount
		byKey, at := map[string]Amount{}, from
		for _, d := range s.Days {
			check(d.From.String(), d.Lines, d.Idle, d.Empty, d.Total)
			total.add(d.Total)
			for _, l := range d.Lines {
				sum := byKey[l.Key]
				sum.add(Amount{l.MilliGPUSeconds, l.MicroDollars})
				byKey[l.Key] = sum
			}
			if !d.From.Equal(at) || !d.To.After(d.From) {
				t.Fatalf("a day from %s to %s follows %s", d.From, d.To, at)
			}
			at = d.To
		}
		if total != s.Total || !at.Equal(to) {
			t.Fatalf("days until %s add up to %+v, want %+v until %s", at, total, s.Total, to)
		}
		for _, l := range s.Lines {
			if want := byKey[l.Key]; want != (Amount{l.MilliGPUSeconds, l.MicroDollars}) {
				t.Fatalf("days of %s add up to %+v, want %+v", l.Key, want, l)
			}
		}
	})
}

// TestGPUTimeIsThatOfThePods counts a second time, pod by pod.
func TestGPUTimeIsThatOfThePods(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		from, to, nodes, uses := drawn(t)
		s, err := Account(from, to, nodes, uses)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]wide{}
		for _, u := range uses {
			begin, end := u.From, u.To
			if begin.Before(from) {
				begin = from
			}
			if end.IsZero() || end.After(to) {
				end = to
			}
			want[u.Key] = want[u.Key].plus(product(u.Request.MilliGPU, int64(end.Sub(begin))))
		}
		got := map[string]int64{}
		for _, l := range s.Lines {
			got[l.Key] = l.MilliGPUSeconds
		}
		for key, exact := range want {
			// A line is rounded once a day.
			seconds, _ := exact.over(gpuUnit)
			if diff := got[key] - seconds; diff < -int64(len(s.Days)) || diff > int64(len(s.Days)) {
				t.Fatalf("%s has %d milli-GPU·seconds, want %d", key, got[key], seconds)
			}
		}
	})
}

func TestTheOrderDoesNotMatter(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		from, to, nodes, uses := drawn(t)
		first, err := Account(from, to, nodes, uses)
		if err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(1, rapid.Uint64().Draw(t, "seed")))
		r.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
		r.Shuffle(len(uses), func(i, j int) { uses[i], uses[j] = uses[j], uses[i] })
		second, err := Account(from, to, nodes, uses)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(first, second); diff != "" {
			t.Fatalf("in another order (-first +second):\n%s", diff)
		}
	})
}

func TestKeys(t *testing.T) {
	t.Parallel()
	pod := Pod{Namespace: "ml", Gang: "bert", Labels: map[string]string{"team": "vision", "example.com/team": "speech",
		"empty": ""}}
	for by, want := range map[string]string{
		"namespace": "ml", "gang": "ml/bert", "label=team": "vision", "label=example.com/team": "speech",
		"label=absent": None, "label=empty": None,
	} {
		parsed, err := ParseBy(by)
		if err != nil {
			t.Errorf("%s: %v", by, err)
			continue
		}
		if got := parsed.Key(pod); got != want || parsed.String() != by {
			t.Errorf("%s (%s): %q, want %q", by, parsed, got, want)
		}
	}
	if gang, _ := ParseBy("gang"); gang.Key(Pod{Namespace: "ml"}) != None {
		t.Error("a pod in no gang has a key")
	}
	for _, by := range []string{"", "pod", "Namespace", "label", "label=", "label=-a", "label=a b", "label=/a", "label=a/",
		"label=A/b", "label=a/b/c", "label=a=b", "label=a..b/c", "label=-a/b", "label=.a/b"} {
		if parsed, err := ParseBy(by); err == nil {
			t.Errorf("%q is taken as %v", by, parsed)
		}
	}
}
