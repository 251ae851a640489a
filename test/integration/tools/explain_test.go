package tools_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"berth.dev/berth/test/harness/box"
	"berth.dev/berth/test/harness/require"
)

// unequalSizes are nodes of different sizes and prices.
const unequalSizes = `shapes:
- {name: small, count: 2, labels: {nvidia.com/gpu.product: NVIDIA-L4, nvidia.com/gpu.count: "2", nvidia.com/gpu.memory: "23034"}, annotations: {berth.dev/price-per-hour: "1.20"}, allocatable: {cpu: "16", memory: 64Gi, nvidia.com/gpu: "2"}}
- {name: large, count: 2, labels: {nvidia.com/gpu.product: NVIDIA-A100-SXM4-80GB, nvidia.com/gpu.count: "8", nvidia.com/gpu.memory: "81920"}, annotations: {berth.dev/price-per-hour: "27.45"}, allocatable: {cpu: "96", memory: 1Ti, nvidia.com/gpu: "8"}}
- {name: plain, count: 2, annotations: {berth.dev/price-per-hour: "0.40"}, allocatable: {cpu: "16", memory: 64Gi}}
`

// explained is what is read of an explanation.
type explained struct {
	Winner, Verdict string
	Nodes           []explainedNode
}

type explainedNode struct {
	Name     string
	Rejected *struct{ Plugin string }
	Total    int64
}

// bindsWhereItWasExplained asks before a pod exists and compares with where the scheduler then puts it, pod after pod,
// so that later answers rest on a cluster that fills.
func bindsWhereItWasExplained(t *testing.T, cluster *box.Box) {
	for i, step := range []struct{ profile, gpus string }{
		{"gpu-aware-scheduler", "1"}, {"cost-optimized-scheduler", "0"}, {"berth-scheduler", "4"}, {"gang-scheduler", "2"},
		{"berth-scheduler", "1"}, {"gpu-aware-scheduler", "2"}, {"cost-optimized-scheduler", "8"}, {"berth-scheduler", "9"},
	} {
		requests := v1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("1Gi"),
			"nvidia.com/gpu": resource.MustParse(step.gpus)}
		pod := &v1.Pod{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("p-%d", i)},
			Spec: v1.PodSpec{SchedulerName: step.profile, Containers: []v1.Container{
				{Name: "c", Image: "i", Resources: v1.ResourceRequirements{Requests: requests, Limits: requests}},
			}},
		}
		manifest, err := yaml.Marshal(pod)
		require.NoError(t, err)
		var e explained
		out := mustBerth(t, "explain", "pod", "--filename="+write(t, "pod.yaml", string(manifest)), "--output=json",
			"--kubeconfig="+cluster.Kubeconfig())
		require.NoError(t, json.Unmarshal([]byte(out), &e))
		cluster.Create(t, pod)
		got := decided(t, cluster, pod.Name)
		// Between equals the scheduler takes any.
		tied := slices.ContainsFunc(e.Nodes, func(n explainedNode) bool {
			return n.Name == got && n.Rejected == nil && n.Total == e.Nodes[0].Total
		})
		if got != e.Winner && !tied {
			t.Errorf("pod %s (%s, %s GPUs) was bound to %q, and explained: %s", pod.Name, step.profile, step.gpus, got,
				e.Verdict)
		}
	}
}
