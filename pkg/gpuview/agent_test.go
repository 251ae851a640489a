package gpuview

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/wellknown"
)

// listed is a list of n healthy GPUs, changed by the test.
func listed(t *testing.T, n int, tune func([]PublishedGPU)) string {
	t.Helper()
	devices := make([]PublishedGPU, n)
	for i := range devices {
		devices[i] = PublishedGPU{Index: i, UUID: fmt.Sprint("GPU-", i), Model: "NVIDIA-A100-SXM4-80GB", MemMiB: 81920,
			Healthy: true}
	}
	if tune != nil {
		tune(devices)
	}
	value, err := EncodeGPUs(devices)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func unhealthyIndices(inv *gpu.Inventory) []int {
	var at []int
	for i, d := range inv.Devices {
		if d.Unhealthy {
			at = append(at, i)
		}
	}
	return at
}

func TestTheAgentsListFillsInWhatTheNodeDoesNotTell(t *testing.T) {
	t.Parallel()
	keys := DefaultKeys()
	const nv = "nvidia.com/gpu"
	ill := func(at ...int) func([]PublishedGPU) {
		return func(d []PublishedGPU) {
			for _, i := range at {
				d[i].Healthy = false
			}
		}
	}
	sliced := func(at ...int) func([]PublishedGPU) {
		return func(d []PublishedGPU) {
			for _, i := range at {
				d[i].MIG = true
			}
		}
	}
	for name, tc := range map[string]struct {
		allocatable, labels strs
		list                string
		want                facts
		unhealthy           []int
		bad                 string
	}{
		"model and memory without feature discovery": {strs{nv: "8"}, nil, listed(t, 8, nil),
			facts{gpu.ModeDevicePlugin, nv, "NVIDIA-A100-SXM4-80GB", 80, 81920, 8, 8, 0, 1, 8, ""}, nil, ""},
		"labels come first": {strs{nv: "8"}, strs{"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB",
			"nvidia.com/gpu.memory": "40960"}, listed(t, 8, nil),
			facts{gpu.ModeDevicePlugin, nv, "NVIDIA-A100-SXM4-40GB", 80, 40960, 8, 8, 0, 1, 8, ""}, nil, ""},
		"which GPU the kubelet has taken out": {strs{nv: "7"}, nil, listed(t, 8, ill(2)),
			facts{gpu.ModeDevicePlugin, nv, "NVIDIA-A100-SXM4-80GB", 80, 81920, 8, 7, 0, 1, 8, ""}, []int{2}, ""},
		"a GPU that was ill and is offered again counts": {strs{nv: "8"}, nil, listed(t, 8, ill(2)),
			facts{gpu.ModeDevicePlugin, nv, "NVIDIA-A100-SXM4-80GB", 80, 81920, 8, 8, 0, 1, 8, ""}, nil, ""},
		"more are taken out than the list knows": {strs{nv: "6"}, nil, listed(t, 8, ill(2)),
			facts{gpu.ModeDevicePlugin, nv, "NVIDIA-A100-SXM4-80GB", 80, 81920, 8, 6, 0, 1, 8, ""}, []int{2, 7}, ""},
		"GPUs in slices are those that are not offered whole": {strs{nv: "6"}, nil, listed(t, 8, sliced(0, 1)),
			facts{gpu.ModeDevicePlugin, nv, "NVIDIA-A100-SXM4-80GB", 80, 81920, 8, 6, 0, 1, 8, ""}, []int{0, 1}, ""},
		"half of the GPUs have vanished": {strs{nv: "4"}, strs{"nvidia.com/gpu.count": "8"}, listed(t, 4, nil),
			facts{gpu.ModeDevicePlugin, nv, "NVIDIA-A100-SXM4-80GB", 80, 81920, 8, 4, 0, 1, 8, ""}, []int{4, 5, 6, 7}, ""},
		"time slices without a label": {strs{nv: "8"}, nil,
			listed(t, 2, func(d []PublishedGPU) { d[0].Replicas, d[1].Replicas = 4, 4 }),
			facts{gpu.ModeDevicePlugin, nv, "NVIDIA-A100-SXM4-80GB", 80, 81920, 2, 2, 0, 4, 2, ""}, nil, ""},
		"a list that the kubelet's count contradicts loses no device": {strs{nv: "8"}, nil, listed(t, 4, nil),
			facts{gpu.ModeDevicePlugin, nv, "", 0, 0, 8, 8, 0, 1, 1, ""}, nil, `is not up to date: the kubelet offers 8, the list has 4`},
		"slices that are called GPUs are not on the list": {strs{nv: "7"}, nil, listed(t, 1, sliced(0)),
			facts{gpu.ModeDevicePlugin, nv, "", 0, 0, 7, 7, 0, 1, 1, ""}, nil, ""},
		"no JSON": {strs{nv: "1"}, nil, "eight", facts{gpu.ModeDevicePlugin, nv, "", 0, 0, 1, 1, 0, 1, 1, ""}, nil,
			"node annotation berth.dev/gpu-devices"},
		"a GPU twice":   {strs{nv: "1"}, nil, `[{"index":0,"uuid":"a"},{"index":0,"uuid":"b"}]`, facts{gpu.ModeDevicePlugin, nv, "", 0, 0, 1, 1, 0, 1, 1, ""}, nil, "index 0: want each once"},
		"a UUID twice":  {strs{nv: "1"}, nil, `[{"index":0,"uuid":"a"},{"index":1,"uuid":"a"}]`, facts{gpu.ModeDevicePlugin, nv, "", 0, 0, 1, 1, 0, 1, 1, ""}, nil, "want one of its own"},
		"a huge memory": {strs{nv: "1"}, nil, `[{"index":0,"uuid":"a","memMiB":2000000000}]`, facts{gpu.ModeDevicePlugin, nv, "", 0, 0, 1, 1, 0, 1, 1, ""}, nil, "memMiB 2000000000"},
		"too long": {strs{nv: "1"}, nil, "[" + strings.Repeat(" ", maxPublished) + "]",
			facts{gpu.ModeDevicePlugin, nv, "", 0, 0, 1, 1, 0, 1, 1, ""}, nil, "at most 65536"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, bad := keys.ReadGPUNode(gpuNode(tc.allocatable, tc.labels, strs{wellknown.GPUDevicesKey: tc.list}))
			if diff := cmp.Diff(tc.want, factsOf(got)); diff != "" {
				t.Errorf("node (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.unhealthy, unhealthyIndices(got.Empty())); diff != "" {
				t.Errorf("unhealthy GPUs (-want +got):\n%s", diff)
			}
			switch {
			case tc.bad == "" && len(bad) > 0:
				t.Errorf("bad values %v", bad)
			case tc.bad != "" && (len(bad) != 1 || !strings.Contains(bad[0].Error(), tc.bad)):
				t.Errorf("bad values %v, want one with %q", bad, tc.bad)
			}
		})
	}
}

// bridges are four GPUs, two pairs connected by NVLink.
const bridges = `{"links":[[0,1,"NV12"],[2,3,"NV12"]]}`

func TestGPUsInUseCountOnlyAsFarAsPodsAsk(t *testing.T) {
	t.Parallel()
	keys := DefaultKeys()
	pair := &gpu.Request{Resource: "nvidia.com/gpu", Count: 2, Milli: gpu.WholeMilli,
		Interconnect: gpu.InterconnectRequired}
	for name, tc := range map[string]struct {
		inUse string
		held  int
		free  []int
		// linked says whether two linked GPUs are free.
		linked bool
	}{
		"those that are in use are taken":                         {"0,2", 2, []int{1, 3}, false},
		"one pair is left whole":                                  {"2,3", 2, []int{0, 1}, true},
		"one that no pod asks for is free":                        {"0,1,2,3", 1, []int{1, 2, 3}, true},
		"a pod that the agent has not seen takes what links best": {"0", 3, []int{1}, false},
		"a pod of two beside one of two":                          {"2,3", 4, nil, false},
		"nothing is reported, pods hold two":                      {"", 2, []int{2, 3}, true},
		"an index that is repeated counts once":                   {"1,1", 2, []int{2, 3}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			node := gpuNode(strs{"nvidia.com/gpu": "4"}, nil,
				strs{wellknown.GPULinksKey: bridges, wellknown.GPUsInUseKey: tc.inUse})
			seen, bad := keys.ReadGPUNode(node)
			if len(bad) > 0 {
				t.Fatal(bad)
			}
			inv := keys.Inventory(seen, nodeInfo(node, holder(tc.held)), nil, "")
			var free []int
			for i, d := range inv.Devices {
				if d.FreeMilli == gpu.WholeMilli {
					free = append(free, i)
				}
			}
			if inv.FreeWhole() != 4-tc.held {
				t.Errorf("%d GPUs free, want %d: the pods' count stands above the agent's", inv.FreeWhole(), 4-tc.held)
			}
			if tc.free != nil && cmp.Diff(tc.free, free) != "" {
				t.Errorf("GPUs %v are free, want %v", free, tc.free)
			}
			if got := gpu.Fit(inv, pair).Cause == gpu.Fits; got != tc.linked {
				t.Errorf("two linked GPUs: %v, want %v", got, tc.linked)
			}
		})
	}
}

