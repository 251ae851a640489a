package gpuview

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/wellknown"
)

// TestSharesThatAreLeftOfASharedNodeKeepTheirDevices has pods on a node of two GPUs that has lost its label.
func TestSharesThatAreLeftOfASharedNodeKeepTheirDevices(t *testing.T) {
	t.Parallel()
	const wholeGrant = `{"pod":"p","node":"n","devices":[0],"milli":1000}`
	labels := func(mode string) strs {
		l := strs{"nvidia.com/gpu.memory": "16384"}
		if mode != "" {
			l[wellknown.GPUModeKey] = mode
		}
		return l
	}
	for _, tc := range []struct {
		name string
		node *v1.Node
		pod  *v1.Pod
		left bool
		want []int
	}{
		{"a share", gpuNode(strs{"nvidia.com/gpu": "2"}, labels(""), nil), granted(gpuPod(nil, nil), grantOf1), true,
			[]int{1000, 700}},
		{"a share where the label is misspelt", gpuNode(strs{"nvidia.com/gpu": "2"}, labels("Shared"), nil),
			granted(gpuPod(nil, nil), grantOf1),
			true, []int{1000, 700}},
		{"a share where the label says device plugin", gpuNode(strs{"nvidia.com/gpu": "2"}, labels("device-plugin"), nil),
			granted(gpuPod(nil, nil), grantOf1), true, []int{1000, 700}},
		{"all of a GPU that the kubelet does not count", gpuNode(strs{"nvidia.com/gpu": "2"}, labels(""), nil),
			granted(gpuPod(nil, nil), wholeGrant),
			true, []int{0, 1000}},
		{"a whole GPU that the kubelet gave out", gpuNode(strs{"nvidia.com/gpu": "2"}, labels(""), nil),
			granted(gpuPod(strs{"nvidia.com/gpu": "1"}, nil), wholeGrant), false, []int{0, 1000}},
		{"one that HAMi gave out, in whose units others may have the same", gpuNode(strs{"nvidia.com/gpu": "2"}, labels(""),
			nil),
			granted(gpuPod(strs{"nvidia.com/gpu": "1"}, strs{hamiAllocatedKey: "GPU-a,NVIDIA,16384,0:;"}), wholeGrant), true,
			[]int{0, 1000}},
		{"a share of HAMi's", gpuNode(strs{"nvidia.com/gpu": "2"}, labels(""), nil),
			granted(gpuPod(strs{"nvidia.com/gpu": "1", hamiMemoryResource: "4915"}, nil), grantOf1), true, []int{0, 1000}},
		{"a claim by annotation", gpuNode(strs{"nvidia.com/gpu": "2"}, labels(""), nil),
			gpuPod(nil, strs{OpenbMilliKey: "300", openbIndexKey: "1"}),
			false, []int{1000, 1000}},
		{"a grant of another pod", gpuNode(strs{"nvidia.com/gpu": "2"}, labels(""), nil),
			granted(gpuPod(nil, nil), `{"pod":"q","node":"n","devices":[1],"milli":300}`), false, []int{1000, 1000}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			free, inv := freeBeside(tc.node, nil, tc.pod)
			if diff := cmp.Diff(tc.want, free); diff != "" {
				t.Errorf("free milli-GPU by device (-want +got):\n%s", diff)
			}
			whole := &gpu.Request{Resource: "nvidia.com/gpu", Count: 1, Milli: gpu.WholeMilli}
			if reason := gpu.Fit(inv, whole); (reason.Cause == gpu.SharesLeft) != tc.left {
				t.Errorf("a pod for a whole GPU: %q, want shares that are left: %v", reason, tc.left)
			}
		})
	}
}

// TestSharesThatAreLeftSayNothingOfOtherGPUs has GPUs of a second maker, which are never shared.
func TestSharesThatAreLeftSayNothingOfOtherGPUs(t *testing.T) {
	t.Parallel()
	keys := DefaultKeys()
	pod := granted(gpuPod(nil, nil), grantOf1)
	pod.Spec.NodeName = "n"
	info := framework.NewNodeInfo(pod)
	info.SetNode(gpuNode(strs{"nvidia.com/gpu": "2", "amd.com/gpu": "2"}, strs{wellknown.GPUModeKey: "shared"}, nil))
	read, _ := keys.ReadGPUNode(info.Node())
	amd := &gpu.Request{Resource: "amd.com/gpu", Count: 2, Milli: gpu.WholeMilli}
	if reason := gpu.Fit(keys.Inventory(read.For(amd), info, nil, ""), amd); reason.Cause != gpu.Fits {
		t.Errorf("a pod for the other GPUs: %q", reason)
	}
}

func TestAPodThatIsPlacedAgainIsNotLeftOver(t *testing.T) {
	t.Parallel()
	keys := DefaultKeys()
	pod := granted(gpuPod(nil, nil), grantOf1)
	pod.Spec.NodeName = "n"
	info := framework.NewNodeInfo(pod)
	info.SetNode(gpuNode(strs{"nvidia.com/gpu": "2"}, nil, nil))
	read, _ := keys.ReadGPUNode(info.Node())
	if keys.Inventory(read, info, nil, pod.UID).SharesInUse {
		t.Error("the pod itself counts")
	}
}
