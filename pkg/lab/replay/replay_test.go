package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"berth.dev/berth/pkg/cluster/dump"
	"berth.dev/berth/pkg/cost/priceview"
	"berth.dev/berth/pkg/lab/replay/replayed"
	"berth.dev/berth/pkg/lab/trace"
	"berth.dev/berth/pkg/schedulerconfig"
	"berth.dev/berth/test/harness/assert"
	"berth.dev/berth/test/harness/require"
)

// shipped is the configuration that this distribution ships.
const shipped = "../../../manifests/base/scheduler-config.yaml"

func smallInput(t *testing.T) Input {
	t.Helper()
	in, err := Files{Nodes: "testdata/nodes.csv", Jobs: "testdata/jobs.csv"}.Load()
	require.NoError(t, err)
	return in
}

func mustRun(t *testing.T, config string, in Input, options Options) *replayed.Result {
	t.Helper()
	c, err := schedulerconfig.Load(config)
	require.NoError(t, err)
	r, err := Run(context.Background(), c, in, options)
	require.NoError(t, err)
	return r
}

func TestTheSameSeedGivesTheSameResultByteForByte(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		config  string
		options Options
	}{
		"the default scheduler in arrival order": {schedulerconfig.Stock, Options{Mode: replayed.ArrivalOrder, Seed: 3}},
		"the default scheduler in virtual time": {schedulerconfig.Stock, Options{Mode: replayed.VirtualTime, Seed: 3,
			Horizon: 90 * time.Minute}},
		"the shipped configuration in arrival order": {shipped, Options{Mode: replayed.ArrivalOrder, Seed: 3}},
		"service levels in virtual time": {"../../../manifests/configurations/service-levels.yaml",
			Options{Mode: replayed.VirtualTime, Seed: 3, Horizon: 90 * time.Minute}},
		"the shipped configuration in virtual time": {shipped, Options{Mode: replayed.VirtualTime, Seed: 3,
			Horizon: 90 * time.Minute}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := smallInput(t)
			var encoded [2]string
			for i := range encoded {
				r := mustRun(t, tt.config, in, tt.options)
				if r.Placed == 0 {
					t.Error("nothing was placed")
				}
				var compared any = r
				if tt.options.Mode == replayed.ArrivalOrder {
					// How much time passes between arrivals means nothing in this mode, and is not always the same.
					compared = r.Placements
				}
				b, err := json.MarshalIndent(compared, "", " ")
				require.NoError(t, err)
				encoded[i] = string(b)
			}
			if diff := cmp.Diff(encoded[0], encoded[1]); diff != "" {
				t.Errorf("the second run differs (-first +second):\n%s", diff)
			}
		})
	}
}

func TestVirtualTime(t *testing.T) {
	t.Parallel()
	node := trace.Node{Name: "n", CPUMilli: 8000, MemoryMiB: 16384, GPUs: 1, Model: "Tesla-T4",
		MicroDollarsPerHour: 2_000_000}
	job := func(name string, arrival, duration time.Duration) trace.Job {
		return trace.Job{Name: name, Arrival: arrival, Duration: duration, Pods: 1, CPUMilli: 1000, MemoryMiB: 1024, GPUs: 1,
			GPUMilli: 1000}
	}
	in := NewInput("two in turn", []trace.Node{node},
		[]trace.Job{job("first", 0, time.Hour), job("second", 10*time.Minute, time.Hour)})
	r := mustRun(t, schedulerconfig.Stock, in, Options{Mode: replayed.VirtualTime})
	if r.Placed != 2 || r.Pending != 0 || r.JobsCompleted != 2 {
		t.Fatalf("placed %d, pending %d, completed %d; want 2, 0, 2", r.Placed, r.Pending, r.JobsCompleted)
	}
	// The second job waits 50 minutes for the first to end, and at most the longest back-off and a cycle more.
	if r.PodWait.Max < 3000 || r.PodWait.Max > 3012 {
		t.Errorf("the second job waited %v s, want 3000 to 3012", r.PodWait.Max)
	}
	if dollars := float64(r.MicroDollars) / 1e6; dollars < 3.99 || dollars > 4.02 {
		t.Errorf("two hours of a node at 2 dollars cost %v", dollars)
	}
}

