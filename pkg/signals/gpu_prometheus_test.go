package signals

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/klog/v2/ktesting"

	"berth.dev/berth/pkg/apis/config"
)

func gpuArgs(url string) *config.GPUSignals {
	args := &config.GPUSignals{Prometheus: config.Prometheus{URL: url}}
	config.SetDefaultsGPUSignals(args)
	return args
}

func gpuReader(t *testing.T, args *config.GPUSignals, nodes ...Node) *GPUReader {
	t.Helper()
	logger, _ := ktesting.NewTestContext(t)
	r, err := newGPUReader(logger, args, func() []Node { return nodes })
	if err != nil {
		t.Fatalf("making the reader: %v", err)
	}
	t.Cleanup(r.client.close)
	return r
}

// timed does a round and returns how long it took. A sample seems older than it is by no more: its age is told when the server has got
// to the query, and counted from when it was asked.
func timed(t *testing.T, r *GPUReader) time.Duration {
	t.Helper()
	asked := time.Now()
	r.round(t.Context())
	return time.Since(asked)
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
	start := time.Now()
	server := startPrometheus(t, older.job("older", "cluster: here")+newer.job("newer", "cluster: here")+
		relabelled.job("relabelled", "cluster: here, node: c")+elsewhere.job("elsewhere", "cluster: there"), "", "")

	args := gpuArgs(server.url)
	args.Prometheus.MatchLabels = map[string]string{"cluster": "here"}
	r := gpuReader(t, args, Node{Name: "a"}, Node{Name: "b-0", Hostname: "b.example.com"}, Node{Name: "c"})
	var took time.Duration
	eventually(t, func() { took = timed(t, r) }, func() string {
		for _, node := range []string{"a", "b-0", "c"} {
			_, u := r.Snapshot().Utilisation(node, time.Now())
			_, m := r.Snapshot().Memory(node, time.Now())
			if u != 1 || m != 1 {
				return fmt.Sprintf("weights of node %s: utilisation %v, memory %v", node, u, m)
			}
		}
		return ""
	})

	wantUtilisation := map[string]Utilisation{
		"a": {MeanMilli: 500, GPUs: []GPUUtilisation{
			{GPUID: GPUID{Index: 0, UUID: "GPU-a0"}, Milli: 250}, {GPUID: GPUID{Index: 1, UUID: "GPU-a1"}, Milli: 750}}},
		"b-0": {MeanMilli: 600, GPUs: []GPUUtilisation{
			{GPUID: GPUID{Index: 0, UUID: "GPU-b0"}, Milli: 500}, {GPUID: GPUID{Index: 1, UUID: "GPU-b1"}, Milli: 700}}},
		"c": {MeanMilli: 400, GPUs: []GPUUtilisation{{GPUID: GPUID{Index: 0, UUID: "GPU-c0"}, Milli: 400}}},
	}
	wantMemory := map[string]Memory{
		"a": {GPUs: []GPUMemory{{GPUID: GPUID{Index: 0, UUID: "GPU-a0"}, UsedMiB: 1000, FreeMiB: 80000, ReservedMiB: 559}}},
		"b-0": {GPUs: []GPUMemory{
			{GPUID: GPUID{Index: 0, UUID: "GPU-b0"}, UsedMiB: 4000, FreeMiB: 77000},
			{GPUID: GPUID{Index: 1, UUID: "GPU-b1"}, UsedMiB: 300, FreeMiB: 27000}}},
		"c": {GPUs: []GPUMemory{{GPUID: GPUID{Index: 0, UUID: "GPU-c0"}, UsedMiB: 10, FreeMiB: 20}}},
	}
	noTime := cmpopts.IgnoreTypes(time.Time{})
	if diff := cmp.Diff(wantUtilisation, r.Snapshot().utilisation, noTime); diff != "" {
		t.Errorf("utilisation (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(wantMemory, r.Snapshot().memory, noTime); diff != "" {
		t.Errorf("memory (-want +got):\n%s", diff)
	}
	for node, u := range r.Snapshot().utilisation {
		if u.Time.Before(start.Add(-took)) || u.Time.After(time.Now()) {
			t.Errorf("sample of node %s taken at %s, want between %s, less the %s of a round, and now", node, u.Time, start, took)
		}
	}
	if faults := r.Snapshot().Faults("a", time.Now()); faults != nil {
		t.Errorf("faults of a healthy node: %v", faults)
	}

	// Another scheduler, which knows of two nodes that nobody measures: 3 of 5 are less than 80%.
	wider := gpuReader(t, args, Node{Name: "a"}, Node{Name: "b-0", Hostname: "b.example.com"}, Node{Name: "c"}, Node{Name: "d"}, Node{Name: "e"})
	eventually(t, func() { wider.round(t.Context()) }, func() string {
		if n := len(wider.Snapshot().utilisation); n != 3 {
			return fmt.Sprintf("nodes with a sample: %d, want 3", n)
		}
		return ""
	})
	if _, weight := wider.Snapshot().Utilisation("a", time.Now()); weight != 0 {
		t.Errorf("weight at a coverage of 60%%: %v, want 0", weight)
	}
}
