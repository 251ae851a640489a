package gpuview

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/wellknown"
	"berth.dev/berth/test/harness/require"
)

const register = "GPU-a,10,16384,100,NVIDIA-Tesla T4,0,true:GPU-b,10,16384,100,NVIDIA-Tesla " +
	"T4,0,true:GPU-c,10,16384,100,NVIDIA-Tesla T4,0,true:"

func hamiNode() *v1.Node {
	return gpuNode(strs{"nvidia.com/gpu": "30"}, nil, strs{hamiRegisterKey: register})
}

// container makes one that asks for these extended resources.
func container(name string, requests strs) v1.Container {
	c := v1.Container{Name: name, Resources: v1.ResourceRequirements{Requests: v1.ResourceList{}}}
	for key, q := range requests {
		c.Resources.Requests[v1.ResourceName(key)] = resource.MustParse(q)
	}
	return c
}

func TestHAMiListsTheDevicesOfEachContainer(t *testing.T) {
	t.Parallel()
	always := v1.ContainerRestartPolicyAlways
	sidecar := func(c v1.Container) v1.Container { c.RestartPolicy = &always; return c }
	one := strs{"nvidia.com/gpu": "1", hamiMemoryResource: "3000"}
	two := strs{"nvidia.com/gpu": "2", hamiMemoryResource: "3000"}
	for _, tc := range []struct {
		name       string
		init, main []v1.Container
		want       string
	}{
		{"one container", nil, []v1.Container{container("a", one)}, "GPU-a,NVIDIA,3000,0:;"},
		{"a container without GPUs has an empty list", nil, []v1.Container{container("log", nil), container("a",
			one)}, ";GPU-a,NVIDIA,3000,0:;"},
		{"containers have devices of their own", nil, []v1.Container{container("a", two), container("b", one)},
			"GPU-a,NVIDIA,3000,0:GPU-b,NVIDIA,3000,0:;GPU-c,NVIDIA,3000,0:;"},
		{"a container that initializes comes first, and leaves its devices to the others",
			[]v1.Container{container("i", two)},
			[]v1.Container{container("a", one)}, "GPU-a,NVIDIA,3000,0:GPU-b,NVIDIA,3000,0:;GPU-a,NVIDIA,3000,0:;"},
		{"a sidecar keeps its devices", []v1.Container{sidecar(container("s", one)), container("i", one)},
			[]v1.Container{container("a", one)}, "GPU-a,NVIDIA,3000,0:;GPU-b,NVIDIA,3000,0:;GPU-b,NVIDIA,3000,0:;"},
		{"cores are limited where they are asked for", nil, []v1.Container{container("a", strs{"nvidia.com/gpu": "1",
			hamiMemoryResource: "3000", hamiCoresResource: "30"})},
			"GPU-a,NVIDIA,3000,30:;"},
		{"cores alone come with all of the memory", nil, []v1.Container{container("a", strs{"nvidia.com/gpu": "1",
			hamiCoresResource: "30"})},
			"GPU-a,NVIDIA,16384,30:;"},
		{"a percentage is of the memory", nil, []v1.Container{container("a", strs{"nvidia.com/gpu": "1",
			hamiPercentResource: "25"})},
			"GPU-a,NVIDIA,4096,0:;"},
		{"whole GPUs have all of the memory and no limit of cores", nil, []v1.Container{container("a",
			strs{"nvidia.com/gpu": "2"})},
			"GPU-a,NVIDIA,16384,0:GPU-b,NVIDIA,16384,0:;"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			keys := DefaultKeys()
			pod := gpuPod(nil, nil)
			pod.Spec.InitContainers, pod.Spec.Containers = tc.init, tc.main
			request, err := keys.PodGPURequest(pod)
			require.NoError(t, err)
			node, bad := keys.ReadGPUNode(hamiNode())
			if len(bad) > 0 {
				t.Fatal(bad)
			}
			devices, share, ok := gpu.Choose(node.Empty().Clone(), &request.Request)
			if !ok {
				t.Fatalf("%+v fits no free node", request)
			}
			a := node.Assign(devices, share)
			got, _, err := Answers(pod, &request, a, time.Unix(1_700_000_000, 0))
			require.NoError(t, err)
			for key, want := range map[string]any{
				"hami.io/vgpu-devices-to-allocate": tc.want, "hami.io/vgpu-devices-allocated": tc.want,
				"hami.io/vgpu-node": "n",
				"hami.io/vgpu-time": "1700000000", "hami.io/bind-time": "1700000000",
				"hami.io/bind-phase":         "allocating",
				"alibabacloud.com/gpu-index": nil,
			} {
				if got[key] != want {
					t.Errorf("%s = %v, want %v", key, got[key], want)
				}
			}
		})
	}
}

