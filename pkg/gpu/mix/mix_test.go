package mix

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestMix(t *testing.T) {
	t.Parallel()
	one, eight := Class{CPUMilli: 4000, Count: 1, Milli: WholeMilli}, Class{CPUMilli: 90_000, Count: 8, Milli: WholeMilli}
	t.Run("a fresh mix is not known", func(t *testing.T) {
		t.Parallel()
		m := New()
		for range mixKnown {
			if m.Distribution().Known {
				t.Fatalf("known after %d arrivals", m.arrivals)
			}
			m.Observe(one, Owner{}, true)
		}
		if !m.Distribution().Known {
			t.Error("not known after enough arrivals")
		}
	})
	t.Run("what came along with another makes no mix known", func(t *testing.T) {
		t.Parallel()
		m := New()
		m.Observe(eight, Owner{}, true)
		for range 10 * mixKnown {
			m.Observe(eight, Owner{}, false)
		}
		if m.Known() || m.arrivals != 10*mixKnown+1 {
			t.Errorf("known = %v after one gang of %d", m.Known(), m.arrivals)
		}
	})
	t.Run("old arrivals fade by half in a half-life", func(t *testing.T) {
		t.Parallel()
		m := New()
		for range 1000 {
			m.Observe(one, Owner{}, true)
		}
		for range mixHalfLife * 61 { // far enough for the weights to be rescaled twice
			m.Observe(eight, Owner{}, true)
		}
		d := m.Distribution()
		if len(d.Portions) != 1 || d.Portions[0].Class != eight {
			t.Errorf("portions = %v, want the forgotten class gone", d.Portions)
		}
		m = New()
		m.Observe(one, Owner{}, true)
		for range mixHalfLife - 1 {
			m.Observe(eight, Owner{}, true)
		}
		older, newer := m.weights[one], m.step/decay
		if ratio := older / newer; math.Abs(ratio-0.5) > 0.01 {
			t.Errorf("weight after a half-life = %v of a new one, want half", ratio)
		}
	})
	t.Run("distance counts what moved", func(t *testing.T) {
		t.Parallel()
		a, b := mixOf(1, one, one, one, eight), mixOf(1, one, eight)
		if got := a.Distance(b); math.Abs(got-0.25) > 0.01 || got != b.Distance(a) || a.Distance(a) != 0 {
			t.Errorf("Distance = %v, want a quarter both ways and none to itself", got)
		}
		if got := New().Distribution().Distance(a); got != 1 {
			t.Errorf("Distance from nothing = %v", got)
		}
	})
	t.Run("a mix is drawn up again when it has moved", func(t *testing.T) {
		t.Parallel()
		m := New()
		inUse := m.Distribution()
		drawn := 0
		for i := range 10_000 {
			m.Observe([]Class{one, eight}[i/5000], Owner{}, true)
			if d := m.Redraw(inUse); d != nil {
				if i >= mixKnown && d.Distance(inUse) < redrawDistance && inUse.Known {
					t.Errorf("drawn up after %d arrivals, though it had moved by %v only", i, d.Distance(inUse))
				}
				inUse = d
				drawn++
			}
		}
		if drawn < 4 || drawn > 40 || m.Distribution().Distance(inUse) > 2*redrawDistance {
			t.Errorf("drawn up %d times, in the end %v away", drawn, m.Distribution().Distance(inUse))
		}
	})
	t.Run("a given mix is known for certain", func(t *testing.T) {
		t.Parallel()
		d := Given([]Portion{{one, 3}, {eight, 1}})
		if !d.Known || d.Distance(mixOf(1, one, one, one, eight)) > 0.01 {
			t.Errorf("known %v, portions %v", d.Known, d.Portions)
		}
	})
}

func TestAMixOfManyClassesStaysSmallAndKeepsItsSums(t *testing.T) {
	t.Parallel()
	for name, class := range map[string]func(i int) Class{
		"by CPU":           func(i int) Class { return Class{CPUMilli: int64(1000 + i), Count: 1, Milli: WholeMilli} },
		"by CPU and share": func(i int) Class { return Class{CPUMilli: int64(1000 + i/999), Count: 1, Milli: 1 + i%999} },
		"by models": func(i int) Class {
			return Class{CPUMilli: 1000, Count: 1, Milli: WholeMilli,
				Models: fmt.Sprint(i)}
		},
		"by huge CPU": func(i int) Class { return Class{CPUMilli: math.MaxInt64 - int64(i), Count: 1, Milli: WholeMilli} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const arrivals = 20_000
			m := New()
			began := epoch
			for i := range arrivals {
				m.Observe(class(i), Owner{}, true)
				m.Started(class(i), Owner{}, began)
			}
			if n := max(len(m.weights), len(m.lifetimes.byClass)); n > mostClasses {
				t.Errorf("%d classes are told apart, want at most %d", n, mostClasses)
			}
			if len(m.weights) < mostClasses/64 && name != "by huge CPU" {
				t.Errorf("only %d classes are told apart", len(m.weights))
			}
			for i := range arrivals {
				m.Ended(class(i), Owner{}, began, began.Add(time.Hour))
			}
			for c, l := range m.lifetimes.byClass {
				if l.running != 0 || c.CPUMilli < 0 {
					t.Fatalf("class %+v: %d pods run after all have ended", c, l.running)
				}
			}
			sum := 0.0
			for _, p := range m.Distribution().Portions {
				sum += p.Fraction
			}
			if math.Abs(sum-1) > 1e-9 {
				t.Errorf("fractions add up to %v", sum)
			}
		})
	}
}

