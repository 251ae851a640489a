package preempt

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/util"
)

// PreemptedByScheduler reports whether the pod was evicted for a pod of higher priority.
func PreemptedByScheduler(pod *v1.Pod) bool {
	_, c := podutil.GetPodCondition(&pod.Status, v1.DisruptionTarget)
	return c != nil && c.Status == v1.ConditionTrue && c.Reason == v1.PodReasonPreemptionByScheduler
}

// evictOne marks the pod as preempted for the request, and deletes it.
func evictOne(ctx context.Context, profile framework.Framework, pod *v1.Pod, r *request, moment *Moment) error {
	status := pod.Status.DeepCopy()
	podutil.UpdatePodCondition(status, &v1.PodCondition{Type: v1.DisruptionTarget, Status: v1.ConditionTrue,
		Reason:  v1.PodReasonPreemptionByScheduler,
		Message: fmt.Sprintf("%s: preempted by %s of higher priority", pod.Spec.SchedulerName, r.name)})
	err := util.PatchPodStatus(ctx, profile.ClientSet(), pod.Name, pod.Namespace, &pod.Status, status)
	switch {
	case apierrors.IsNotFound(err):
		return nil // it is gone already
	case err != nil:
		return fmt.Errorf("marking pod %s: %w", klog.KObj(pod), err)
	}
	if err := util.DeletePod(ctx, profile.ClientSet(), pod); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting pod %s: %w", klog.KObj(pod), err)
	}
	podsPreempted.Inc()
	losing := ""
	if moment.Limits.Unsaved > 0 {
		losing = "; it loses " + moment.Describe(pod)
	}
	profile.EventRecorder().WithLogger(klog.FromContext(ctx)).Eventf(pod, nil, v1.EventTypeNormal, "Preempted",
		"Preempting", "Preempted by %s on node %s%s", r.name, pod.Spec.NodeName, losing)
	return nil
}

// evictionRequests bounds the requests in flight for one gang.
const evictionRequests = 8

// evictionRetries are the pauses between the attempts to evict a pod.
var evictionRetries = wait.Backoff{Duration: 100 * time.Millisecond, Factor: 3, Steps: 6}

// evictAll evicts the pods, a few at a time. Requests that fail are repeated, because a part of the evictions frees too
// little.
func (e *Evictor) evictAll(ctx context.Context, profile framework.Framework, pods []*v1.Pod, r *request) {
	moment := e.Sources.Loss.At(time.Now())
	workqueue.ParallelizeUntil(ctx, evictionRequests, len(pods), func(i int) {
		var last error
		err := wait.ExponentialBackoffWithContext(ctx, evictionRetries, func(ctx context.Context) (bool, error) {
			last = evictOne(ctx, profile, pods[i], r, moment)
			return last == nil, nil
		})
		if err != nil {
			klog.FromContext(ctx).Error(last, "Evicting a pod failed", "pod", klog.KObj(pods[i]))
		}
	})
}
