package main

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/utils/ptr"
)

// someRuns are two repeats of two contenders at one size, and one of them at another.
var someRuns = []run{
	{Nodes: 5000, Workload: "mix", Contender: "berth", Repeat: 1, Pods: 9, CPUMillisPerPod: 7},
	{Nodes: 500, Workload: "mix", Contender: "stock", Repeat: 1, Pods: 8, CPUMillisPerPod: 2, PodsPerSecond: 100},
	{Nodes: 500, Workload: "mix", Contender: "berth", Repeat: 1, Pods: 8, CPUMillisPerPod: 3, PodsPerSecond: 50},
	{Nodes: 500, Workload: "mix", Contender: "berth", Repeat: 2, Pods: 8, CPUMillisPerPod: 10, PodsPerSecond: 60},
	{Nodes: 500, Workload: "mix", Contender: "stock", Repeat: 2, Pods: 8, CPUMillisPerPod: 4, PodsPerSecond: 120},
}

func TestRatiosAreWithinARepeat(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, contender string
		group           group
		want            []float64
	}{
		{"each run is divided by stock of its own repeat", "berth", group{500, "mix"}, []float64{1.5, 2.5}},
		{"stock over itself is 1", "stock", group{500, "mix"}, []float64{1, 1}},
		{"a group without stock has none", "berth", group{5000, "mix"}, nil},
		{"a group without the contender has none", "stock", group{5000, "mix"}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, ratios(someRuns, tt.group, tt.contender, cpuMillisPerPod)); diff != "" {
				t.Errorf("ratios (-want +got):\n%s", diff)
			}
		})
	}
}

func TestGroupsAreSortedBySize(t *testing.T) {
	t.Parallel()
	want := []group{{500, "mix"}, {5000, "mix"}}
	if diff := cmp.Diff(want, groupsOf(someRuns), cmp.AllowUnexported(group{})); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
}

func TestInTurn(t *testing.T) {
	t.Parallel()
	var got [][]string
	for repeat := range 4 {
		got = append(got, inTurn([]string{"a", "b", "c"}, repeat))
	}
	want := [][]string{{"a", "b", "c"}, {"b", "c", "a"}, {"c", "a", "b"}, {"a", "b", "c"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("orders (-want +got):\n%s", diff)
	}
}

func TestHistogram(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name         string
		h            histogram
		median, mean float64
	}{
		{"the middle of a bucket", histogram{map[float64]float64{1: 2, 2: 6, 4: 8}, 8, 16}, 1.5, 2},
		{"the first bucket begins at 0", histogram{map[float64]float64{1: 4, 2: 4}, 4, 2}, 0.5, 0.5},
		{"empty buckets before are passed over", histogram{map[float64]float64{1: 0, 2: 0, 4: 10}, 10, 30}, 3, 3},
		{"above the last bound it is that", histogram{map[float64]float64{1: 1, 2: 1, math.Inf(1): 9}, 9, 90}, 2, 10},
		{"above the last bound, without a bucket for it", histogram{map[float64]float64{1: 1, 2: 1}, 9, 90}, 2, 10},
		{"nothing was observed", histogram{map[float64]float64{1: 0, 2: 0, math.Inf(1): 0}, 0, 0}, 0, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := tt.h.median(); got != tt.median {
				t.Errorf("median %g, want %g", got, tt.median)
			}
			if got := tt.h.mean(); got != tt.mean {
				t.Errorf("mean %g, want %g", got, tt.mean)
			}
		})
	}
}

func TestHistogramMinus(t *testing.T) {
	t.Parallel()
	before := histogram{map[float64]float64{1: 1, 2: 3}, 3, 4}
	after := histogram{map[float64]float64{1: 2, 2: 8}, 9, 10}
	want := histogram{map[float64]float64{1: 1, 2: 5}, 6, 6}
	if diff := cmp.Diff(want, after.minus(before), cmp.AllowUnexported(histogram{})); diff != "" {
		t.Errorf("since (-want +got):\n%s", diff)
	}
}

func TestReadGauges(t *testing.T) {
	t.Parallel()
	counter := func(value float64, result string) *dto.Metric {
		label := &dto.LabelPair{Name: ptr.To("result"), Value: &result}
		return &dto.Metric{Counter: &dto.Counter{Value: &value}, Label: []*dto.LabelPair{label}}
	}
	families := map[string]*dto.MetricFamily{
		"go_memstats_mallocs_total":     {Metric: []*dto.Metric{counter(700, "")}},
		"go_memstats_alloc_bytes_total": {Metric: []*dto.Metric{counter(9000, "")}},
		"go_memstats_heap_sys_bytes":    {Metric: []*dto.Metric{{Gauge: &dto.Gauge{Value: ptr.To(4096.0)}}}},
		"scheduler_schedule_attempts_total": {Metric: []*dto.Metric{
			counter(50, "scheduled"), counter(3, "unschedulable"), counter(2, "error"),
		}},
		"scheduler_scheduling_algorithm_duration_seconds": {Metric: []*dto.Metric{{Histogram: &dto.Histogram{
			SampleCount: ptr.To[uint64](6), SampleSum: ptr.To(0.5),
			Bucket: []*dto.Bucket{{UpperBound: ptr.To(0.001), CumulativeCount: ptr.To[uint64](4)}},
		}}}},
	}
	want := gauges{700, 9000, 4096, histogram{map[float64]float64{0.001: 4}, 6, 0.5}, 5}
	if diff := cmp.Diff(want, readGauges(families), cmp.AllowUnexported(gauges{}, histogram{})); diff != "" {
		t.Errorf("gauges (-want +got):\n%s", diff)
	}
}

func TestBindingsPerSecond(t *testing.T) {
	t.Parallel()
	b := &bindings{first: make(chan struct{}), all: make(chan struct{}), total: 3}
	start := time.Unix(100, 0)
	reached := func(c <-chan struct{}) bool {
		select {
		case <-c:
			return true
		default:
			return false
		}
	}
	for i, after := range []time.Duration{0, time.Second, 4 * time.Second} {
		b.add(start.Add(after))
		if !reached(b.first) || reached(b.all) != (i == 2) {
			t.Errorf("after %d pods: first %t, all %t", i+1, reached(b.first), reached(b.all))
		}
	}
	if got := b.perSecond(); got != 0.5 {
		t.Errorf("3 pods in 4 seconds are %g a second from the first to the last, want 0.5", got)
	}
}
