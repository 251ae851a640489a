package gpu

import (
	"fmt"
	"sync"
	"testing"
)

// mixOf is that of n pods of each shape. Those without GPUs run beside the others.
func mixOf(n int, shapes ...Shape) *Distribution {
	var h Histogram
	for _, c := range shapes {
		if c.Count == 0 {
			h.AddBeside(int64(n) * c.CPUMilli)
		} else {
			h.Add(c, "", n)
		}
	}
	return h.Distribution()
}

func TestStranding(t *testing.T) {
	t.Parallel()
	three := Shape{CPUMilli: 1000, Count: 3, Milli: WholeMilli}
	for _, tc := range []struct {
		name  string
		mix   *Distribution
		model string
		cpu   int64
		free  []int
		want  float64
	}{
		{"work of three GPUs leaves two of eight", mixOf(100, three), "A", 64_000, []int{1000, 1000, 1000, 1000, 1000, 1000,
			1000, 1000}, 2000},
		{"work of three GPUs leaves two of two", mixOf(100, three), "A", 64_000, []int{1000, 1000}, 2000},
		{"without CPU everything is stranded", mixOf(100, Shape{CPUMilli: 8000, Count: 1, Milli: WholeMilli}), "A", 7000,
			[]int{1000, 300}, 1300},
		{"work for another model leaves all", mixOf(100, Shape{Count: 1, Milli: WholeMilli, Models: "B"}), "A", 64_000,
			[]int{1000}, 1000},
		{"shares leave what no share fits", mixOf(100, Shape{Count: 1, Milli: 300}), "A", 64_000, []int{1000, 500}, 300},
		{"a full node wastes nothing", mixOf(100, three), "A", 64_000, []int{0, 0}, 0},
		{"an empty mix leaves all", mixOf(0), "A", 64_000, []int{1000}, 1000},
		{"CPU-only work takes the CPU that GPUs need", mixOf(100, Shape{CPUMilli: 1000, Count: 1, Milli: WholeMilli},
			Shape{CPUMilli: 1000}), "A", 2000,
			[]int{1000, 1000}, 1000},
		{"however many CPU-only pods come, they take what comes with the free GPU",
			mixOf(100, Shape{CPUMilli: 1000, Count: 1, Milli: WholeMilli}, Shape{CPUMilli: 1000}), "A", 4000,
			[]int{1000, 1000}, 0},
		{"slices are no work for GPUs",
			mixOf(100, Shape{CPUMilli: 1000, Count: 1, Milli: 140, Slices: "nvidia.com/mig-1g.5gb"}), "A", 64_000,
			[]int{1000}, 1000},
		{"CPU-only work leaves all", mixOf(100, Shape{CPUMilli: 1000}), "A", 64_000, []int{1000}, 1000},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := newStranding(tc.mix)
			for range 2 { // the second from the cache
				if got := r.Value(tc.model, tc.cpu, append([]int(nil), tc.free...)); got != tc.want {
					t.Errorf("Value = %v, want %v", got, tc.want)
				}
			}
		})
	}
}

func TestStrandingIsCachedBySortedVector(t *testing.T) {
	t.Parallel()
	r := newStranding(mixOf(100, Shape{Count: 1, Milli: 300}))
	a := r.Value("A", 64_000, []int{1000, 500, 0})
	b := r.Value("A", 64_400, []int{0, 500, 1000})
	if hits, misses := r.CacheCounts(); a != b || hits != 1 || misses != 1 {
		t.Errorf("values %v and %v, %d hits, %d misses, want one of each", a, b, hits, misses)
	}
	r.Value("B", 64_000, []int{1000, 500})
	r.Value("A", 60_000, []int{1000, 500})
	if _, misses := r.CacheCounts(); misses != 3 {
		t.Errorf("%d misses, want 3: model and CPU are part of the key", misses)
	}
}

func TestStrandingIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	r := newStranding(mixOf(100, Shape{CPUMilli: 1000, Count: 1, Milli: 300}))
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
