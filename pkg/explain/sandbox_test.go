package explain

import (
	"context"
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"berth.dev/berth/pkg/dump"
	"berth.dev/berth/pkg/sandbox"
	"berth.dev/berth/test/harness/box"
)

// fleet are nodes of different sizes and prices, so that no two are equal.
const fleet = `shapes:
- {name: small, count: 2, labels: {nvidia.com/gpu.product: NVIDIA-L4, nvidia.com/gpu.count: "2", nvidia.com/gpu.memory: "23034"}, annotations: {berth.dev/price-per-hour: "1.20"}, allocatable: {cpu: "16", memory: 64Gi, nvidia.com/gpu: "2"}}
- {name: large, count: 2, labels: {nvidia.com/gpu.product: NVIDIA-A100-SXM4-80GB, nvidia.com/gpu.count: "8", nvidia.com/gpu.memory: "81920"}, annotations: {berth.dev/price-per-hour: "27.45"}, allocatable: {cpu: "96", memory: 1Ti, nvidia.com/gpu: "8"}}
- {name: plain, count: 2, annotations: {berth.dev/price-per-hour: "0.40"}, allocatable: {cpu: "16", memory: 64Gi}}
`

// TestTheRealSchedulerBindsWhereItWasExplained asks before a pod exists and compares with where the scheduler of a real control
// plane then puts it, pod after pod, so that later answers rest on a cluster that fills.
func TestTheRealSchedulerBindsWhereItWasExplained(t *testing.T) {
	t.Parallel()
	// Without kubelets no node begins with a taint that is taken off while the first pod is asked about.
	box := box.Start(t, fleet, sandbox.Options{NoKubelet: true})
	collector, err := dump.NewCollector(box.Config)
	if err != nil {
		t.Fatal(err)
	}
	steps := []struct{ profile, gpus string }{
		{"gpu-aware-scheduler", "1"}, {"cost-optimized-scheduler", "0"}, {"berth-scheduler", "4"}, {"gang-scheduler", "2"},
		{"berth-scheduler", "1"}, {"gpu-aware-scheduler", "2"}, {"cost-optimized-scheduler", "8"}, {"berth-scheduler", "9"},
	}
	for i, step := range steps {
		var objects []runtime.Object
		if _, err := collector.Collect(t.Context(), func(obj runtime.Object) error {
			objects = append(objects, obj)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		p := pod(fmt.Sprintf("p-%d", i), "", step.gpus, 0)
		p.Spec.SchedulerName, p.Spec.Priority, p.Status = step.profile, nil, v1.PodStatus{}
		asked := p.DeepCopy()
		if err := Admit(asked, objects); err != nil {
			t.Fatal(err)
		}
		e, err := Pod(Question{Configuration: shipped(t), Objects: objects, Pod: asked, Now: time.Now()})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := box.Client.CoreV1().Pods(p.Namespace).Create(t.Context(), p, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		got := ""
		box.Await(t, "a decision about pod "+p.Name, func(ctx context.Context) (bool, error) {
			now, err := box.Client.CoreV1().Pods(p.Namespace).Get(ctx, p.Name, metav1.GetOptions{})
			if err != nil {
				return false, err
			}
			got = now.Spec.NodeName
			for _, c := range now.Status.Conditions {
				if c.Type == v1.PodScheduled && c.Reason == v1.PodReasonUnschedulable {
					return true, nil
				}
			}
			return got != "", nil
		})
		if got != e.Winner && !tied(e, got) {
			t.Errorf("pod %s (%s, %s GPUs) was bound to %q, and explained: %s", p.Name, step.profile, step.gpus, got, e.Verdict)
		}
	}
}

// tied says whether the node is as good as the winner: between equals the scheduler takes any.
func tied(e *Explanation, node string) bool {
	for _, n := range e.Nodes {
		if n.Name == node {
			return n.Rejected == nil && n.Total == e.Nodes[0].Total
		}
	}
	return false
}
