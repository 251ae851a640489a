package extender

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources"
)

// The scheduler and the extender watch the cluster separately, so the extender may hear of a change a few milliseconds
// later. The scheduler tries a pod at the very moment it hears of one: a pod has ended, a node has come. An extender
// that refuses the pod then, for what it has not seen yet, costs the pod its nomination, and the next try comes only
// with another event in the cluster. In a quiet one that is after 5 minutes.
//
// The question itself shows the lag in part: the scheduler asks about a node only where its own filters let the pod
// pass.

// whileBehind is how an extender that is behind looks again: within a second, with pauses of mostly a few milliseconds.
var whileBehind = wait.Backoff{Duration: 2 * time.Millisecond, Factor: 2, Steps: 10}

// hurried is how long the extender answers at once after a wait without success: its watch may be stuck, or the
// scheduler may ignore a resource that it counts, and the scheduler places no other pod while it waits for an answer.
const hurried = 30 * time.Second

// lacksRoom reports that a pod does not fit by what the scheduler counts as well. Of resources that the node does not
// offer it says nothing: a scheduler that asks all the same ignores them, or allocates devices for them.
func lacksRoom(pod *v1.Pod, info fwk.NodeInfo) bool {
	for _, short := range noderesources.Fits(pod, info, nil,
		noderesources.ResourceRequestsOptions{EnablePodLevelResources: true}) {
		if short.Capacity > 0 {
			return true
		}
	}
	return false
}

// caughtUp looks at the cluster again while that shows that the extender is behind the scheduler. What the last look
// has found stands, whether or not the extender has caught up.
func (e *Extender) caughtUp(ctx context.Context, pod *v1.Pod, look func() (behind bool, err error)) error {
	waited := false
	err := wait.ExponentialBackoffWithContext(ctx, e.whileBehind, func(context.Context) (bool, error) {
		behind, err := look()
		if err != nil || !behind {
			return true, err
		}
		if since := e.waitedInVain.Load(); since != nil && time.Since(*since) < hurried {
			return true, nil
		}
		waited = true
		return false, nil
	})
	switch {
	case err == nil && waited:
		lagWaits.WithLabelValues(lagCaughtUp).Inc()
	case wait.Interrupted(err) && ctx.Err() == nil:
		now := time.Now()
		e.waitedInVain.Store(&now)
		lagWaits.WithLabelValues(lagInVain).Inc()
		klog.FromContext(ctx).Info(
			"The scheduler knows of changes that the extender does not hear of; answering without waiting for a while",
			"pod", klog.KObj(pod), "for", hurried)
		return nil
	}
	return err
}
