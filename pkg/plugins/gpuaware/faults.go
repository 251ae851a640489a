package gpuaware

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"berth.dev/berth/pkg/podview"
)

// faultsInterval is how often the plugin looks whether faults of GPUs are over.
const faultsInterval = 5 * time.Second

// retryAfterFaults tries the pending GPU pods of the profile again whenever a fault of a GPU is over, until ctx ends.
// No event of the cluster says so: nothing but the next measurement does.
func (p *Plugin) retryAfterFaults(ctx context.Context, pods cache.Store) {
	var earlier, before map[string]int
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		now := p.signals.Snapshot().CountFaults(time.Now())
		// Pods are tried at this look and at the next: one may be in a scheduling cycle, with what was known before.
		if anyOver(before, now) || anyOver(earlier, before) {
			p.activateWaiting(ctx, pods)
		}
		earlier, before = before, now
	}, faultsInterval)
}

// anyOver reports whether a node has fewer faults than before.
func anyOver(before, now map[string]int) bool {
	for node, faults := range before {
		if now[node] < faults {
			return true
		}
	}
	return false
}

// activateWaiting puts the pending GPU pods of the profile back into the active queue.
func (p *Plugin) activateWaiting(ctx context.Context, pods cache.Store) {
	waiting := map[string]*v1.Pod{}
	for _, obj := range pods.List() {
		pod, ok := obj.(*v1.Pod)
		if !ok || pod.Spec.NodeName != "" || pod.Spec.SchedulerName != p.handle.ProfileName() || podview.Finished(pod) {
			continue
		}
		if request, err := p.settings.request(pod); err == nil && request.WantsGPU() {
			waiting[pod.Namespace+"/"+pod.Name] = pod
		}
	}
	if len(waiting) > 0 {
		logger := klog.FromContext(ctx)
		logger.V(2).Info("Faults of GPUs are over: pending pods are tried again", "pods", len(waiting))
		p.handle.Activate(logger, waiting)
	}
}