// TestAMixThatIsCoarsenedIsTheSameEachTime observes more classes than are told apart, with weights whose sum depends on
// the order of adding.
func TestAMixThatIsCoarsenedIsTheSameEachTime(t *testing.T) {
	t.Parallel()
	play := func() *Mix {
		m := New()
		for i := range 2*mostClasses + 500 {
			c := Class{CPUMilli: int64(1000 + i), Count: 1, Milli: WholeMilli}
			at := epoch.Add(time.Duration(i*i) * time.Millisecond)
			m.Observe(c, Owner{}, true)
			m.Started(c, Owner{}, at)
			if i%3 == 0 {
				m.Ended(c, Owner{}, at, at.Add(time.Duration(i)*1234567))
			}
		}
		m.step *= 1e9 // all but the latest have faded
		m.rescale()
		for i := range 100 {
			m.Observe(Class{CPUMilli: int64(1000 + 31*i), Count: 1, Milli: WholeMilli}, Owner{}, true)
		}
		return m
	}
	first := play()
	for range 3 {
		again := play()
		if diff := cmp.Diff(first.weights, again.weights); diff != "" {
			t.Fatalf("weights (-first +again):\n%s", diff)
		}
		if diff := cmp.Diff(first.lifetimes, again.lifetimes, cmp.AllowUnexported(lifetimes{}, lifetime{})); diff != "" {
			t.Fatalf("lifetimes (-first +again):\n%s", diff)
		}
	}
}

// TestAClassWhosePodOutlivesItsWeightIsForgotten lets a class fade while its pod runs: its lifetime goes when it ends.
func TestAClassWhosePodOutlivesItsWeightIsForgotten(t *testing.T) {
	t.Parallel()
	m := New()
	rare, usual := Class{CPUMilli: 1, Count: 1, Milli: WholeMilli}, Class{CPUMilli: 2, Count: 1, Milli: WholeMilli}
	m.Observe(rare, Owner{}, true)
	m.Started(rare, Owner{}, epoch)
	m.Started(rare, Owner{}, epoch)
	m.Ended(rare, Owner{}, epoch, epoch.Add(time.Hour))
	m.step *= 1e9
	m.Observe(usual, Owner{}, true)
	m.rescale()
	if _, ok := m.weights[rare]; ok || m.lifetimes.byClass[rare] == nil {
		t.Fatalf("weight known: %v; lifetime %v, want that of a pod which runs", ok, m.lifetimes.byClass[rare])
	}
	m.Ended(rare, Owner{}, epoch, epoch.Add(2*time.Hour))
	if l := m.lifetimes.byClass[rare]; l != nil {
		t.Errorf("%+v is still known of a class that has faded and of which nothing runs", *l)
	}
	if all := m.lifetimes.all; all != (lifetime{}) {
		t.Errorf("all lifetimes are %+v, want none", all)
	}
}

func TestCoarserClassesContainTheFinerOnes(t *testing.T) {
	t.Parallel()
	for cpu := int64(0); cpu < 200_000; cpu += 997 {
		for milli := 1; milli <= WholeMilli; milli += 37 {
			c := Class{CPUMilli: cpu, Count: 2, Milli: milli}
			for times := range coarsest {
				once, more := c.coarsen(times), c.coarsen(times+1)
				if once.coarsen(times+1) != more {
					t.Fatalf("%+v: by way of %+v it is %+v, directly %+v", c, once, once.coarsen(times+1), more)
				}
				if more.CPUMilli < cpu || more.CPUMilli > 2*cpu || more.Milli < milli || more.Milli > WholeMilli {
					t.Fatalf("%+v was made %+v", c, more)
				}
			}
		}
	}
}

// mixOf observes n pods of each class.
func mixOf(n int, classes ...Class) *Distribution {
	m := New()
	for range n {
		for _, c := range classes {
			m.Observe(c, Owner{}, true)
		}
	}
	return m.Distribution()
}
