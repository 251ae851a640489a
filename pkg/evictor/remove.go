package evictor

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

// remove marks the pod as evicted for the sake of the name, and deletes it. Gone is set if it was gone before.
func remove(ctx context.Context, profile framework.Framework, pod *v1.Pod, name string) (gone bool, err error) {
	status := pod.Status.DeepCopy()
	podutil.UpdatePodCondition(status, &v1.PodCondition{Type: v1.DisruptionTarget, Status: v1.ConditionTrue,
		Reason:  v1.PodReasonPreemptionByScheduler,
		Message: fmt.Sprintf("%s: preempted by %s of higher priority", pod.Spec.SchedulerName, name)})
	if err := util.PatchPodStatus(ctx, profile.ClientSet(), pod.Name, pod.Namespace, &pod.Status, status); err != nil {
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, fmt.Errorf("marking pod %s: %w", klog.KObj(pod), err)
	}
	if err := util.DeletePod(ctx, profile.ClientSet(), pod); err != nil && !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("deleting pod %s: %w", klog.KObj(pod), err)
	}
	return false, nil
}

// evictionRequests bounds the requests in flight for one gang.
const evictionRequests = 8

// evictionRetries are the pauses between the attempts to evict a pod.
var evictionRetries = wait.Backoff{Duration: 100 * time.Millisecond, Factor: 3, Steps: 6}

// forEach does something for each of the pods, a few at a time, and repeats it where it fails.
func forEach(ctx context.Context, pods []*v1.Pod, do func(context.Context, *v1.Pod) error) {
	workqueue.ParallelizeUntil(ctx, evictionRequests, len(pods), func(i int) {
		var last error
		err := wait.ExponentialBackoffWithContext(ctx, evictionRetries, func(ctx context.Context) (bool, error) {
			last = do(ctx, pods[i])
			return last == nil, nil
		})
		if err != nil {
			klog.FromContext(ctx).Error(last, "Evicting a pod failed", "pod", klog.KObj(pods[i]))
		}
	})
}
