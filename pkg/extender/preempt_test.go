package extender

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"

	"berth.dev/berth/pkg/gpuview"
)

// The nodes would all have room by the count of GPUs, which is what the scheduler goes by.
func TestPodsAreEvictedOnlyWhereThatMakesAPlace(t *testing.T) {
	t.Parallel()
	t4 := gpuNode("t4", 4, map[string]string{"nvidia.com/gpu.product": "Tesla-T4", "nvidia.com/gpu.memory": "15360"})
	nodes := []*v1.Node{gpuNode("a100", 4, nil), t4, shared("shared", 4), gpuNode("large", 8, nil)}
	on := map[string][]*v1.Pod{
		"a100":   {newPod("a", "a100", 2, nil), newPod("b", "a100", 2, nil)},
		"t4":     {newPod("c", "t4", 4, nil)},
		"shared": {newPod("d", "shared", 4, nil)},
		"large":  {newPod("e", "large", 8, nil)},
	}
	var pods []*v1.Pod
	for _, node := range nodes {
		pods = append(pods, on[node.Name]...)
	}
	h := newHarness(t, plain, false, objects(nodes, pods)...)
	address := h.serve(t, Serving{})
	stranger := newPod("stranger", "a100", 2, nil)
	// What the scheduler knows, a pod and a node more than the extender.
	known := internalcache.NewSnapshot(append(slices.Clone(pods), stranger, newPod("f", "new", 4, nil)),
		append(slices.Clone(nodes), gpuNode("new", 4, nil)))
	memory := map[string]string{"berth.dev/gpu-memory-min": "40Gi"}
	for name, tc := range map[string]struct {
		pod     *v1.Pod
		victims map[string][]*v1.Pod
		want    []string
	}{
		"a node of another model is left out": {
			newPod("new", "", 2, memory), map[string][]*v1.Pod{"a100": on["a100"][:1], "t4": on["t4"]}, []string{"a100"},
		},
		"any model will do": {
			newPod("new", "", 2, nil), map[string][]*v1.Pod{"a100": on["a100"][1:], "t4": on["t4"]}, []string{"a100", "t4"},
		},
		"too few pods": {
			newPod("new", "", 4, nil), map[string][]*v1.Pod{"a100": on["a100"][:1], "large": on["large"]}, []string{"large"},
		},
		"devices that nobody assigns": {
			newPod("new", "", 4, nil), map[string][]*v1.Pod{"shared": on["shared"]}, nil,
		},
		"a node that is not known": {
			newPod("new", "", 2, nil), map[string][]*v1.Pod{"new": {newPod("f", "new", 4, nil)}, "t4": on["t4"]}, []string{"t4"},
		},
		"a pod that is not known": {
			newPod("new", "", 2, nil), map[string][]*v1.Pod{"a100": {on["a100"][0], stranger}}, nil,
		},
		"a pod that cannot be read": {
			newPod("new", "", 2, map[string]string{"berth.dev/gpu-memory-min": "much"}),
			map[string][]*v1.Pod{"a100": on["a100"]}, nil,
		},
		"a pod without GPUs": {
			newPod("new", "", 0, nil), map[string][]*v1.Pod{"a100": on["a100"], "shared": on["shared"]},
			[]string{"a100", "shared"},
		},
	} {
		for form, cached := range map[string]bool{"names": true, "nodes": false} {
			t.Run(name+", "+form, func(t *testing.T) {
				t.Parallel()
				client := caller(t, address,
					func(c *schedulerconfig.Extender) { c.NodeCacheCapable, c.PreemptVerb = cached, "preempt" })
				asked := map[string]*extenderv1.Victims{}
				for node, list := range tc.victims {
					asked[node] = &extenderv1.Victims{Pods: list, NumPDBViolations: 1}
				}
				answer, err := client.ProcessPreemption(tc.pod, asked, known.NodeInfos())
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tc.want, slices.Sorted(maps.Keys(answer))); diff != "" {
					t.Errorf("nodes that are left (-want +got):\n%s", diff)
				}
				for node, v := range answer {
					if v.NumPDBViolations != 1 || len(v.Pods) != len(tc.victims[node]) {
						t.Errorf("on node %s %d pods, %d against their budgets", node, len(v.Pods), v.NumPDBViolations)
					}
				}
			})
		}
	}
	t.Run("a node without victims", func(t *testing.T) {
		t.Parallel()
		client := caller(t, address, func(c *schedulerconfig.Extender) { c.PreemptVerb = "preempt" })
		answer, err := client.ProcessPreemption(newPod("new", "", 1, nil), map[string]*extenderv1.Victims{"t4": {}},
			known.NodeInfos())
		if err != nil || len(answer) > 0 {
			t.Errorf("nodes %v, error %v", answer, err)
		}
	})
	// The snapshot of the requests before was not changed.
	if ok, reason := passes(t, caller(t, address, nil), newPod("new", "", 1, nil), t4); ok ||
		!strings.Contains(reason, "GPU") {
		t.Errorf("a full node passes: %v, %q", ok, reason)
	}
}

// Two GPUs are free once either pod is gone, one of each pair.
func TestPodsAreEvictedForLinkedGPUsOnlyWhereAPairBecomesFree(t *testing.T) {
	t.Parallel()
	shares := func(name, node, devices string) *v1.Pod {
		pod := newPod(name, node, 0, map[string]string{"alibabacloud.com/gpu-milli": "1000",
			"alibabacloud.com/gpu-count": "2"})
		pod.Status.Conditions = []v1.PodCondition{{Type: gpuview.GPUsAssigned, Status: v1.ConditionTrue,
			Message: fmt.Sprintf(`{"pod":%q,"node":%q,"devices":[%s],"milli":1000}`, pod.UID, node, devices)}}
		return pod
	}
	node := shared("n", 4)
	node.Annotations = map[string]string{"berth.dev/gpu-links": `{"links":[[0,1,"NV12"],[2,3,"NV12"]]}`}
	one, other := shares("one", "n", "0,2"), shares("other", "n", "1,3")
	h := newHarness(t, plain, true, node, one, other)
	client := caller(t, h.serve(t, Serving{}), func(c *schedulerconfig.Extender) { c.PreemptVerb = "preempt" })
	known := internalcache.NewSnapshot([]*v1.Pod{one, other}, []*v1.Node{node})
	pod := newPod("new", "", 2, map[string]string{"berth.dev/gpu-interconnect": "required"})
	for _, tc := range []struct {
		victims []*v1.Pod
		want    int
	}{{[]*v1.Pod{one}, 0}, {[]*v1.Pod{other}, 0}, {[]*v1.Pod{one, other}, 1}} {
		answer, err := client.ProcessPreemption(pod, map[string]*extenderv1.Victims{"n": {Pods: tc.victims}},
			known.NodeInfos())
		if err != nil || len(answer) != tc.want {
			t.Errorf("without %d pods: %d nodes are left, want %d; error %v", len(tc.victims), len(answer), tc.want, err)
		}
	}
}