func TestADumpIsWorkEnough(t *testing.T) {
	t.Parallel()
	in := NewInput("dump", []trace.Node{{Name: "a", CPUMilli: 8000, MemoryMiB: 16384},
		{Name: "b", CPUMilli: 4000, MemoryMiB: 16384}}, nil)
	for i, node := range []string{"a", "b", "", ""} {
		job := trace.Job{Name: fmt.Sprint("pod-", i), Pods: 1, CPUMilli: 2000 + 6000*int64(i/3), MemoryMiB: 512}
		pod := podObject(&job, 0, 0, "default-scheduler", false, usualKeys())
		pod.Spec.NodeName = node
		in.Objects = append(in.Objects, pod)
	}
	for _, rebind := range []bool{false, true} {
		in.Rebind = rebind
		progress := &replayed.Progress{}
		r := mustRun(t, schedulerconfig.Stock, in, Options{Mode: replayed.VirtualTime, Progress: progress})
		// The last one asks for a whole node, and parts of each node are taken whatever comes first.
		if r.Pods != 4 || r.Placed != 3 || r.Pending != 1 || len(r.Samples) > 2*samplesWanted {
			t.Errorf("rebind %v: %d of %d pods placed, %d pending, %d samples; want 3 of 4, 1 and some", rebind, r.Placed,
				r.Pods, r.Pending, len(r.Samples))
		}
		if bound, total := progress.Read(); bound != total-1 || total != map[bool]int64{false: 2, true: 4}[rebind] {
			t.Errorf("rebind %v: progress tells %d of %d pods", rebind, bound, total)
		}
	}
}

func TestTheNodesOfADumpTakePrices(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, prices, want string // the error
		micro              int64
	}{
		{"what the rates make of a node, and what another states",
			"resource,dollars_per_hour\nT4,0.5\ncpu-core,0.1\nmemory-gib,0.01\n", "", 2*500_000 + 8*100_000 + 16*10_000 +
				7_000_000},
		{"no rate for a GPU model", "resource,dollars_per_hour\ncpu-core,0.1\n", `prices.csv: pricing node a: the price table has no rate for GPU model "T4"`, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			in := NewInput("dump", []trace.Node{
				{Name: "a", CPUMilli: 8000, MemoryMiB: 16384, GPUs: 2, Model: "T4"},
				{Name: "b", CPUMilli: 8000, MemoryMiB: 16384, GPUs: 2, Model: "V100", MicroDollarsPerHour: 7_000_000},
			}, nil)
			dir := t.TempDir()
			file := dumped(t, objectsOf(t, in))
			dump, prices := filepath.Join(dir, "cluster.dump"), filepath.Join(dir, "prices.csv")
			require.NoError(t, errors.Join(os.WriteFile(dump, file, 0o600), os.WriteFile(prices, []byte(tc.prices), 0o600)))
			in, err := Files{Dump: dump, Prices: prices}.Load()
			require.NoError(t, err)
			stock, err := schedulerconfig.Load(schedulerconfig.Stock)
			require.NoError(t, err)
			objects, err := in.Cluster(stock, "")
			if tc.want != "" {
				if err == nil || err.Error() != filepath.Join(dir, tc.want) {
					t.Errorf("error %v, want %s", err, tc.want)
				}
				return
			}
			require.NoError(t, err)
			sum := int64(0)
			for _, obj := range objects {
				micro, _, _ := priceview.StatedPrice(obj.(*v1.Node))
				sum += int64(micro)
			}
			if sum != tc.micro {
				t.Errorf("the nodes cost %d micro-dollars, want %d", sum, tc.micro)
			}
		})
	}
}

