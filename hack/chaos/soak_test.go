package main

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/test/harness/require"
)

func TestWhatGrowsIsToldFromWhatIsFlat(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		heap func(minute float64) float64
		flat bool
	}{
		"the same":                      {func(float64) float64 { return 100 }, true},
		"less and less":                 {func(m float64) float64 { return 100 - m }, true},
		"a start that grows":            {func(m float64) float64 { return 20 * min(m, 5) }, true},
		"noise":                         {func(m float64) float64 { return 100 + 10*math.Sin(9*m) }, true},
		"a percent each minute":         {func(m float64) float64 { return 100 + 3*m }, false},
		"a leak under noise":            {func(m float64) float64 { return 100 + 3*m + 10*math.Sin(9*m) }, false},
		"a little of little":            {func(m float64) float64 { return 1 + 0.1*m }, true},
		"more and more in its last bit": {func(m float64) float64 { return 100 + math.Exp(m/4) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var samples []sample
			for minute := range 20 {
				samples = append(samples, sample{HeapMiB: test.heap(float64(minute)), RSSMiB: 100, Goroutines: 300})
			}
			for _, got := range trends(samples) {
				if want := test.flat || got.Gauge != "heap"; got.Flat != want {
					t.Errorf("%+v, want flat: %v", got, want)
				}
			}
		})
	}
	for n := range 3 {
		for _, got := range trends(make([]sample, n)) {
			if got.Growth != 0 || !got.Flat {
				t.Errorf("of %d samples: %+v", n, got)
			}
		}
	}
}

func TestASampleIsReadFromMetrics(t *testing.T) {
	t.Parallel()
	const text = `go_goroutines 300
go_memstats_heap_alloc_bytes 2.097152e+06
process_resident_memory_bytes 1.048576e+07
# TYPE scheduler_cache_size gauge
scheduler_cache_size{type="pods"} 5
scheduler_cache_size{type="nodes"} 2
# TYPE scheduler_pending_pods gauge
scheduler_pending_pods{queue="active"} 1
scheduler_pending_pods{queue="unschedulable"} 3
`
	typed := "# TYPE go_goroutines gauge\n# TYPE go_memstats_heap_alloc_bytes gauge\n" +
		"# TYPE process_resident_memory_bytes gauge\n" + text
	got, err := readSample([]byte(typed))
	require.NoError(t, err)
	if diff := cmp.Diff(sample{HeapMiB: 2, RSSMiB: 10, Goroutines: 300, Series: 7, Cached: 7, Pending: 4},
		got); diff != "" {
		t.Error(diff)
	}
	for _, bad := range []string{"", "x{", "go_goroutines 1\n"} {
		if _, err := readSample([]byte(bad)); err == nil {
			t.Errorf("%q is taken for metrics", bad)
		}
	}
}

func TestWaitsAreOfTheMiddleAndOfTheSlowest(t *testing.T) {
	t.Parallel()
	var bindings []binding
	for i := range 101 {
		bindings = append(bindings, binding{waiting: time.Duration(100-i) * time.Millisecond})
	}
	median, p99, n := waits(bindings)
	if median != 0.05 || p99 != 0.099 || n != 101 {
		t.Errorf("median %v, 99th percentile %v of %d, want 0.05, 0.099 of 101", median, p99, n)
	}
	if median, p99, n := waits(nil); median != 0 || p99 != 0 || n != 0 {
		t.Errorf("of nothing: %v, %v, %d", median, p99, n)
	}
}
