package gpuview

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/wellknown"
	"berth.dev/berth/test/harness/require"
)

// sharedGPUs is a node of two GPUs of 16 GiB whose shares the scheduler gives out.
func sharedGPUs() *v1.Node {
	return gpuNode(strs{"nvidia.com/gpu": "2"}, strs{wellknown.GPUModeKey: "shared", "nvidia.com/gpu.memory": "16384"},
		nil)
}

// granted records a grant in the status of the pod.
func granted(pod *v1.Pod, value string) *v1.Pod {
	pod.Status.Conditions = append(pod.Status.Conditions, v1.PodCondition{Type: GPUsAssigned, Status: v1.ConditionTrue,
		Message: value})
	return pod
}

// freeBeside is the free compute of each GPU of the node with these pods on it.
func freeBeside(node *v1.Node, promised AssignmentOf, pods ...*v1.Pod) ([]int, *gpu.Inventory) {
	return freeBy(DefaultKeys(), node, promised, pods...)
}

func freeBy(keys Keys, node *v1.Node, promised AssignmentOf, pods ...*v1.Pod) ([]int, *gpu.Inventory) {
	info := framework.NewNodeInfo()
	info.SetNode(node)
	for _, pod := range pods {
		pod.Spec.NodeName = node.Name
		info.AddPod(pod)
	}
	read, _ := keys.ReadGPUNode(node)
	inv := keys.Inventory(read, info, promised, "")
	var free []int
	for _, d := range inv.Devices {
		free = append(free, d.FreeMilli)
	}
	return free, inv
}

const grantOf1 = `{"pod":"p","node":"n","devices":[1],"milli":300,"memMiB":4915}`

