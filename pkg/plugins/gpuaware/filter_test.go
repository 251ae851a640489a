package gpuaware

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"
)

// ignoreHAMi keeps the stock plugin from asking nodes for resources that only HAMi knows.
func ignoreHAMi(profile *schedulerapi.KubeSchedulerProfile) {
	args := profile.PluginConfig[1].Args.(*schedulerapi.NodeResourcesFitArgs)
	args.IgnoredResources = []string{"nvidia.com/gpumem", "nvidia.com/gpumem-percentage", "nvidia.com/gpucores"}
}

func TestEventSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	taken := func(node, n string) *v1.Pod {
		p := podObject("on-"+node, strs{"nvidia.com/gpu": n}, nil)
		p.Spec.NodeName = node
		return p
	}
	timeSliced := gpuNodeObject("sliced", 2, "Tesla-T4-SHARED", "nvidia.com/gpu.replicas", "4",
		"nvidia.com/gpu.sharing-strategy", "time-slicing")
	timeSliced.Status.Allocatable["nvidia.com/gpu"] = resource.MustParse("8")
	leaving := gpuNodeObject("leaving", 8, "Tesla-T4")
	leaving.Spec.Taints = []v1.Taint{{Key: "karpenter.sh/disrupted", Effect: v1.TaintEffectPreferNoSchedule}}
	for _, tc := range []struct {
		name    string
		pod     *v1.Pod
		objects []runtime.Object
		want    []string
	}{
		{"nodes are counted by what they have free", podObject("p", strs{"nvidia.com/gpu": "8"}, nil),
			[]runtime.Object{gpuNodeObject("a", 8, "Tesla-T4"), gpuNodeObject("b", 8, "Tesla-T4"),
				gpuNodeObject("c", 8, "Tesla-T4"), taken("a", "4"), taken("b", "4"), taken("c", "7")},
			[]string{"0/3 nodes are available", "2 node(s) with too few free GPUs (need 8, have 4)",
				"1 node(s) with too few free GPUs (need 8, have 1)"}},
		{"time slices are not GPUs", podObject("p", strs{"nvidia.com/gpu": "8"}, nil), []runtime.Object{timeSliced},
			[]string{"1 node(s) with time-sliced GPUs (need 8 physical GPUs, or annotation berth.dev/gpu-sharing: shared)"}},
		{"a node that does not share", podObject("p", nil, strs{"gpu-fraction": "0.5"}),
			[]runtime.Object{gpuNodeObject("a", 8, "Tesla-T4")},
			[]string{"1 node(s) that do not share GPUs"}},
		{"memory that the product table knows", podObject("p", strs{"nvidia.com/gpu": "1"},
			strs{"berth.dev/gpu-memory-min": "40Gi"}),
			[]runtime.Object{gpuNodeObject("a", 8, "Tesla-T4")},
			[]string{"1 node(s) with too little GPU memory (need 40960 MiB per GPU, have 16384)"}},
		{"a model that the pod does not accept", podObject("p", strs{"nvidia.com/gpu": "1"},
			strs{"berth.dev/gpu-models": "NVIDIA-A10"}),
			[]runtime.Object{gpuNodeObject("a", 8, "Tesla-T4")}, []string{"1 node(s) with another GPU model (Tesla-T4)"}},
		{"NVLink that is not there", podObject("p", strs{"nvidia.com/gpu": "2"},
			strs{"berth.dev/gpu-interconnect": "required"}),
			[]runtime.Object{gpuNodeObject("a", 8, "Tesla-T4")}, []string{"1 node(s) without 2 NVLink-connected free GPUs"}},
		{"a node about to leave", podObject("p", strs{"nvidia.com/gpu": "1"}, nil), []runtime.Object{leaving},
			[]string{"1 node(s) about to leave (karpenter.sh/disrupted)"}},
		{"a malformed annotation names key, value and what is allowed", podObject("p", nil, strs{"gpu-fraction": "1,5"}),
			[]runtime.Object{sharedNode("a", 8)}, []string{`0/1 nodes are available: pod annotation gpu-fraction: "1,5" is not a decimal fraction of a GPU above 0 and up to 1, such as 0.5`}},
		{"a contradiction", podObject("p", strs{"nvidia.com/gpu": "1"}, strs{"gpu-fraction": "0.5"}),
			[]runtime.Object{sharedNode("a", 8)}, []string{`pod annotation gpu-fraction: "0.5" is not allowed together with resource nvidia.com/gpu: 1`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, alone(defaultArgs()), tc.objects...)
			// Without the stock plugin, which has its own words for what is missing.
			h.Framework, h.plugin = h.newFramework(t, gpuOnly(alone(defaultArgs())))
			_, _, err := h.evaluate(t, h, tc.pod)
			if err == nil {
				t.Fatal("the pod fits")
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("event %q\nlacks %q", err, want)
				}
			}
		})
	}
}

func gpuOnly(p *schedulerapi.KubeSchedulerProfile) *schedulerapi.KubeSchedulerProfile {
	for _, set := range []*schedulerapi.PluginSet{&p.Plugins.PreFilter, &p.Plugins.Filter} {
		set.Enabled = set.Enabled[1:]
	}
	p.PluginConfig = p.PluginConfig[:1]
	return p
}

func TestFilterAndScoreWorkWithoutPreFilter(t *testing.T) {
	t.Parallel()
	profile := alone(defaultArgs())
	profile.Plugins.PreFilter.Enabled = nil
	profile.Plugins.Filter.Enabled = profile.Plugins.Filter.Enabled[1:]
	profile.PluginConfig = profile.PluginConfig[:1]
	h := newHarness(t, profile, gpuNodeObject("a", 2, "Tesla-T4"), gpuNodeObject("b", 8, "Tesla-T4"))
	_, scores, err := h.evaluate(t, h, podObject("p", strs{"nvidia.com/gpu": "4"}, nil))
	if err != nil || len(scores) != 1 || scores[0].Name != "b" {
		t.Errorf("scores = %v, error %v, want node b alone", scores, err)
	}
	if _, _, err = h.evaluate(t, h, podObject("p", nil, strs{"gpu-fraction": "x"})); err == nil ||
		!strings.Contains(err.Error(), "gpu-fraction") {
		t.Errorf("error = %v, want the bad key", err)
	}
}

func TestWorkloadTypeLabel(t *testing.T) {
	t.Parallel()
	h := newHarness(t, alone(defaultArgs()), gpuNodeObject("gpu", 4, "Tesla-T4"), cpuNode("cpu"))
	for label, want := range map[string]string{"GPU-intensive": "gpu", "CPU-intensive": "cpu"} {
		pod := podObject("p-"+want, nil, nil)
		pod.Labels = strs{"workload-type": label}
		bound, err := h.place(t, h.add(t, pod))
		if err != nil || bound.Spec.NodeName != want {
			t.Errorf("%s pod: %v on %v, want %s", label, err, bound, want)
		}
	}
	alone := newHarness(t, alone(defaultArgs()), gpuNodeObject("gpu", 4, "Tesla-T4"))
	pod := podObject("p", nil, nil)
	pod.Labels = strs{"workload-type": "CPU-intensive"}
	if _, err := alone.place(t, alone.add(t, pod)); err != nil {
		t.Errorf("CPU-intensive pod with only GPU nodes: %v, want it placed", err)
	}
}

func cpuNode(name string) *v1.Node {
	n := gpuNodeObject(name, 0, "")
	n.Labels = strs{}
	delete(n.Status.Allocatable, "nvidia.com/gpu")
	return n
}