// TestGPUsInUseCountOnlyWhileTheAgentLooks: 0 and 2 were in use when it looked last, by then 0 and 1 are.
func TestGPUsInUseCountOnlyWhileTheAgentLooks(t *testing.T) {
	t.Parallel()
	keys := DefaultKeys()
	pair := &gpu.Request{Resource: "nvidia.com/gpu", Count: 2, Milli: gpu.WholeMilli,
		Interconnect: gpu.InterconnectRequired}
	report := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		at     string
		report time.Time
		// counts says whether the value is believed.
		counts bool
		bad    string
	}{
		"it looked just now":                   {EncodeInUseAt(report), report, true, ""},
		"it looked after the kubelet's report": {EncodeInUseAt(report.Add(time.Hour)), report, true, ""},
		"it looked a quarter of an hour ago":   {EncodeInUseAt(report.Add(-15 * time.Minute)), report, true, ""},
		"it has not looked since": {EncodeInUseAt(report.Add(-16 * time.Minute)), report, false,
			"berth.dev/gpus-in-use is ignored"},
		"it looked in another time zone":            {"2026-01-31T17:15:00+05:30", report, true, ""},
		"it does not say when":                      {"", report, true, ""},
		"it says when, and the kubelet does not":    {EncodeInUseAt(report.Add(-time.Hour)), time.Time{}, true, ""},
		"it says it in words, which are not a time": {"yesterday", report, true, "is not a time such as"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			annotations := strs{wellknown.GPULinksKey: bridges, wellknown.GPUsInUseKey: "0,2"}
			if tc.at != "" {
				annotations[wellknown.GPUsInUseAtKey] = tc.at
			}
			node := gpuNode(strs{"nvidia.com/gpu": "4"}, nil, annotations)
			node.Status.Conditions = []v1.NodeCondition{
				{Type: "KernelDeadlock", LastHeartbeatTime: metav1.NewTime(report.Add(24 * time.Hour))},
				{Type: v1.NodeReady, LastHeartbeatTime: metav1.NewTime(tc.report)},
			}
			seen, bad := keys.ReadGPUNode(node)
			switch {
			case tc.bad == "" && len(bad) > 0:
				t.Errorf("bad values %v", bad)
			case tc.bad != "" && (len(bad) != 1 || !strings.Contains(bad[0].Error(), tc.bad)):
				t.Errorf("bad values %v, want one with %q", bad, tc.bad)
			}
			inv := keys.Inventory(seen, nodeInfo(node, holder(2)), nil, "")
			if linked := gpu.Fit(inv, pair).Cause == gpu.Fits; linked == tc.counts {
				t.Errorf("two linked GPUs are free: %v, want %v", linked, !tc.counts)
			}
		})
	}
}