// dumped writes objects as a dump.
func dumped(t *testing.T, objects []runtime.Object) []byte {
	t.Helper()
	var file bytes.Buffer
	require.NoError(t, (&dump.Dump{Objects: objects}).Write(&file))
	return file.Bytes()
}

// Twelve pods are alike as victims, and three pods and a gang of two have to choose among them.
func TestTheSameVictimsAreChosenEachTime(t *testing.T) {
	t.Parallel()
	var nodes []trace.Node
	for i := range 12 {
		nodes = append(nodes, trace.Node{Name: fmt.Sprintf("n%02d", i), CPUMilli: 8000, MemoryMiB: 16384, GPUs: 4,
			Model: "Tesla-T4"})
	}
	low := trace.Job{Name: "low", Duration: time.Hour, Pods: 12, CPUMilli: 4000, MemoryMiB: 1024, GPUs: 4, GPUMilli: 1000}
	high, gang := low, low
	high.Name, high.Arrival, high.Pods, high.Priority = "high", 10*time.Minute, 3, 100
	gang.Name, gang.Arrival, gang.Pods, gang.Priority, gang.Gang = "gang", 20*time.Minute, 2, 100, true
	in := NewInput("preemption", nodes, []trace.Job{low, high, gang})
	var first map[string]string
	for i := range 3 {
		r := mustRun(t, shipped, in, Options{Mode: replayed.VirtualTime, Profile: "gang-scheduler"})
		if r.Preemptions != 5 {
			t.Fatalf("%d preemptions, want 5", r.Preemptions)
		}
		if i == 0 {
			first = r.Placements
		}
		if diff := cmp.Diff(first, r.Placements); diff != "" {
			t.Errorf("run %d differs (-first +this):\n%s", i+1, diff)
		}
	}
}

func TestAGangStartsTogether(t *testing.T) {
	t.Parallel()
	nodes := []trace.Node{
		{Name: "a", CPUMilli: 8000, MemoryMiB: 16384, GPUs: 4, Model: "Tesla-T4"},
		{Name: "b", CPUMilli: 8000, MemoryMiB: 16384, GPUs: 4, Model: "Tesla-T4"},
	}
	fits := trace.Job{Name: "fits", Duration: time.Hour, Pods: 8, CPUMilli: 1000, MemoryMiB: 512, GPUs: 1, GPUMilli: 1000,
		Gang: true}
	tooLarge := fits
	tooLarge.Name, tooLarge.Pods = "too-large", 9
	r := mustRun(t, shipped, NewInput("gangs", nodes, []trace.Job{tooLarge, fits}), Options{Mode: replayed.VirtualTime})
	if r.GangWait.Count != 1 || r.JobsCompleted != 1 || r.Pending != 9 {
		t.Errorf("gangs started %d, completed %d, pods pending %d; want 1, 1, 9", r.GangWait.Count, r.JobsCompleted,
			r.Pending)
	}
	// All members are told apart from pods that wait in the queue: the reason is the gang's.
	want := []replayed.Reason{{Reason: "gang does not fit: too few nodes that fit", Pods: 9}}
	assert.Equal(t, "why pods are pending", want, r.PendingByReason)
}

func TestPendingPodsAreGroupedByReason(t *testing.T) {
	t.Parallel()
	nodes := []trace.Node{
		{Name: "a", CPUMilli: 8000, MemoryMiB: 16384, GPUs: 4, Model: "Tesla-T4"},
		{Name: "b", CPUMilli: 8000, MemoryMiB: 16384, GPUs: 2, Model: "Tesla-T4"},
	}
	eight := trace.Job{Name: "eight", Pods: 2, CPUMilli: 1000, MemoryMiB: 512, GPUs: 8, GPUMilli: 1000}
	sixteen := eight
	sixteen.Name, sixteen.Pods, sixteen.GPUs = "sixteen", 1, 16
	gang := eight
	gang.Name, gang.Pods, gang.Gang = "gang", 5, true
	large := trace.Job{Name: "large", Pods: 1, CPUMilli: 9000, MemoryMiB: 512}
	r := mustRun(t, shipped, NewInput("reasons", nodes, []trace.Job{eight, sixteen, gang, large}),
		Options{Mode: replayed.VirtualTime})
	want := []replayed.Reason{
		{Reason: "gang does not fit: nodes with too little nvidia.com/gpu", Pods: 5},
		{Reason: "node(s) with too few GPUs", Pods: 3},
		{Reason: "Insufficient cpu", Pods: 1},
	}
	assert.Equal(t, "why pods are pending", want, r.PendingByReason)
}

