package live

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestHistogram(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name         string
		h            Histogram
		median, mean float64
	}{
		{"the middle of a bucket", Histogram{map[float64]float64{1: 2, 2: 6, 4: 8}, 8, 16}, 1.5, 2},
		{"the first bucket begins at 0", Histogram{map[float64]float64{1: 4, 2: 4}, 4, 2}, 0.5, 0.5},
		{"empty buckets before are passed over", Histogram{map[float64]float64{1: 0, 2: 0, 4: 10}, 10, 30}, 3, 3},
		{"above the last bound the median is that", Histogram{map[float64]float64{1: 1, 2: 1, math.Inf(1): 9}, 9, 90}, 2, 10},
		{"above the last bound, without a bucket for it", Histogram{map[float64]float64{1: 1, 2: 1}, 9, 90}, 2, 10},
		{"nothing was observed", Histogram{map[float64]float64{1: 0, 2: 0, math.Inf(1): 0}, 0, 0}, 0, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := []float64{tt.h.Median(), tt.h.Mean()}
			if diff := cmp.Diff([]float64{tt.median, tt.mean}, got); diff != "" {
				t.Errorf("median and mean (-want +got):\n%s", diff)
			}
		})
	}
}

const before = `
mallocs_total 700
attempts_total{result="scheduled"} 50
attempts_total{result="unschedulable"} 3
attempts_total{result="error"} 2
seconds_bucket{point="a",le="1"} 1
seconds_bucket{point="a",le="+Inf"} 3
seconds_sum{point="a"} 4
seconds_count{point="a"} 3
seconds_bucket{point="b",le="1"} 5
seconds_bucket{point="b",le="+Inf"} 5
seconds_sum{point="b"} 1
seconds_count{point="b"} 5
`

const after = `
mallocs_total 900
seconds_bucket{point="a",le="1"} 2
seconds_bucket{point="a",le="+Inf"} 9
seconds_sum{point="a"} 10
seconds_count{point="a"} 9
seconds_bucket{point="b",le="1"} 5
seconds_bucket{point="b",le="+Inf"} 5
seconds_sum{point="b"} 1
seconds_count{point="b"} 5
`

func TestMetrics(t *testing.T) {
	t.Parallel()
	const types = "# TYPE mallocs_total counter\n# TYPE attempts_total counter\n# TYPE seconds histogram"
	u := Use{Before: parseMetrics([]byte(types + before)), After: parseMetrics([]byte(types + after))}
	if got := u.Grew("mallocs_total"); got != 200 {
		t.Errorf("the counter grew by %g, want 200", got)
	}
	if got := u.Before.Sum("attempts_total", "result", "unschedulable", "error"); got != 5 {
		t.Errorf("%g attempts failed, want 5", got)
	}
	want := Histogram{map[float64]float64{1: 1, math.Inf(1): 6}, 6, 6}
	if diff := cmp.Diff(want, u.Histogram("seconds")); diff != "" {
		t.Errorf("observed meanwhile (-want +got):\n%s", diff)
	}
	if got := u.Before.Histogram("seconds"); got.Count != 8 || got.UpTo[1] != 6 {
		t.Errorf("both histograms add up to %+v, want 8 observations, 6 of them up to 1", got)
	}
}

func TestBindingsPerSecond(t *testing.T) {
	t.Parallel()
	w := &Bound{more: make(chan struct{})}
	start := time.Unix(100, 0)
	for _, after := range []time.Duration{0, time.Second, 4 * time.Second} {
		_, more := w.state()
		w.add(start.Add(after))
		select {
		case <-more:
		default:
			t.Errorf("who waits is not told of the pod that is bound after %s", after)
		}
	}
	if got := w.PerSecond(); w.Count() != 3 || got != 0.5 {
		t.Errorf("%d pods, %g a second from the first to the last; want 3 in 4 seconds, 0.5", w.Count(), got)
	}
}