func TestTheAgentReadsEveryResourceOfNVIDIA(t *testing.T) {
	t.Parallel()
	want := []string{"nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-*"}
	if diff := cmp.Diff(want, NVIDIAResources()); diff != "" {
		t.Errorf("resources (-want +got):\n%s", diff)
	}
}

// TestTheAgentNumbersTheGPUsOfAllResources reads a node on which some GPUs are whole and some are cut into time slices
// under a name of their own: nothing says which index is behind which resource.
func TestTheAgentNumbersTheGPUsOfAllResources(t *testing.T) {
	t.Parallel()
	keys := DefaultKeys()
	list := listed(t, 8, func(d []PublishedGPU) {
		for i := range 4 {
			d[i].Replicas = 4
		}
	})
	node := gpuNode(strs{"nvidia.com/gpu": "4", "nvidia.com/gpu.shared": "16"}, nil,
		strs{wellknown.GPUDevicesKey: list, wellknown.GPULinksKey: `{"links":[[4,7,"NV12"]]}`, wellknown.GPUsInUseKey: "5,7"})
	seen, bad := keys.ReadGPUNode(node)
	if len(bad) > 0 {
		t.Errorf("bad values %v, want none: the annotations name GPUs that the node has", bad)
	}
	var got []facts
	for _, pool := range seen.Pools() {
		got = append(got, factsOf(&Node{empty: *pool.Empty()}))
	}
	want := []facts{
		{gpu.ModeDevicePlugin, "nvidia.com/gpu", "NVIDIA-A100-SXM4-80GB", 80, 81920, 4, 4, 0, 1, 4, ""},
		{gpu.ModeDevicePlugin, "nvidia.com/gpu.shared", "NVIDIA-A100-SXM4-80GB", 80, 81920, 4, 4, 0, 4, 4, ""},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pools (-want +got):\n%s", diff)
	}
	if seen.Empty().IndexKnown {
		t.Error("the indices in use count for one resource of several")
	}
}

