package gpuaware

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/test/harness/require"
)

// mixNow is the mix of what runs, after a pod was looked at that fits nowhere.
func (h *harness) mixNow(t *testing.T) *gpu.Distribution {
	t.Helper()
	if _, _, err := h.evaluate(t, h, podObject("looks", strs{"nvidia.com/gpu": "99"}, nil)); err == nil {
		t.Fatal("a pod of 99 GPUs fits")
	}
	totals := &h.plugin.shared.views.totals
	totals.mu.Lock()
	defer totals.mu.Unlock()
	return totals.running.Distribution()
}

func on(node string, pod *v1.Pod) *v1.Pod {
	pod.Spec.NodeName = node
	return pod
}

func TestTheMixIsWhatRunsOnNodesWithGPUs(t *testing.T) {
	t.Parallel()
	daemon := on("plugin", podObject("daemon", strs{"cpu": "8"}, nil))
	daemon.Annotations = strs{v1.MirrorPodAnnotationKey: "static"}
	bare := bareNode("none")
	pods := []*v1.Pod{
		on("plugin", podObject("whole", strs{"nvidia.com/gpu": "2"}, nil)),
		on("plugin", podObject("beside", strs{"cpu": "4"}, nil)), daemon,
		on("none", podObject("elsewhere", strs{"cpu": "16"}, nil)),
		assignedTo(podObject("share", nil, strs{"alibabacloud.com/gpu-milli": "300"}), "shared", 0, 300, 4915),
		squatter("squats", "shared", strs{"alibabacloud.com/gpu-count": "2", "alibabacloud.com/gpu-milli": "1000"}),
		on("slices", claiming("claims")),
	}
	h := newHarness(t, gpuOnly(alone(defaultArgs())), plainClass("whole"), bareNode("slices"),
		gpuSlice("slices", 8, "Tesla T4", "16Gi"), claimOf("c", "slices", "gpu-0", "gpu-1", "gpu-2"), bare,
		gpuNodeObject("plugin", 8, "Tesla-T4"), sharedNode("shared", 2))
	awaitClaim(t, h, 1)
	for _, pod := range pods {
		require.NoError(t, h.Cache.AddPod(h.logger, pod))
	}
	want := &gpu.Distribution{Pods: 3, CPUBeside: 4000. / 5300, Portions: []gpu.Portion{
		{Shape: gpu.Shape{CPUMilli: 1000, Count: 1, Milli: 300}, Fraction: 1. / 3},
		{Shape: gpu.Shape{CPUMilli: 1000, Count: 2, Milli: 1000}, Fraction: 1. / 3},
		{Shape: gpu.Shape{CPUMilli: 1000, Count: 3, Milli: 1000}, Fraction: 1. / 3},
	}}
	if diff := cmp.Diff(want, h.mixNow(t), cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Errorf("the mix (-want +got):\n%s", diff)
	}
	for _, pod := range pods {
		require.NoError(t, h.Cache.RemovePod(h.logger, pod))
	}
	if diff := cmp.Diff(&gpu.Distribution{}, h.mixNow(t), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("the mix after all pods have gone (-want +got):\n%s", diff)
	}
}

func TestPodsAreOfTheirController(t *testing.T) {
	t.Parallel()
	var made []runtime.Object
	for i := range 40 {
		pod := on(fmt.Sprint("n", i), podObject(fmt.Sprint("p", i), strs{"nvidia.com/gpu": "1"}, nil))
		if i >= 10 {
			pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: fmt.Sprint("cron-", i),
				UID: types.UID(fmt.Sprint(i)), Controller: ptr.To(true)}}
			pod.Spec.Containers[0].Resources.Requests["nvidia.com/gpu"] = resource.MustParse("8")
		}
		made = append(made, pod, gpuNodeObject(pod.Spec.NodeName, 8, "Tesla-T4"))
	}
	d := newHarness(t, alone(defaultArgs()), made...).mixNow(t)
	if len(d.Portions) != 2 || math.Abs(d.Portions[1].Fraction-0.25) > 1e-3 {
		t.Errorf("the mix is %+v, want the 30 Jobs of one CronJob to be a quarter", d)
	}
}
