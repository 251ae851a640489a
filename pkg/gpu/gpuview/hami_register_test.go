package gpuview

import (
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/wellknown"
	"berth.dev/berth/test/harness/require"
)

// TestAHAMiRecordCountsAsTheRequestBehindIt compares the share that a pod is promised with the one that is read from
// its list.
func TestAHAMiRecordCountsAsTheRequestBehindIt(t *testing.T) {
	t.Parallel()
	keys := DefaultKeys()
	node, _ := keys.ReadGPUNode(hamiNode())
	for _, memMiB := range []string{"1", "2048", "2730", "5461", "8193", "16384"} {
		request, err := keys.PodGPURequest(gpuPod(strs{"nvidia.com/gpu": "1", hamiMemoryResource: memMiB}, nil))
		require.NoError(t, err)
		_, want, _ := gpu.Choose(node.Empty(), &request.Request)
		if _, got, ok := readHAMiRecord("GPU-a,NVIDIA,"+memMiB+",0", node); !ok || got != want {
			t.Errorf("%s MiB: read as %+v, %v, promised %+v", memMiB, got, ok, want)
		}
	}
}

// TestANodeOfHAMiThatListsNoGPUGivesOutNone has eight GPUs of ten parts each and a register without one that can be
// read.
func TestANodeOfHAMiThatListsNoGPUGivesOutNone(t *testing.T) {
	t.Parallel()
	keys := DefaultKeys()
	for _, tc := range []struct {
		name, register string
		labels         strs
		gpus           int
	}{
		{"the empty list of an agent without a driver", "[]", nil, 0},
		{"no record", ":", nil, 0},
		{"nothing at all", "", nil, 0},
		{"a list that is cut short", "GPU-a,10", nil, 0},
		{"a GPU twice", "GPU-a,10,16384,100,T4,0,true:GPU-a,10,16384,100,T4,0,true:", nil, 0},
		{"a GPU twice, once broken", "GPU-a,10,16384,100,T4,0,true:GPU-a,10,16384,100,T4,0,false:", nil, 0},
		{"a GPU twice in JSON", `[{"id":"GPU-a","count":10,"devmem":16384,"health":true},{"id":"GPU-a","count":5,"devmem":8192,"health":true}]`, nil, 0},
		{"GPUs that labels tell of", "[]", strs{"nvidia.com/gpu.count": "8"}, 8},
		{"a node that is labeled as one of device plugins", "[]", strs{wellknown.GPUModeKey: "device-plugin"}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			node, bad := keys.ReadGPUNode(gpuNode(strs{"nvidia.com/gpu": "80"}, tc.labels, strs{hamiRegisterKey: tc.register}))
			if len(bad) != 1 || !strings.Contains(bad[0].Error(),
				"is not a list of one device or more, each once, as HAMi writes it") || bad[0].Effect == "" {
				t.Errorf("bad values %v, want one about the register that says what follows", bad)
			}
			inv := node.Empty()
			if len(inv.Devices) != tc.gpus || inv.Healthy() != 0 || !inv.HasGPU() {
				t.Errorf("%d GPUs, %d healthy, want %d and none healthy", len(inv.Devices), inv.Healthy(), tc.gpus)
			}
			if shared := inv.Mode == gpu.ModeShared; shared == (tc.labels[wellknown.GPUModeKey] != "") {
				t.Errorf("mode %d", inv.Mode)
			}
			for _, asks := range []strs{{"nvidia.com/gpu": "1"}, {"nvidia.com/gpu": "1", hamiMemoryResource: "1000"}} {
				r, err := keys.PodGPURequest(gpuPod(asks, nil))
				require.NoError(t, err)
				if got := gpu.Fit(inv, &r.Request).String(); got != "node(s) whose agent lists no GPU" {
					t.Errorf("a pod that asks for %v: %q", asks, got)
				}
			}
		})
	}
}

// TestEachGPUOfTheRegisterHasItsOwnMemory has one of 24 GiB and one of 80 GiB.
func TestEachGPUOfTheRegisterHasItsOwnMemory(t *testing.T) {
	t.Parallel()
	keys := DefaultKeys()
	const two = "GPU-a,10,24576,100,NVIDIA-L4,0,true:GPU-b,10,81920,100,NVIDIA-A100,0,true:"
	object := gpuNode(strs{"nvidia.com/gpu": "20"}, nil, strs{hamiRegisterKey: two})
	for _, tc := range []struct {
		name     string
		requests strs
		running  []*v1.Pod
		want     string
	}{
		{"both", strs{"nvidia.com/gpu": "2"}, nil, "GPU-a,NVIDIA,24576,0:GPU-b,NVIDIA,81920,0:;"},
		{"the large one, as a whole", strs{"nvidia.com/gpu": "1"},
			[]*v1.Pod{hamiPod("GPU-a,NVIDIA,24576,0:;", strs{"nvidia.com/gpu": "1"})},
			"GPU-b,NVIDIA,81920,0:;"},
		{"more memory than the small one has", strs{"nvidia.com/gpu": "1", hamiMemoryResource: "40000"}, nil,
			"GPU-b,NVIDIA,40000,0:;"},
		{"half of the large one", strs{"nvidia.com/gpu": "1", hamiPercentResource: "50"},
			[]*v1.Pod{hamiPod("GPU-a,NVIDIA,20000,0:;", strs{"nvidia.com/gpu": "1", hamiMemoryResource: "20000"})},
			"GPU-b,NVIDIA,40960,0:;"},
		{"the rest of the large one", strs{"nvidia.com/gpu": "1", hamiMemoryResource: "41920"},
			[]*v1.Pod{hamiPod("GPU-b,NVIDIA,40000,0:;", strs{"nvidia.com/gpu": "1", hamiMemoryResource: "40000"})},
			"GPU-b,NVIDIA,41920,0:;"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			info := framework.NewNodeInfo()
			info.SetNode(object)
			for _, pod := range tc.running {
				info.AddPod(pod)
			}
			pod := gpuPod(tc.requests, nil)
			request, err := keys.PodGPURequest(pod)
			require.NoError(t, err)
			node, bad := keys.ReadGPUNode(object)
			if len(bad) > 0 {
				t.Fatal(bad)
			}
			inv := keys.Inventory(node, info, nil, "")
			devices, share, ok := gpu.Choose(inv, &request.Request)
			if !ok {
				t.Fatalf("%+v does not fit: %s", request, gpu.Fit(inv, &request.Request))
			}
			got, _, err := Answers(pod, &request, node.Assign(devices, share), time.Unix(1, 0))
			require.NoError(t, err)
			if got := got[hamiAllocateKey]; got != tc.want {
				t.Errorf("devices %v, want %s", got, tc.want)
			}
		})
	}
}

// hamiPod is one that HAMi's own scheduler has put on the node.
func hamiPod(list string, requests strs) *v1.Pod {
	pod := gpuPod(requests, strs{hamiAllocatedKey: list, HAMiNodeKey: "n"})
	pod.UID, pod.Spec.NodeName = "running", "n"
	return pod
}
