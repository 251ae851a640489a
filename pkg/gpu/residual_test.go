package gpu

import (
	"fmt"
	"math"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// mixOf observes n pods of each class.
func mixOf(n int, classes ...Class) *Distribution {
	m := NewMix()
	for range n {
		for _, c := range classes {
			m.Observe(c, true)
		}
	}
	return m.Distribution()
}

func TestResidual(t *testing.T) {
	t.Parallel()
	three := Class{CPUMilli: 1000, Count: 3, Milli: WholeMilli}
	for _, tc := range []struct {
		name  string
		mix   *Distribution
		model string
		cpu   int64
		free  []int
		want  float64
	}{
		{"work of three GPUs leaves two of eight", mixOf(100, three), "A", 64_000, []int{1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000}, 2000},
		{"work of three GPUs leaves two of two", mixOf(100, three), "A", 64_000, []int{1000, 1000}, 2000},
		{"without CPU everything is stranded", mixOf(100, Class{CPUMilli: 8000, Count: 1, Milli: WholeMilli}), "A", 7000, []int{1000, 300}, 1300},
		{"work for another model leaves all", mixOf(100, Class{Count: 1, Milli: WholeMilli, Models: "B"}), "A", 64_000, []int{1000}, 1000},
		{"shares leave what no share fits", mixOf(100, Class{Count: 1, Milli: 300}), "A", 64_000, []int{1000, 500}, 300},
		{"a full node wastes nothing", mixOf(100, three), "A", 64_000, []int{0, 0}, 0},
		{"an empty mix leaves all", NewMix().Distribution(), "A", 64_000, []int{1000}, 1000},
		{"CPU-only work leaves all", mixOf(100, Class{CPUMilli: 1000}), "A", 64_000, []int{1000}, 1000},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := NewResidual(tc.mix)
			for range 2 { // the second from the cache
				if got := r.Value(tc.model, tc.cpu, append([]int(nil), tc.free...)); got != tc.want {
					t.Errorf("Value = %v, want %v", got, tc.want)
				}
			}
		})
	}
}

func TestResidualIsCachedBySortedVector(t *testing.T) {
	t.Parallel()
	r := NewResidual(mixOf(100, Class{Count: 1, Milli: 300}))
	a := r.Value("A", 64_000, []int{1000, 500, 0})
	b := r.Value("A", 64_900, []int{0, 500, 1000})
	if hits, misses := r.CacheCounts(); a != b || hits != 1 || misses != 1 {
		t.Errorf("values %v and %v, %d hits, %d misses, want one of each", a, b, hits, misses)
	}
	r.Value("B", 64_000, []int{1000, 500})
	r.Value("A", 60_000, []int{1000, 500})
	if _, misses := r.CacheCounts(); misses != 3 {
		t.Errorf("%d misses, want 3: model and CPU are part of the key", misses)
	}
}

func TestResidualIsBoundedByWhatIsFree(t *testing.T) {
	t.Parallel()
	r := NewResidual(mixOf(40, Class{CPUMilli: 4000, Count: 1, Milli: WholeMilli}, Class{CPUMilli: 2000, Count: 1, Milli: 460},
		Class{CPUMilli: 8000}, Class{CPUMilli: 30_000, Count: 8, Milli: WholeMilli}))
	rapid.Check(t, func(t *rapid.T) {
		free := rapid.SliceOfN(rapid.IntRange(0, WholeMilli), 0, 20).Draw(t, "free")
		total := sum(free)
		v := r.Value("A", rapid.Int64Range(-1000, 200_000).Draw(t, "cpu"), free)
		if v < 0 || v > float64(total) || math.IsNaN(v) {
			t.Fatalf("Value = %v of %d free", v, total)
		}
	})
}

func TestResidualIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	r := NewResidual(mixOf(100, Class{CPUMilli: 1000, Count: 1, Milli: 300}))
	want := r.Value("A", 8000, []int{1000, 400})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 200 {
				r.Value(fmt.Sprint(i%7), int64(i*500), []int{i, 1000})
				if got := r.Value("A", 8000, []int{1000, 400}); got != want {
					t.Errorf("Value = %v, want %v", got, want)
				}
			}
		})
	}
	wg.Wait()
}

