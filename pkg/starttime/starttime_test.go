package starttime

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"berth.dev/berth/pkg/runtimes"
)

var now = time.Unix(1_800_000_000, 0)

const minute = time.Minute

// whole returns a node on which one member fits when all of its pods have gone.
func whole(name string, domain int, ends ...time.Duration) Node {
	n := Node{Name: name, Domains: []int{domain}, Fits: [][]int{make([]int, len(ends)+1)}}
	slices.Sort(ends)
	for _, end := range ends {
		n.Ends = append(n.Ends, runtimes.Certain(end))
	}
	n.Fits[0][len(ends)] = 1
	return n
}

// gang returns a gang of members that need a whole node each and run for an hour.
func gang(name string, members int) Gang {
	return Gang{Name: name, Members: []Members{{Count: members}}, Run: runtimes.Certain(time.Hour), Waited: 10 * minute,
		MaxNodes: 1 << 20}
}

func TestPlans(t *testing.T) {
	never := runtimes.Never
	shared := Node{Name: "s", Ends: []runtimes.Forecast{runtimes.Certain(5 * minute), runtimes.Certain(20 * minute)},
		Fits: [][]int{{1, 2, 4}, {0, 0, 1}}}
	for _, c := range []struct {
		name  string
		nodes []Node
		gangs []Gang
		// want holds for each reservation its gang, nodes and start in minutes.
		want []string
	}{
		{"nodes that are free start a gang now", []Node{whole("a", 0), whole("b", 0, 5*minute), whole("c", 0)},
			[]Gang{gang("g", 2)}, []string{"g [a c] 0"}},
		{"four short pods are better than one long one",
			[]Node{whole("a", 0, 60*minute), whole("b", 0, minute, 2*minute, 3*minute, 4*minute)}, []Gang{gang("g", 1)},
			[]string{"g [b] 4"}},
		{"a pod that never ends is not waited for", []Node{whole("a", 0, never), whole("b", 0, 600*minute)},
			[]Gang{gang("g", 1)}, []string{"g [b] 600"}},
		{"a gang that would wait for a pod that never ends has no start",
			[]Node{whole("a", 0, never), whole("b", 0, 600*minute)}, []Gang{gang("g", 2)}, nil},
		{"members share a domain", []Node{whole("a", 0, minute), whole("b", 0, 30*minute), whole("c", 1, 10*minute),
			whole("d", 1, 20*minute)}, []Gang{gang("g", 2)}, []string{"g [c d] 20"}},
		{"nodes outside all domains are not used", []Node{whole("a", -1), whole("b", 0, 9*minute)}, []Gang{gang("g", 1)},
			[]string{"g [b] 9"}},
		{"a gang of the whole cluster gets a start", []Node{whole("a", 0, 10*minute), whole("b", 0, 90*minute),
			whole("c", 0)}, []Gang{gang("g", 3)}, []string{"g [c a b] 90"}},
		{"the next gang starts after the one before it", []Node{whole("a", 0, 10*minute), whole("b", 0, 20*minute)},
			[]Gang{gang("g", 2), gang("h", 2)}, []string{"g [a b] 20", "h [a b] 80"}},
		{"the next gang starts beside the one before it", []Node{whole("a", 0, 10*minute), whole("b", 0, 20*minute)},
			[]Gang{gang("g", 1), gang("h", 1)}, []string{"g [a] 10", "h [b] 20"}},
		{"a gang without a start does not hold up the next one", []Node{whole("a", 0, 10*minute)},
			[]Gang{gang("g", 2), gang("h", 1)}, []string{"h [a] 10"}},
		{"no more nodes are used than allowed", []Node{whole("a", 0), whole("b", 0)},
			[]Gang{{Name: "g", Members: []Members{{Count: 2}}, MaxNodes: 1}}, nil},
		{"parts of a node come one by one", []Node{shared}, []Gang{{Name: "g", Members: []Members{{0, 2}}, MaxNodes: 1}},
			[]string{"g [s s] 5"}},
		{"all of a node comes last", []Node{shared}, []Gang{{Name: "g", Members: []Members{{0, 4}}, MaxNodes: 1}},
			[]string{"g [s s s] 20"}},
		{"members of two shapes do not share what is not enough for both", []Node{shared},
			[]Gang{{Name: "g", Members: []Members{{1, 1}, {0, 1}}, MaxNodes: 1}}, nil},
		{"half of a node is left to the next gang", []Node{shared}, []Gang{
			{Name: "g", Members: []Members{{0, 2}}, MaxNodes: 1, Run: runtimes.Certain(time.Hour)},
			{Name: "h", Members: []Members{{0, 2}}, MaxNodes: 1, Run: runtimes.Certain(time.Hour)},
			{Name: "i", Members: []Members{{0, 1}}, MaxNodes: 1}}, []string{"g [s s] 5", "h [s s] 20", "i [s] 80"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := told(c.nodes, c.gangs); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// told is by gang its nodes, and in how many minutes it starts.
func told(nodes []Node, gangs []Gang) (all []string) {
	for _, r := range NewBoard(Defaults()).Plan(nodes, gangs, now) {
		var names []string
		for _, place := range r.Places {
			names = append(names, nodes[place.Node].Name)
		}
		all = append(all, fmt.Sprintf("%s %v %.0f", r.Gang, names, r.Start.At(0.5).Minutes()))
	}
	return all
}

func TestTheFirstGangsAreHeld(t *testing.T) {
	var nodes []Node
	var gangs []Gang
	for i := range 5 {
		nodes = append(nodes, whole(fmt.Sprint("n", i), 0, time.Duration(i+1)*minute))
		gangs = append(gangs, gang(fmt.Sprint("g", i), 1))
	}
	for i, r := range NewBoard(Defaults()).Plan(nodes, gangs, now) {
		if r.Held != (i < Defaults().Held) {
			t.Errorf("reservation %d: held %v", i, r.Held)
		}
	}
}

func TestTheStartIsTheSoonestOfAllChoices(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		n := 1 + r.IntN(7)
		nodes := make([]Node, n)
		for i := range nodes {
			ends := make([]time.Duration, r.IntN(4))
			for k := range ends {
				if ends[k] = time.Duration(r.IntN(100)) * minute; r.IntN(12) == 0 {
					ends[k] = runtimes.Never
				}
			}
			nodes[i] = whole(fmt.Sprint("n", i), r.IntN(3)-1, ends...)
		}
		g := gang("g", 1+r.IntN(n))
		best := runtimes.Never
		for set := range 1 << n {
			count, last, domain, fits := 0, time.Duration(0), -2, true
			for i := range nodes {
				if set&(1<<i) == 0 {
					continue
				}
				count++
				for k := range nodes[i].Ends {
					last = max(last, nodes[i].Ends[k].At(0.5))
				}
				fits = fits && nodes[i].Domains[0] >= 0 && (domain == -2 || domain == nodes[i].Domains[0])
				domain = nodes[i].Domains[0]
			}
			if fits && count == g.Members[0].Count {
				best = min(best, last)
			}
		}
		plan := NewBoard(Defaults()).Plan(nodes, []Gang{g}, now)
		switch {
		case best == runtimes.Never && len(plan) > 0:
			t.Fatalf("a start where none is possible: %v", plan)
		case best != runtimes.Never && (len(plan) == 0 || plan[0].Start.At(0.5) != best):
			t.Fatalf("got %v, the soonest is %v", plan, best)
		}
	}
}

func TestNodesAreExchangedOnlyForAMuchSoonerStart(t *testing.T) {
	for _, c := range []struct {
		name  string
		other time.Duration
		want  string
	}{
		{"a little sooner is not enough", 40 * minute, "a"},
		{"less than half of the time is", 20 * minute, "b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := NewBoard(Defaults())
			b.Plan([]Node{whole("a", 0, 50*minute), whole("b", 0, 60*minute)}, []Gang{gang("g", 1)}, now)
			nodes := []Node{whole("a", 0, 50*minute), whole("b", 0, c.other)}
			plan := b.Plan(nodes, []Gang{gang("g", 1)}, now.Add(minute))
			if got := nodes[plan[0].Places[0].Node].Name; got != c.want {
				t.Errorf("the gang starts on %s, want %s", got, c.want)
			}
		})
	}
}

func TestAStartThatSlipsTooOftenIsFirm(t *testing.T) {
	s := Defaults()
	s.Slips = 2
	b := NewBoard(s)
	for i, want := range []bool{false, false, true} {
		at := now.Add(time.Duration(i) * 2 * time.Hour)
		r := b.Plan([]Node{whole("a", 0, 30*minute)}, []Gang{gang("g", 1)}, at)[0]
		if r.Firm != want {
			t.Errorf("after %d slips: firm %v", i, r.Firm)
		}
		if !r.Told.Likely.Equal(at.Add(30 * minute)) {
			t.Errorf("after %d slips, %v is told", i, r.Told)
		}
	}
}

func TestAFirmStartDoesNotMove(t *testing.T) {
	s := Defaults()
	s.Slips = 1
	b := NewBoard(s)
	b.Plan([]Node{whole("a", 0, 30*minute)}, []Gang{gang("g", 1)}, now)
	left := runtimes.Certain(20 * minute)
	for i, want := range []Entry{Gone, Refused, Refused} {
		at := now.Add(2*time.Hour + time.Duration(i)*15*minute)
		// The likely start is always half an hour away.
		r := b.Plan([]Node{whole("a", 0, 30*minute)}, []Gang{gang("g", 1)}, at)[0]
		if got := s.MayEnter(&r, &left, 0, at); got != want || !r.Firm {
			t.Errorf("%v after it became firm: %v, want %v", at.Sub(now.Add(2*time.Hour)), got, want)
		}
	}
}

func TestWhatIsToldStaysWhileItIsTrue(t *testing.T) {
	b := NewBoard(Defaults())
	plan := func(left, at time.Duration) Told {
		return b.Plan([]Node{whole("a", 0, left)}, []Gang{gang("g", 1)}, now.Add(at))[0].Told
	}
	first := plan(30*minute, 0)
	// Nothing is known of how wrong told starts are: a twentieth of the time to three times as long.
	if want := (Told{now.Add(33 * time.Second), now.Add(30 * minute), now.Add(92 * minute)}); first != want {
		t.Fatalf("told %v, want %v", first, want)
	}
	if next := plan(40*minute, 5*minute); next != first {
		t.Errorf("told %v after %v, although it may still be true", next, first)
	}
	if next := plan(5*minute, 20*minute); !next.Latest.Equal(now.Add(37 * minute)) {
		t.Errorf("a start that is known better is not told: %v", next)
	}
}

func TestSlipsCountOnlyWhileNodesAreKept(t *testing.T) {
	s := Defaults()
	s.Slips, s.Held = 1, 1
	b := NewBoard(s)
	nodes := []Node{whole("a", 0, 30*minute)}
	for i := range 3 {
		plan := b.Plan(nodes, []Gang{gang("first", 1), gang("second", 1)}, now.Add(time.Duration(i)*10*time.Hour))
		if i > 0 && (!plan[0].Firm || plan[1].Firm || !plan[1].Slipped) {
			t.Fatalf("after %d slips: %+v", i, plan)
		}
	}
	at := now.Add(40 * time.Hour)
	r := b.Plan(nodes, []Gang{gang("second", 1)}, at)[0]
	if r.Until.Before(at) {
		t.Errorf("nodes are kept from %v on, and pods have to be gone by %v", at, r.Until)
	}
}

func TestAPodWhoseEndIsDueHasNotGone(t *testing.T) {
	for _, c := range []struct {
		name string
		ends []time.Duration
		want bool
	}{{"a node without pods", nil, true}, {"a pod whose end is due", []time.Duration{0}, false}} {
		r := NewBoard(Defaults()).Plan([]Node{whole("a", 0, c.ends...)}, []Gang{gang("g", 1)}, now)[0]
		if r.Now() != c.want {
			t.Errorf("%s: the gang can start now: %v", c.name, r.Now())
		}
	}
}

func TestAnIntervalIsNeverAPoint(t *testing.T) {
	b := NewBoard(Defaults())
	for range 2 * enoughLessons {
		b.Plan([]Node{whole("a", 0, 50*minute)}, []Gang{gang("g", 1)}, now)
		b.Started("g", now.Add(50*minute))
	}
	told := b.Plan([]Node{whole("a", 0, 50*minute)}, []Gang{gang("g", 1)}, now)[0].Told
	if want := (Told{now.Add(48*minute + 30*time.Second), now.Add(50 * minute),
		now.Add(51*minute + 30*time.Second)}); told != want {
		t.Errorf("told %v after exact starts only, want %v", told, want)
	}
}

func TestIntervalsLearnFromErrors(t *testing.T) {
	b := NewBoard(Defaults())
	node := func() []Node { return []Node{whole("a", 0, 30*minute)} }
	r := rand.New(rand.NewPCG(2, 1))
	held := 0
	for i := range 500 {
		told := b.Plan(node(), []Gang{gang("g", 1)}, now)[0].Told
		start := now.Add(time.Duration(float64(30*minute) * (0.5 + 2*r.Float64())))
		if i >= 100 && !start.Before(told.Earliest) && !start.After(told.Latest) {
			held++
		}
		b.Started("g", start)
	}
	if held < 280 || held > 360 {
		t.Errorf("%d of 400 starts are within the interval that was told, want about 320", held)
	}
}

func TestStartedSaysWhatWasToldFirst(t *testing.T) {
	s := Defaults()
	b := NewBoard(s)
	slipped := 0
	for i := range 4 {
		if b.Plan([]Node{whole("a", 0, 30*minute)}, []Gang{gang("g", 1)}, now.Add(time.Duration(i)*2*time.Hour))[0].Slipped {
			slipped++
		}
	}
	first, told := b.Started("g", now.Add(100*minute))
	if !told || !first.Likely.Equal(now.Add(30*minute)) || slipped != 3 {
		t.Errorf("told %v first, %v; slipped %d times", first, told, slipped)
	}
	if _, told := b.Started("g", now); told {
		t.Error("a gang that has started is told of once more")
	}
}

func TestTheBoardForgetsGangsThatDoNotWait(t *testing.T) {
	b := NewBoard(Defaults())
	for i := range 100 {
		b.Plan([]Node{whole("a", 0, minute)}, []Gang{gang(fmt.Sprint("g", i), 1)}, now)
		b.Started("unknown", now)
	}
	if len(b.gangs) != 1 || len(b.errors[0])+len(b.errors[1]) > 0 {
		t.Errorf("the board remembers %d gangs and errors %v", len(b.gangs), b.errors)
	}
}

func TestMayEnter(t *testing.T) {
	certain := runtimes.Certain
	mostly := runtimes.Forecast{minute, minute, minute, minute, 19 * minute, 500 * minute, 1000 * minute}
	endless := certain(runtimes.Never)
	for _, c := range []struct {
		name        string
		firm        bool
		left        runtimes.Forecast
		waited, now time.Duration
		want        Entry
	}{
		{"a pod that is gone before the start", false, certain(19 * minute), 0, 0, Gone},
		{"a pod that was, some minutes ago", false, certain(19 * minute), 0, 2 * minute, Late},
		{"a pod that is gone within the slack", false, certain(45 * minute), 0, 0, Late},
		{"a pod that is not", false, certain(55 * minute), 0, 0, Refused},
		{"a pod that is probably gone before the start", false, mostly, 0, 0, Gone},
		{"a pod that is probably gone within the slack", false, runtimes.Forecast{minute, 2 * minute, 30 * minute,
			30 * minute, 40 * minute, 60 * minute, 90 * minute}, 0, 0, Refused},
		{"a service", false, endless, 0, 0, Refused},
		{"a pod that has waited for three times as long", false, endless, 31 * minute, 0, Senior},
		{"a pod that had, before the gang waited longer", false, endless, 31 * minute, minute, Refused},
		{"firm: a pod that is gone before the start", true, certain(19 * minute), 0, 0, Gone},
		{"firm: a pod that is gone within the slack", true, certain(45 * minute), 0, 0, Refused},
		{"firm: a pod that is probably gone before the start", true, mostly, 0, 0, Refused},
		{"firm: a pod that has waited for three times as long", true, endless, 31 * minute, 0, Refused},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := Defaults()
			r := NewBoard(s).Plan([]Node{whole("a", 0, 20*minute)}, []Gang{gang("g", 1)}, now)[0]
			r.Firm = c.firm
			if got := s.MayEnter(&r, &c.left, c.waited, now.Add(c.now)); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestOrder(t *testing.T) {
	ends := []runtimes.Forecast{runtimes.Certain(runtimes.Never), runtimes.Certain(minute), runtimes.Certain(2 * minute),
		{}}
	if got := Order(ends); !slices.Equal(got, []int{3, 1, 2, 0}) {
		t.Errorf("got %v", got)
	}
}

func BenchmarkPlan(b *testing.B) {
	for _, size := range []int{100, 1000, 5000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			r := rand.New(rand.NewPCG(1, 1))
			book := runtimes.NewBook()
			class := runtimes.Class{GPUs: 1}
			for range 256 {
				book.Ended(&class, &runtimes.Claim{}, time.Duration(r.ExpFloat64()*float64(time.Hour)))
			}
			source := book.Of(&class, &runtimes.Claim{})
			nodes := make([]Node, size)
			for i := range nodes {
				nodes[i] = Node{Name: fmt.Sprint("n", i), Domains: []int{i / 50}, Fits: [][]int{make([]int, 9)}}
				nodes[i].Fits[0][8] = 1
				for range 8 {
					nodes[i].Ends = append(nodes[i].Ends, source.Left(time.Duration(r.ExpFloat64()*float64(time.Hour))))
				}
			}
			board := NewBoard(Defaults())
			gangs := []Gang{gang("g", 32), gang("h", 16)}
			b.ReportAllocs()
			for b.Loop() {
				board.Plan(nodes, gangs, now)
			}
		})
	}
}

func BenchmarkMayEnter(b *testing.B) {
	s := Defaults()
	r := NewBoard(s).Plan([]Node{whole("a", 0, 20*minute)}, []Gang{gang("g", 1)}, now)[0]
	left := runtimes.Certain(55 * minute)
	for b.Loop() {
		s.MayEnter(&r, &left, 0, now)
	}
}
