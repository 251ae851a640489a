package gpuaware

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/process"
)

// faultsInterval is how often the plugin looks whether faults of GPUs are over.
const faultsInterval = 5 * time.Second

// retryAfterFaults tries the pending GPU pods of the profile again whenever a fault of a GPU is over, until ctx ends.
// No event of the cluster says so: nothing but the next measurement does.
func (p *Plugin) retryAfterFaults(ctx context.Context) {
	var earlier, before map[string]int
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		now := p.signals.Snapshot().CountFaults(time.Now())
		// Pods are tried at this look and at the next: one may be in a scheduling cycle, with what was known before.
		if anyOver(before, now) || anyOver(earlier, before) {
			process.Wake(klog.FromContext(ctx), p.handle, "Faults of GPUs are over", func(pod *v1.Pod) bool {
				request, err := p.settings.request(pod)
				return err == nil && request.WantsGPU() && !podview.Finished(pod) &&
					pod.Spec.SchedulerName == p.handle.ProfileName()
			})
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