func TestWhatHAMisOwnSchedulerGaveCounts(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		lists string
		init  int
		want  []int
	}{
		{"in proportion to the memory", "GPU-b,NVIDIA,4096,0:;", 0, []int{1000, 750, 1000}},
		{"by cores where they are limited", "GPU-b,NVIDIA,4096,60:;", 0, []int{1000, 400, 1000}},
		{"two containers on one device", "GPU-b,NVIDIA,4096,0:;GPU-b,NVIDIA,8192,0:;", 0, []int{1000, 250, 1000}},
		{"a container that initializes does not add up", "GPU-b,NVIDIA,4096,0:;GPU-b,NVIDIA,8192,0:;", 1, []int{1000,
			500, 1000}},
		{"all of a GPU", "GPU-c,NVIDIA,16384,0:;", 0, []int{1000, 1000, 0}},
		{"a device that the node does not have: what is asked for", "GPU-x,NVIDIA,4096,0:;", 0, []int{750, 1000, 1000}},
		{"a list that is cut off: what is asked for", "GPU-b,NVIDIA", 0, []int{750, 1000, 1000}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			// The type is refused to pods that are yet to be placed.
			pod := gpuPod(strs{"nvidia.com/gpu": "1", hamiMemoryResource: "4096"}, strs{hamiAllocatedKey: tc.lists,
				HAMiNodeKey: "n", hamiUseTypeKey: "T4"})
			for range tc.init {
				pod.Spec.InitContainers = append(pod.Spec.InitContainers, container("i", nil))
			}
			keys := DefaultKeys()
			got, _ := freeBy(*keys.Claimed(), hamiNode(), nil, pod)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("free milli-GPU by device (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAListOfHAMisTakesNoMoreThanTheRequest(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name     string
		requests strs
		lists    string
		want     []int
	}{
		{"as much as it asks for", strs{"nvidia.com/gpu": "1", hamiMemoryResource: "4096"}, "GPU-b,NVIDIA,4096,0:;",
			[]int{1000, 750, 1000}},
		{"more memory", strs{"nvidia.com/gpu": "1", hamiMemoryResource: "4096"}, "GPU-b,NVIDIA,16384,0:;",
			[]int{750, 1000, 1000}},
		{"more cores", strs{"nvidia.com/gpu": "1", hamiMemoryResource: "4096"}, "GPU-b,NVIDIA,4096,100:;",
			[]int{750, 1000, 1000}},
		{"more devices", strs{"nvidia.com/gpu": "1", hamiMemoryResource: "4096"}, "GPU-a,NVIDIA,1,0:GPU-b,NVIDIA,1,0:;",
			[]int{750, 1000, 1000}},
		{"two devices of two", strs{"nvidia.com/gpu": "2", hamiMemoryResource: "4096"},
			"GPU-b,NVIDIA,4096,0:GPU-c,NVIDIA,4096,0:;",
			[]int{1000, 750, 750}},
		{"no request at all", nil, "GPU-a,NVIDIA,16384,0:GPU-b,NVIDIA,16384,0:;", []int{1000, 1000, 1000}},
	} {
		pod := gpuPod(tc.requests, strs{hamiAllocatedKey: tc.lists, HAMiNodeKey: "n", hamiUseTypeKey: "T4"})
		if got, _ := freeBeside(hamiNode(), nil, pod); !cmp.Equal(got, tc.want) {
			t.Errorf("%s: free milli-GPU %v, want %v", tc.name, got, tc.want)
		}
	}
}

func TestHAMisDevicesServeAsManyContainersAsTheyAreRegisteredFor(t *testing.T) {
	t.Parallel()
	keys := DefaultKeys()
	const two = "GPU-a,2,16384,100,NVIDIA-Tesla T4,0,true:GPU-b,2,16384,100,NVIDIA-Tesla T4,0,true:"
	limit := func(a, b int) [2]gpu.Device {
		return [2]gpu.Device{{TaskLimit: 2, Tasks: a}, {TaskLimit: 2, Tasks: b}}
	}
	for _, tc := range []struct {
		name, register string
		lists          []string
		init           int
		want           [2]gpu.Device
	}{
		{"an empty node", two, nil, 0, limit(0, 0)},
		{"a container each", two, []string{"GPU-a,NVIDIA,1024,0:;", "GPU-b,NVIDIA,1024,0:;"}, 0, limit(1, 1)},
		{"two containers of a pod", two, []string{"GPU-a,NVIDIA,1024,0:;GPU-a,NVIDIA,1024,0:;"}, 0, limit(2, 0)},
		{"one that initializes and one that follows it", two, []string{"GPU-a,NVIDIA,1024,0:;GPU-a,NVIDIA,1024,0:;"}, 1,
			limit(1, 0)},
		{"another scheduler's third stays where it is", two, []string{
			"GPU-a,NVIDIA,1024,0:;GPU-a,NVIDIA,1024,0:;", "GPU-a,NVIDIA,1024,0:;"}, 0, limit(3, 0)},
		{"a count of none is as good as broken", "GPU-a,0,16384,100,T4,0,true:GPU-b,2,16384,100,T4,0,true:", nil, 0,
			[2]gpu.Device{{Unhealthy: true}, {TaskLimit: 2}}},
		{"JSON", `[{"id":"GPU-a","count":2,"devmem":16384,"health":true},{"id":"GPU-b","devmem":16384,"health":true}]`,
			[]string{"GPU-a,NVIDIA,1024,0:;"}, 0, [2]gpu.Device{{TaskLimit: 2, Tasks: 1}, {}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			info := framework.NewNodeInfo()
			info.SetNode(gpuNode(strs{"nvidia.com/gpu": "4"}, nil, strs{hamiRegisterKey: tc.register}))
			for _, list := range tc.lists {
				pod := gpuPod(strs{"nvidia.com/gpu": "1", hamiMemoryResource: "1024"}, strs{hamiAllocatedKey: list})
				for range tc.init {
					pod.Spec.InitContainers = append(pod.Spec.InitContainers, container("i", nil))
				}
				info.AddPod(pod)
			}
			node, bad := keys.ReadGPUNode(info.Node())
			if len(bad) > 0 {
				t.Fatal(bad)
			}
			inv := keys.Inventory(node, info, nil, "")
			got := [2]gpu.Device{}
			for i, d := range inv.Devices {
				got[i] = gpu.Device{Unhealthy: d.Unhealthy, TaskLimit: d.TaskLimit, Tasks: d.Tasks}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("devices (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEnforcementIsSaid(t *testing.T) {
	t.Parallel()
	keys := DefaultKeys()
	labelled := sharedGPUs()
	labelled.Labels[wellknown.GPUAgentKey] = "gpu-limiter"
	hamiPod := gpuPod(strs{"nvidia.com/gpu": "1", hamiMemoryResource: "4096"}, nil)
	for _, tc := range []struct {
		name string
		pod  *v1.Pod
		node *v1.Node
		want string
	}{
		{"HAMi's share on a node of HAMi", hamiPod, hamiNode(), "enforced by HAMi's device plugin"},
		{"HAMi's share on a node of HAMi that lists no GPU", hamiPod, gpuNode(strs{"nvidia.com/gpu": "30"}, nil,
			strs{hamiRegisterKey: "[]"}),
			"enforced by HAMi's device plugin"},
		{"another share on a node of HAMi", gpuPod(nil, strs{OpenbMilliKey: "300"}), hamiNode(),
			"accounting only: nothing on the node holds the pod to its share"},
		{"a share on a node without an agent", gpuPod(nil, strs{kaiFractionKey: "0.5"}), sharedGPUs(),
			"accounting only: nothing on the node holds the pod to its share"},
		{"a share on a node with an agent of the user's", gpuPod(nil, strs{OpenbMilliKey: "300"}), labelled,
			"enforced by gpu-limiter, says the node's label berth.dev/gpu-agent"},
		{"a whole GPU is no share", gpuPod(strs{"nvidia.com/gpu": "1"}, nil), hamiNode(), ""},
	} {
		if got := keys.Enforcement(tc.pod, tc.node); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}

func FuzzHAMiDevices(f *testing.F) {
	f.Add("GPU-a,NVIDIA,3000,0:;GPU-b,NVIDIA,0,30:GPU-a,NVIDIA,99999,0:;;")
	f.Add("GPU-a,NVIDIA,-1,0:;")
	f.Add(";;;:::,,,")
	f.Fuzz(func(t *testing.T, lists string) {
		pod := gpuPod(strs{"nvidia.com/gpu": "1", hamiMemoryResource: "4096"}, strs{hamiAllocatedKey: lists})
		free, inv := freeBeside(hamiNode(), nil, pod)
		taken := 0
		for i, milli := range free {
			if milli < 0 || milli > 1000 || inv.Devices[i].FreeMemMiB < 0 {
				t.Errorf("device %d has %d milli-GPU and %d MiB free", i, milli, inv.Devices[i].FreeMemMiB)
			}
			taken += 1000 - milli
		}
		if taken == 0 {
			t.Errorf("the pod counts for nothing with %q", lists)
		}
	})
}
