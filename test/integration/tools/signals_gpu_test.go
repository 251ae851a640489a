package tools_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"

	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/pkg/signals"
	"berth.dev/berth/test/harness/assert"
)

func gpuArgs(url string) *config.GPUSignals {
	args := &config.GPUSignals{Prometheus: soon(url)}
	config.SetDefaultsGPUSignals(args)
	return args
}

// startGPUs reads the signals of nodes until the test ends.
func startGPUs(t *testing.T, args *config.GPUSignals, nodes ...signals.Node) *signals.Reader[signals.GPUSnapshot] {
	t.Helper()
	r, err := signals.StartGPU(t.Context(), newFactory(), args, func() []signals.Node { return nodes },
		func() bool { return true })
	if err != nil {
		t.Fatalf("starting the reader: %v", err)
	}
	return r
}

func TestUseIsReadFromARealPrometheus(t *testing.T) {
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
	r := startGPUs(t, args, signals.Node{Name: "a"}, signals.Node{Name: "b-0", Hostname: "b.example.com"},
		signals.Node{Name: "c"})
	names := []string{"a", "b-0", "c"}
	reads(t, func() string {
		for _, node := range names {
			if _, ok := r.Snapshot().Use(node, time.Now()); !ok {
				return "no use of node " + node
			}
		}
		return ""
	})

	want := map[string]signals.Use{
		"a": {MeanMilli: 500, GPUs: []signals.GPUUse{
			{GPUID: signals.GPUID{Index: 0, UUID: "GPU-a0"}, Milli: 250, UsedMiB: 1000, FreeMiB: 80000},
			{GPUID: signals.GPUID{Index: 1, UUID: "GPU-a1"}, Milli: 750}}},
		"b-0": {MeanMilli: 600, GPUs: []signals.GPUUse{
			{GPUID: signals.GPUID{Index: 0, UUID: "GPU-b0"}, Milli: 500, UsedMiB: 4000, FreeMiB: 77000},
			{GPUID: signals.GPUID{Index: 1, UUID: "GPU-b1"}, Milli: 700, UsedMiB: 300, FreeMiB: 27000}}},
		"c": {MeanMilli: 400, GPUs: []signals.GPUUse{
			{GPUID: signals.GPUID{Index: 0, UUID: "GPU-c0"}, Milli: 400, UsedMiB: 10, FreeMiB: 20}}},
	}
	snapshot, now := r.Snapshot(), time.Now()
	// A sample seems older than it is by no more than a round takes: its age is told when the server has got to the
	// query, and counted from when it was asked.
	took := now.Sub(start)
	got := map[string]signals.Use{}
	for _, node := range names {
		got[node], _ = snapshot.Use(node, now)
		if at := got[node].Time; at.Before(scraped.Add(-took)) || at.After(now) {
			t.Errorf("sample of node %s taken at %s, want between %s, less the %s of a round, and now", node, at, scraped, took)
		}
	}
	assert.Equal(t, "use", want, got, cmpopts.IgnoreTypes(time.Time{}))
	if faults := snapshot.Faults("a", now); faults != nil {
		t.Errorf("faults of a healthy node: %v", faults)
	}
}