func FuzzAgentAnnotations(f *testing.F) {
	f.Add(`[{"index":0,"uuid":"GPU-a","model":"T4","memMiB":15360,"healthy":true}]`, bridges, "0,1", 4, 0)
	f.Add(`[{"index":63,"uuid":"GPU-a","replicas":1024,"mig":true}]`, `{"links":[]}`, "", 0, 16)
	f.Add(`[{"index":0,"uuid":"a"},{"index":7,"uuid":"b","replicas":4}]`, `{"links":[[0,7,"NV12"]]}`, "0,7", 1, 4)
	f.Add("", "", "x", -1, 64)
	keys := DefaultKeys()
	f.Fuzz(func(t *testing.T, devices, links, inUse string, offered, slices int) {
		offered, slices = min(max(offered, 0), 64), min(max(slices, 0), 1<<20)
		annotations := strs{wellknown.GPUDevicesKey: devices, wellknown.GPULinksKey: links, wellknown.GPUsInUseKey: inUse}
		node := gpuNode(strs{"nvidia.com/gpu": fmt.Sprint(offered)}, nil, annotations)
		both := node.DeepCopy()
		both.Status.Allocatable["nvidia.com/gpu.shared"] = *resource.NewQuantity(int64(slices), resource.DecimalSI)
		several, _ := keys.ReadGPUNode(both)
		for _, pool := range several.Pools() {
			inv := keys.Inventory(pool, nodeInfo(both, holder(offered/2)), nil, "")
			if n := len(inv.Devices); n > MaxGPUs || inv.Replicas < 1 {
				t.Fatalf("%s: %d devices, %d replicas", inv.Resource, n, inv.Replicas)
			}
			if offered > 0 && slices > 0 && inv.Healthy() != len(inv.Devices) {
				t.Fatalf("%s: %d of %d GPUs are healthy, want all that are offered", inv.Resource, inv.Healthy(), len(inv.Devices))
			}
		}
		seen, _ := keys.ReadGPUNode(node)
		inv := keys.Inventory(seen, nodeInfo(node, holder(offered/2)), nil, "")
		if n := len(inv.Devices); n > MaxGPUs || inv.Replicas < 1 {
			t.Fatalf("%d devices, %d replicas", n, inv.Replicas)
		}
		if inv.TimeSliced() {
			return
		}
		if inv.Healthy() != offered || inv.FreeWhole() != offered-offered/2 {
			t.Fatalf("of %d offered GPUs %d count as healthy and %d as free, want %d and %d: no annotation loses a device",
				offered, inv.Healthy(), inv.FreeWhole(), offered, offered-offered/2)
		}
	})
}

// holder is a pod that holds n GPUs.
func holder(n int) *v1.Pod {
	return gpuPod(strs{"nvidia.com/gpu": fmt.Sprint(n)}, nil)
}

// nodeInfo is a node with a pod on it.
func nodeInfo(node *v1.Node, pod *v1.Pod) fwk.NodeInfo {
	info := framework.NewNodeInfo(pod)
	info.SetNode(node)
	return info
}
