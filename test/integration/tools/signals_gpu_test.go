package tools_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/pkg/signals"
)

func gpuArgs(url string) *config.GPUSignals {
	args := &config.GPUSignals{Prometheus: soon(url)}
	config.SetDefaultsGPUSignals(args)
	return args
}

// startGPUs reads the signals of nodes until the test ends or stop is called.
func startGPUs(t *testing.T, args *config.GPUSignals, nodes ...signals.Node) (r *signals.GPUReader, stop func()) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	r, err := signals.StartGPU(ctx, newFactory(), args, func() []signals.Node { return nodes },
		func() bool { return true })
	if err != nil {
		t.Fatalf("starting the reader: %v", err)
	}
	return r, stop
}

func TestUtilisationAndMemoryAreReadFromARealPrometheus(t *testing.T) {
	t.Parallel()
	older := startExporter(t,
		`DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu="0",UUID="GPU-a0",Hostname="a"} 0.25`,
		`DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-a0",Hostname="a"} 99`,
		`DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu="1",UUID="GPU-a1",Hostname="a"} 9223372036854775794`,
		`DCGM_FI_DEV_GPU_UTIL{gpu="1",UUID="GPU-a1",Hostname="a"} 75`,
		`DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu="2",UUID="GPU-a2",Hostname="a"} NaN`,
		`DCGM_FI_DEV_GPU_UTIL{gpu="2",UUID="GPU-a2",Hostname="a"} 101`,
		`DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-a0",Hostname="a"} 1000`,
		`DCGM_FI_DEV_FB_FREE{gpu="0",UUID="GPU-a0",Hostname="a"} 80000`,
		`DCGM_FI_DEV_FB_RESERVED{gpu="0",UUID="GPU-a0",Hostname="a"} 559`,
		`DCGM_FI_DEV_FB_USED{gpu="1",UUID="GPU-a1",Hostname="a"} 9223372036854775792`,
		`DCGM_FI_DEV_FB_FREE{gpu="1",UUID="GPU-a1",Hostname="a"} 81000`,
	)
	newer := startExporter(t,
		// Two pods share GPU 0; GPU 1 is cut into two instances.
		`DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu="0",UUID="GPU-b0",hostname="b.example.com",pod="x"} 0.5`,
		`DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu="0",UUID="GPU-b0",hostname="b.example.com",pod="y"} 0.5`,
		`DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu="1",UUID="GPU-b1",hostname="b.example.com",GPU_I_ID="1"} 0.1`,
		`DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu="1",UUID="GPU-b1",hostname="b.example.com",GPU_I_ID="2"} 0.7`,
		`DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-b0",hostname="b.example.com",pod="x"} 4000`,
		`DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-b0",hostname="b.example.com",pod="y"} 4000`,
		`DCGM_FI_DEV_FB_FREE{gpu="0",UUID="GPU-b0",hostname="b.example.com",pod="x"} 77000`,
		`DCGM_FI_DEV_FB_FREE{gpu="0",UUID="GPU-b0",hostname="b.example.com",pod="y"} 77000`,
		`DCGM_FI_DEV_FB_USED{gpu="1",UUID="GPU-b1",hostname="b.example.com",GPU_I_ID="1"} 100`,
		`DCGM_FI_DEV_FB_USED{gpu="1",UUID="GPU-b1",hostname="b.example.com",GPU_I_ID="2"} 200`,
		`DCGM_FI_DEV_FB_FREE{gpu="1",UUID="GPU-b1",hostname="b.example.com",GPU_I_ID="1"} 9000`,
		`DCGM_FI_DEV_FB_FREE{gpu="1",UUID="GPU-b1",hostname="b.example.com",GPU_I_ID="2"} 18000`,
	)
	relabelled := startExporter(t,
		`DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-c0",Hostname="name-of-a-container"} 40`,
		`DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-c0",Hostname="name-of-a-container"} 10`,
		`DCGM_FI_DEV_FB_FREE{gpu="0",UUID="GPU-c0",Hostname="name-of-a-container"} 20`,
	)
	elsewhere := startExporter(t, `DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-x0",Hostname="a"} 1`)
	scraped := time.Now()
	server := startPrometheus(t, older.job("older", "cluster: here")+newer.job("newer", "cluster: here")+
		relabelled.job("relabelled", "cluster: here, node: c")+elsewhere.job("elsewhere", "cluster: there"), "", "")

	args := gpuArgs(server.url)
	args.Prometheus.MatchLabels = map[string]string{"cluster": "here"}
	start := time.Now()
	r, stop := startGPUs(t, args, signals.Node{Name: "a"}, signals.Node{Name: "b-0", Hostname: "b.example.com"},
		signals.Node{Name: "c"})
	names := []string{"a", "b-0", "c"}
	reads(t, func() string {
		for _, node := range names {
			_, u := r.Snapshot().Utilisation(node, time.Now())
			_, m := r.Snapshot().Memory(node, time.Now())
			if u != 1 || m != 1 {
				return fmt.Sprintf("weights of node %s: utilisation %v, memory %v", node, u, m)
			}
		}
		return ""
	})

	wantUtilisation := map[string]signals.Utilisation{
		"a": {MeanMilli: 500, GPUs: []signals.GPUUtilisation{
			{GPUID: signals.GPUID{Index: 0, UUID: "GPU-a0"}, Milli: 250}, {GPUID: signals.GPUID{Index: 1, UUID: "GPU-a1"},
				Milli: 750}}},
		"b-0": {MeanMilli: 600, GPUs: []signals.GPUUtilisation{
			{GPUID: signals.GPUID{Index: 0, UUID: "GPU-b0"}, Milli: 500}, {GPUID: signals.GPUID{Index: 1, UUID: "GPU-b1"},
				Milli: 700}}},
		"c": {MeanMilli: 400, GPUs: []signals.GPUUtilisation{{GPUID: signals.GPUID{Index: 0, UUID: "GPU-c0"}, Milli: 400}}},
	}
	wantMemory := map[string]signals.Memory{
		"a": {GPUs: []signals.GPUMemory{{GPUID: signals.GPUID{Index: 0, UUID: "GPU-a0"}, UsedMiB: 1000, FreeMiB: 80000,
			ReservedMiB: 559}}},
		"b-0": {GPUs: []signals.GPUMemory{
			{GPUID: signals.GPUID{Index: 0, UUID: "GPU-b0"}, UsedMiB: 4000, FreeMiB: 77000},
			{GPUID: signals.GPUID{Index: 1, UUID: "GPU-b1"}, UsedMiB: 300, FreeMiB: 27000}}},
		"c": {GPUs: []signals.GPUMemory{{GPUID: signals.GPUID{Index: 0, UUID: "GPU-c0"}, UsedMiB: 10, FreeMiB: 20}}},
	}
	snapshot, now := r.Snapshot(), time.Now()
	// A sample seems older than it is by no more than a round takes: its age is told when the server has got to the
	// query, and counted from when it was asked.
	took := now.Sub(start)
	utilisation, memory := map[string]signals.Utilisation{}, map[string]signals.Memory{}
	for _, node := range names {
		utilisation[node], _ = snapshot.Utilisation(node, now)
		memory[node], _ = snapshot.Memory(node, now)
		if at := utilisation[node].Time; at.Before(scraped.Add(-took)) || at.After(now) {
			t.Errorf("sample of node %s taken at %s, want between %s, less the %s of a round, and now", node, at, scraped, took)
		}
	}
	noTime := cmpopts.IgnoreTypes(time.Time{})
	if diff := cmp.Diff(wantUtilisation, utilisation, noTime); diff != "" {
		t.Errorf("utilisation (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(wantMemory, memory, noTime); diff != "" {
		t.Errorf("memory (-want +got):\n%s", diff)
	}
	if faults := snapshot.Faults("a", now); faults != nil {
		t.Errorf("faults of a healthy node: %v", faults)
	}

	// Another scheduler, which knows two nodes without measurements: 3 of 5 are less than 80%.
	stop()
	wider, _ := startGPUs(t, args, signals.Node{Name: "a"}, signals.Node{Name: "b-0", Hostname: "b.example.com"},
		signals.Node{Name: "c"}, signals.Node{Name: "d"}, signals.Node{Name: "e"})
	reads(t, func() string {
		if covered := measured(t, "berth_signal_coverage_ratio", server.url, "gpu_utilisation"); covered != 0.6 {
			return fmt.Sprintf("share of the nodes with a sample: %v, want 0.6", covered)
		}
		return ""
	})
	if _, weight := wider.Snapshot().Utilisation("a", time.Now()); weight != 0 {
		t.Errorf("weight at a coverage of 60%%: %v, want 0", weight)
	}
}