func TestMix(t *testing.T) {
	t.Parallel()
	one, eight := Class{CPUMilli: 4000, Count: 1, Milli: WholeMilli}, Class{CPUMilli: 90_000, Count: 8, Milli: WholeMilli}
	t.Run("a fresh mix is not known", func(t *testing.T) {
		t.Parallel()
		m := NewMix()
		for range mixKnown {
			if m.Distribution().Known {
				t.Fatalf("known after %d arrivals", m.Arrivals())
			}
			m.Observe(one, true)
		}
		if !m.Distribution().Known {
			t.Error("not known after enough arrivals")
		}
	})
	t.Run("what came along with another makes no mix known", func(t *testing.T) {
		t.Parallel()
		m := NewMix()
		m.Observe(eight, true)
		for range 10 * mixKnown {
			m.Observe(eight, false)
		}
		if m.Known() || m.Arrivals() != 10*mixKnown+1 {
			t.Errorf("known = %v after one gang of %d", m.Known(), m.Arrivals())
		}
	})
	t.Run("old arrivals fade by half in a half-life", func(t *testing.T) {
		t.Parallel()
		m := NewMix()
		for range 1000 {
			m.Observe(one, true)
		}
		for range mixHalfLife * 61 { // far enough for the weights to be rescaled twice
			m.Observe(eight, true)
		}
		d := m.Distribution()
		if len(d.portions) != 1 || d.portions[0].Class != eight {
			t.Errorf("portions = %v, want the forgotten class gone", d.portions)
		}
		m = NewMix()
		m.Observe(one, true)
		for range mixHalfLife - 1 {
			m.Observe(eight, true)
		}
		older, newer := m.weights[one], m.step/decay
		if ratio := older / newer; math.Abs(ratio-0.5) > 0.01 {
			t.Errorf("weight after a half-life = %v of a new one, want half", ratio)
		}
	})
	t.Run("the share of 8-GPU demand is counted in GPUs", func(t *testing.T) {
		t.Parallel()
		if got := mixOf(1, one, one, one, one, one, one, one, one, eight).EightGPUShare(); math.Abs(got-0.5) > 0.01 {
			t.Errorf("EightGPUShare = %v, want a half", got)
		}
		if got := NewMix().Distribution().EightGPUShare(); got != 0 {
			t.Errorf("EightGPUShare of nothing = %v", got)
		}
	})
	t.Run("distance counts what moved", func(t *testing.T) {
		t.Parallel()
		a, b := mixOf(1, one, one, one, eight), mixOf(1, one, eight)
		if got := a.Distance(b); math.Abs(got-0.25) > 0.01 || got != b.Distance(a) || a.Distance(a) != 0 {
			t.Errorf("Distance = %v, want a quarter both ways and none to itself", got)
		}
		if got := NewMix().Distribution().Distance(a); math.Abs(got-0.5) > 1e-9 {
			t.Errorf("Distance from nothing = %v", got)
		}
	})
	t.Run("pressure is demand per capacity", func(t *testing.T) {
		t.Parallel()
		d := mixOf(1, Class{Count: 1, Milli: WholeMilli}, Class{Count: 1, Milli: WholeMilli, Models: "A"})
		got := d.Pressure(map[string]int{"A": 10, "B": 10})
		for m, want := range map[string]float64{"A": 1.5, "B": 0.5} {
			if math.Abs(got[m]-want) > 0.01 {
				t.Errorf("pressure of %s = %v, want %v", m, got[m], want)
			}
		}
		if got := d.Pressure(nil); len(got) != 0 {
			t.Errorf("pressure without GPUs = %v", got)
		}
	})
}

func TestClassOf(t *testing.T) {
	t.Parallel()
	for want, r := range map[Class]*Request{
		{CPUMilli: 8000}: {CPUMilli: 8000},
		{CPUMilli: 1000, Count: 1, Milli: 500, Models: "A|B"}: {CPUMilli: 1000, Count: 1, ShareMemMiB: 8 << 10, Models: []string{"A", "B"}},
		{CPUMilli: 2000}: {CPUMilli: 2000, Count: 1, ShareMemMiB: 32 << 10}, // more than any GPU has
	} {
		if diff := cmp.Diff(want, ClassOf(r, 16<<10)); diff != "" {
			t.Errorf("ClassOf (-want +got):\n%s", diff)
		}
	}
}

func BenchmarkResidualMiss(b *testing.B) {
	m := NewMix()
	for i := range 60 {
		m.Observe(Class{CPUMilli: int64(1000 * (1 + i%12)), Count: 1, Milli: 50 * (1 + i%20)}, true)
	}
	s := NewResidual(m.Distribution()).stream("A")
	free := []int{100, 300, 500, 1000, 1000, 1000, 1000, 1000}
	b.ReportAllocs()
	for b.Loop() {
		s.residual(64_000, free)
	}
}

func BenchmarkAssess(b *testing.B) {
	m := NewMix()
	for i := range 200 {
		m.Observe(Class{CPUMilli: int64(1000 * (1 + i%12)), Count: 1, Milli: 50 * (1 + i%20)}, true)
	}
	c := &Cluster{Weights: DefaultWeights(), Residual: NewResidual(m.Distribution())}
	inv, r := node(8, shared, take(300, 500, 900)), share(250)
	b.ReportAllocs()
	for b.Loop() {
		c.Assess(inv, r, Circumstances{})
	}
}

func BenchmarkFit(b *testing.B) {
	inv, r := node(8, shared, take(300, 500, 900)), share(250)
	b.ReportAllocs()
	for b.Loop() {
		Fit(inv, r)
	}
}

func BenchmarkBestSet(b *testing.B) {
	l := pairsOf(b, 8)
	b.ReportAllocs()
	for b.Loop() {
		l.Best(0b1011_0111, 4, false)
	}
}