// TestWhatAPodOnASharedNodeHolds says for each pod what it holds by default, and what it does where annotations are
// trusted.
func TestWhatAPodOnASharedNodeHolds(t *testing.T) {
	t.Parallel()
	none := []int{1000, 1000}
	for _, tc := range []struct {
		name          string
		requests      strs
		annotations   strs
		condition     string
		want, trusted []int
	}{
		{"what it was granted", nil, strs{OpenbMilliKey: "300", openbIndexKey: "1"}, grantOf1, []int{1000, 700},
			[]int{1000, 700}},
		{"the grant stays when the request is removed", nil, nil, grantOf1, []int{1000, 700}, []int{1000, 700}},
		{"the grant stays when the request is changed", nil, strs{kaiFractionKey: "0.9"}, grantOf1, []int{1000, 700},
			[]int{1000, 700}},
		{"the grant stays when the request cannot be read", nil, strs{OpenbMilliKey: "none"}, grantOf1, []int{1000, 700},
			[]int{1000, 700}},
		{"the grant counts before the answer of a dialect", nil, strs{OpenbMilliKey: "300", openbIndexKey: "0"}, grantOf1,
			[]int{1000, 700}, []int{1000, 700}},
		{"the grant counts before another one in an annotation", nil,
			strs{OpenbMilliKey: "300", wellknown.GPUAssignedKey: strings.Replace(grantOf1, "[1]", "[0]", 1)}, grantOf1,
			[]int{1000, 700}, []int{1000, 700}},
		{"a grant in an annotation alone", nil, strs{OpenbMilliKey: "300", wellknown.GPUAssignedKey: grantOf1}, "", none,
			[]int{1000, 700}},
		{"a grant of another pod says nothing", nil, strs{OpenbMilliKey: "500", openbIndexKey: "0"},
			strings.Replace(grantOf1, `"p"`, `"q"`, 1), none, []int{500, 1000}},
		{"a grant of another node says nothing", nil, strs{OpenbMilliKey: "500", openbIndexKey: "0"},
			strings.Replace(grantOf1, `"n"`, `"m"`, 1), none, []int{500, 1000}},
		{"a grant that cannot be read says nothing", nil, strs{OpenbMilliKey: "500", openbIndexKey: "0"}, "GPU 1", none,
			[]int{500, 1000}},
		{"without a grant, the answer of a dialect", nil, strs{OpenbMilliKey: "500", openbIndexKey: "1"}, "", none,
			[]int{1000, 500}},
		{"an answer of another number of devices is none", nil, strs{OpenbMilliKey: "500", OpenbCountKey: "2",
			openbIndexKey: "1"}, "",
			none, []int{500, 500}},
		{"an answer out of range is none", nil, strs{OpenbMilliKey: "500", openbIndexKey: "77"}, "", none, []int{500, 1000}},
		{"an answer below the range is none", nil, strs{OpenbMilliKey: "500", openbIndexKey: "-1"}, "", none,
			[]int{500, 1000}},
		{"an answer of devices that the node lacks", nil, strs{OpenbMilliKey: "500", openbIndexKey: "5"}, "", none,
			[]int{500, 1000}},
		{"without an answer, what it asks for", nil, strs{kaiFractionKey: "0.25"}, "", none, []int{750, 1000}},
		{"a share that cannot be read is one GPU", nil, strs{OpenbMilliKey: "half"}, "", none, []int{0, 1000}},
		{"a share that cannot be read beside resources is these", strs{"nvidia.com/gpu": "2"}, strs{kaiFractionKey: "half"},
			"",
			[]int{0, 0}, []int{0, 0}},
		{"a contradiction is its resources", strs{"nvidia.com/gpu": "1"}, strs{kaiFractionKey: "0.5"}, "", []int{0, 1000},
			[]int{0, 1000}},
		{"resources, on the device that it was told", strs{"nvidia.com/gpu": "1"}, strs{openbIndexKey: "1"}, "",
			[]int{1000, 0}, []int{1000, 0}},
		{"resources, on more devices than it asks for", strs{"nvidia.com/gpu": "1"}, strs{openbIndexKey: "0-1"}, "",
			[]int{0, 1000}, []int{0, 1000}},
		{"HAMi's memory without a GPU", strs{"nvidia.com/gpumem": "4096"}, nil, "", none, []int{0, 1000}},
		{"a constraint that cannot be read changes no share", nil,
			strs{OpenbMilliKey: "500", wellknown.GPUMemoryMinKey: "lots"}, "",
			none, []int{500, 1000}},
		{"a share of more memory than there is takes a GPU", nil, strs{kaiMemoryKey: "99999"}, "", none, []int{0, 1000}},
		{"a pod without GPUs holds none", nil, strs{"app": "web"}, "", none, none},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			pod := gpuPod(tc.requests, tc.annotations)
			if tc.condition != "" {
				granted(pod, tc.condition)
			}
			got, _ := freeBeside(sharedGPUs(), nil, pod.DeepCopy())
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("free milli-GPU by device (-want +got):\n%s", diff)
			}
			trusting := DefaultKeys()
			got, _ = freeBy(*trusting.Claimed(), sharedGPUs(), nil, pod)
			if diff := cmp.Diff(tc.trusted, got); diff != "" {
				t.Errorf("where annotations are trusted: free milli-GPU by device (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAPromiseCountsBeforeAnyAnnotation(t *testing.T) {
	t.Parallel()
	promised := func(uid types.UID) (Assignment, bool) {
		return Assignment{Node: "n", Devices: []int{0}, Share: gpu.Share{Milli: 100}}, uid == "p"
	}
	for name, annotations := range map[string]strs{
		"no annotation at all":  nil,
		"another grant":         {wellknown.GPUAssignedKey: grantOf1},
		"a request of all GPUs": {OpenbMilliKey: "1000", OpenbCountKey: "2", openbIndexKey: "0-1"},
	} {
		got, _ := freeBeside(sharedGPUs(), promised, gpuPod(nil, annotations))
		if diff := cmp.Diff([]int{900, 1000}, got); diff != "" {
			t.Errorf("%s: free milli-GPU by device (-want +got):\n%s", name, diff)
		}
	}
}

func TestSharesAndWholeGPUsAreToldApartWhereNothingElseDoes(t *testing.T) {
	t.Parallel()
	share, whole := granted(gpuPod(nil, nil), grantOf1), gpuPod(strs{"nvidia.com/gpu": "1"}, nil)
	squatter := gpuPod(nil, strs{OpenbMilliKey: "500"})
	if _, inv := freeBeside(sharedGPUs(), nil, squatter); inv.SharesInUse || inv.WholeInUse {
		t.Errorf("beside a claim: shares %v, whole %v", inv.SharesInUse, inv.WholeInUse)
	}
	if _, inv := freeBeside(sharedGPUs(), nil, share.DeepCopy()); !inv.SharesInUse || inv.WholeInUse {
		t.Errorf("beside a share: shares %v, whole %v", inv.SharesInUse, inv.WholeInUse)
	}
	if _, inv := freeBeside(sharedGPUs(), nil, whole.DeepCopy()); inv.SharesInUse || !inv.WholeInUse {
		t.Errorf("beside a whole GPU: shares %v, whole %v", inv.SharesInUse, inv.WholeInUse)
	}
	node := sharedGPUs()
	node.Labels[wellknown.GPUAgentKey] = "ours"
	if _, inv := freeBeside(node, nil, whole, share); inv.SharesInUse || inv.WholeInUse || inv.Agent == gpu.AgentNone {
		t.Errorf("with an agent: shares %v, whole %v, agent %v", inv.SharesInUse, inv.WholeInUse, inv.Agent)
	}
}

func TestAGrantFollowsItsDevicesWhenTheNodeListsThemAnew(t *testing.T) {
	t.Parallel()
	grant := `{"pod":"p","node":"n","devices":[1],"uuids":["GPU-b"],"milli":300,"memMiB":4915}`
	node := hamiNode()
	for want, list := range map[int]string{1: register, 0: register[strings.Index(register, "GPU-b"):],
		2: "GPU-x,10,16384,100,NVIDIA-T4,0,true:" + register} {
		node.Annotations[hamiRegisterKey] = list
		free, _ := freeBeside(node, nil, granted(gpuPod(nil, nil), grant))
		for i, milli := range free {
			if (milli == 700) != (i == want) {
				t.Errorf("free milli-GPU %v with %s, want 700 on GPU %d", free, list, want)
			}
		}
	}
}

func TestWhatAnAgentWritesIsNoEdit(t *testing.T) {
	t.Parallel()
	before := gpuPod(nil, strs{OpenbMilliKey: "300", wellknown.GPUAssignedKey: grantOf1, hamiAllocateKey: "x;",
		hamiPhaseKey: "allocating"})
	for name, tc := range map[string]struct {
		change strs
		want   bool
	}{
		"progress of HAMi's plugin": {strs{hamiAllocateKey: ";", hamiPhaseKey: "success"}, false},
		"an annotation of others":   {strs{"team": "a"}, false},
		"the request":               {strs{OpenbMilliKey: "100"}, true},
		"a request in addition":     {strs{kaiFractionKey: "0.1"}, true},
		"the answer":                {strs{openbIndexKey: "0"}, true},
		"the grant":                 {strs{wellknown.GPUAssignedKey: "{}"}, true},
	} {
		after := before.DeepCopy()
		for key, value := range tc.change {
			after.Annotations[key] = value
		}
		if got := GrantEdited(before, after); got != tc.want {
			t.Errorf("%s: GrantEdited = %v, want %v", name, got, tc.want)
		}
	}
}

func FuzzGrant(f *testing.F) {
	f.Add(grantOf1)
	f.Add(`{"pod":"p","node":"n","devices":[0,0],"milli":1}`)
	f.Add(`{"pod":"p","node":"n","devices":[63,64],"milli":1000,"signature":"x"}`)
	f.Fuzz(func(t *testing.T, value string) {
		pod := granted(gpuPod(nil, nil), value)
		pod.Spec.NodeName = "n"
		a, ok := Granted(pod)
		free, _ := freeBeside(sharedGPUs(), nil, pod)
		for i, milli := range free {
			if milli < 0 || milli > 1000 {
				t.Errorf("device %d has %d milli-GPU free", i, milli)
			}
		}
		if !ok {
			return
		}
		again, err := grantValue(pod, a)
		require.NoError(t, err)
		pod.Status.Conditions[0].Message = again
		if b, ok := Granted(pod); !ok || !cmp.Equal(a, b) {
			t.Errorf("read %+v, and %+v, %v when written again", a, b, ok)
		}
	})
}