func TestBadInput(t *testing.T) {
	t.Parallel()
	stock, err := schedulerconfig.Load(schedulerconfig.Stock)
	require.NoError(t, err)
	in := NewInput("x", []trace.Node{{Name: "n", CPUMilli: 1, MemoryMiB: 1}}, nil)
	hour := gpuJob("j", 1, 1000)
	hour.Duration = time.Hour
	ends := NewInput("x", gpuNodes(1, 2), []trace.Job{hour})
	tests := map[string]struct {
		in      Input
		options Options
		want    string
	}{
		"no nodes":               {Input{Name: "x"}, Options{Mode: replayed.VirtualTime}, "x: the cluster has no nodes"},
		"an unknown mode":        {in, Options{Mode: "fast"}, `mode: "fast" is unknown; want order or time`},
		"an unknown gate":        {in, Options{Mode: replayed.VirtualTime, FeatureGates: "Fast=true"}, `feature gates "Fast=true": Kubernetes has no feature gate "Fast"`},
		"a gate without a value": {in, Options{Mode: replayed.VirtualTime, FeatureGates: "GangScheduling"}, `feature gates "GangScheduling": malformed pair, expect string=bool; want Name=true,…`},
		"an unknown profile":     {in, Options{Mode: replayed.VirtualTime, Profile: "nobody"}, `stock: there is no profile "nobody"; it has default-scheduler`},
		"a negative horizon": {in, Options{Mode: replayed.VirtualTime, Horizon: -time.Second},
			"horizon: -1s is not allowed; want a time after the start, or 0s for the end of the work"},
		"a start long ago": {in, Options{Mode: replayed.VirtualTime, Start: time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC)},
			"start: 1990-01-01T00:00:00Z is not allowed; want the years 2001 to 2150"},
		"a warm-up longer than the work": {ends, Options{Mode: replayed.VirtualTime, Warmup: 3 * time.Hour},
			"a warm-up of 3h0m0s leaves nothing to measure: the work ends after 1h0m0s"},
		"a warm-up longer than the horizon": {ends, Options{Mode: replayed.VirtualTime, Warmup: time.Hour,
			Horizon: time.Hour}, "warmup: 1h0m0s leaves nothing of a horizon of 1h0m0s"},
		"a warm-up in arrival order": {ends, Options{Mode: replayed.ArrivalOrder, Warmup: time.Hour},
			"warmup: 1h0m0s is for mode time: mode order takes no means over time"},
		"a negative warm-up": {ends, Options{Mode: replayed.VirtualTime, Warmup: -1},
			"warmup: -1ns is not allowed; want a time after the start, or 0s"},
		"a warm-up without jobs": {in, Options{Mode: replayed.VirtualTime, Warmup: time.Hour},
			"a warm-up of 1h0m0s: there are no jobs that come and go, so the figures are those of the end"},
		"a cycle of no length": {in, Options{Mode: replayed.VirtualTime, CycleTime: 1},
			"cycle-time: 1ns is not allowed; want whole microseconds up to 1m"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Run(context.Background(), stock, tt.in, tt.options)
			if !errors.Is(err, ErrInput) || err.Error() != tt.want {
				t.Errorf("error %v, want %s", err, tt.want)
			}
		})
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	stock, err := schedulerconfig.Load(schedulerconfig.Stock)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Run(ctx, stock, smallInput(t), Options{Mode: replayed.VirtualTime}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
}
