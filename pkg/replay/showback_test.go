package replay

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/pkg/replay/replayed"
	"berth.dev/berth/pkg/schedulerconfig"
	"berth.dev/berth/pkg/showback"
	"berth.dev/berth/pkg/trace"
)

func showbackBy(t *testing.T, by string) *showback.By {
	t.Helper()
	parsed, err := showback.ParseBy(by)
	if err != nil {
		t.Fatal(err)
	}
	return &parsed
}

// team is a job of one pod with two GPUs for a number of hours.
func team(name, namespace string, arrival, hours int, labels map[string]string) trace.Job {
	return trace.Job{Name: name, Namespace: namespace, Labels: labels, Arrival: time.Duration(arrival) * time.Hour,
		Duration: time.Duration(hours) * time.Hour,
		Pods:     1, CPUMilli: 8000, MemoryMiB: 32 << 10, GPUs: 2, GPUMilli: 1000}
}

func TestTheBillOfATraceIsDivided(t *testing.T) {
	t.Parallel()
	nodes := []trace.Node{
		{Name: "a", CPUMilli: 32_000, MemoryMiB: 128 << 10, GPUs: 8, Model: "A100", MicroDollarsPerHour: 8_000_000},
		{Name: "b", CPUMilli: 32_000, MemoryMiB: 128 << 10, GPUs: 8, Model: "A100", MicroDollarsPerHour: 8_000_000},
		{Name: "unpriced", CPUMilli: 1000, MemoryMiB: 1 << 10, GPUs: 1, Model: "T4"},
	}
	gang := team("train", "vision", 1, 10, nil)
	gang.Gang, gang.Pods = true, 2
	jobs := []trace.Job{team("one", "vision", 0, 30, map[string]string{"team": "x"}), team("two", "speech", 0, 6, nil),
		gang}
	hour := func(gpus, hours int64) int64 { return gpus * hours * 3_600_000 }
	for by, want := range map[string]map[string]int64{
		"namespace":  {"vision": hour(2, 30) + hour(4, 10), "speech": hour(2, 6)},
		"gang":       {"vision/train": hour(4, 10), showback.None: hour(2, 36)},
		"label=team": {"x": hour(2, 30), showback.None: hour(2, 6) + hour(4, 10)},
	} {
		result := mustRun(t, shipped, NewInput("teams", nodes, jobs),
			Options{Mode: replayed.VirtualTime, Showback: showbackBy(t, by)})
		s := result.Showback
		got := map[string]int64{}
		for _, line := range s.Lines {
			got[line.Key] = line.MilliGPUSeconds
			// Binding takes some milliseconds, which are no part of a job's duration.
			if off := line.MilliGPUSeconds - want[line.Key]; off >= -1000 && off <= 1000 {
				got[line.Key] = want[line.Key]
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("milli-GPU·seconds by %s (-want +got):\n%s", by, diff)
		}
		if s.Nodes != 3 || s.NodesWithoutPrice != 1 || s.By != by || s.Source != "replay" || len(s.Days) != 2 {
			t.Errorf("by %s: %d nodes, %d of them without a price, by %s from %s, %d days", by, s.Nodes, s.NodesWithoutPrice,
				s.By, s.Source, len(s.Days))
		}
		// All but the empty nodes is the bill of the replay, which is rounded as a float.
		if off := s.Total.MicroDollars - s.Empty.MicroDollars - result.MicroDollars; off < -10 || off > 10 {
			t.Errorf("by %s: the nodes in use cost %d micro-dollars, want the bill, %d", by,
				s.Total.MicroDollars-s.Empty.MicroDollars, result.MicroDollars)
		}
		if want := epoch.Truncate(time.Second); !s.From.Equal(want) {
			t.Errorf("by %s: from %s, want %s", by, s.From, want)
		}
	}
}

func TestPodsThatAreEvictedPayForBothTimes(t *testing.T) {
	t.Parallel()
	nodes := []trace.Node{{Name: "a", CPUMilli: 32_000, MemoryMiB: 128 << 10, GPUs: 2, Model: "A100",
		MicroDollarsPerHour: 8_000_000}}
	urgent := team("urgent", "b", 1, 1, nil)
	urgent.Priority = 100
	s := mustRun(t, shipped, NewInput("evicted", nodes, []trace.Job{team("first", "a", 0, 4, nil), urgent}),
		Options{Mode: replayed.VirtualTime, Showback: showbackBy(t, "namespace")}).Showback
	hours := map[string]string{}
	for _, line := range s.Lines {
		hours[line.Key] = fmt.Sprintf("%.1f", float64(line.MilliGPUSeconds)/3_600_000)
	}
	// The first has run for an hour when it is evicted, and begins again.
	if diff := cmp.Diff(map[string]string{"a": "10.0", "b": "2.0"}, hours); diff != "" {
		t.Errorf("GPU hours (-want +got):\n%s", diff)
	}
}

func TestAHorizonPaysForWhatNeverEnds(t *testing.T) {
	t.Parallel()
	nodes := []trace.Node{{Name: "a", CPUMilli: 32_000, MemoryMiB: 128 << 10, GPUs: 8, Model: "A100",
		MicroDollarsPerHour: 8_000_000}}
	in := NewInput("service", nodes, []trace.Job{team("service", "a", 0, 0, nil)})
	s := mustRun(t, shipped, in, Options{Mode: replayed.VirtualTime, Horizon: 720 * time.Hour,
		Showback: showbackBy(t, "namespace")}).Showback
	if s.Total.MicroDollars != 720*8_000_000 || len(s.Days) != 30 || len(s.Lines) != 1 ||
		s.Lines[0].MilliGPUSeconds < 2*720*3_600_000-1000 || s.Lines[0].MilliGPUSeconds > 2*720*3_600_000 {
		t.Errorf("%d days, %+v, %+v; want 30 days at $8.00 an hour, with two GPUs but for the first milliseconds",
			len(s.Days), s.Total, s.Lines)
	}
	config, err := schedulerconfig.Shipped()
	if err != nil {
		t.Fatal(err)
	}
	for name, options := range map[string]Options{
		"without a horizon": {Mode: replayed.VirtualTime, Showback: showbackBy(t, "namespace")},
		"in order":          {Mode: replayed.ArrivalOrder, Showback: showbackBy(t, "namespace")},
	} {
		if _, err := Run(t.Context(), config, in, options); !errors.Is(err, ErrInput) {
			t.Errorf("%s: %v, want an error about the input", name, err)
		}
	}
}
