package simulation

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// FilterWithout is what the filters of a profile say of a node if those of its pods were gone that leave. The state is
// that of a cycle of the pod after PreFilter; it is not changed.
func FilterWithout(ctx context.Context, profile framework.Framework, state fwk.CycleState, pod *v1.Pod,
	node fwk.NodeInfo, leaves func(*v1.Pod) bool) *fwk.Status {
	state, left := state.Clone(), node.Snapshot()
	for _, on := range node.GetPods() {
		if !leaves(on.GetPod()) {
			continue
		}
		if err := left.RemovePod(klog.FromContext(ctx), on.GetPod()); err != nil {
			return fwk.AsStatus(err)
		}
		if status := profile.RunPreFilterExtensionRemovePod(ctx, state, pod, on, left); !status.IsSuccess() {
			return status
		}
	}
	return profile.RunFilterPlugins(ctx, state, pod, left)
}
