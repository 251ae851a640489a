package podgroup

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"berth.dev/berth/pkg/runview"
)

// hasStart reports whether the pod is told when it is expected to start, or was.
func (p *PodEvents) hasStart(pod *v1.Pod) bool {
	if _, told := podutil.GetPodCondition(&pod.Status, runview.StartEstimated); told != nil {
		return p.source.Ours(pod)
	}
	text, _ := p.source.Starts(pod)
	return text != ""
}

// syncStart writes on the pod when it is expected to start, and takes it off a pod that has started or is told nothing
// any more. It returns after what time to look again.
func (p *PodEvents) syncStart(ctx context.Context, pod *v1.Pod) time.Duration {
	text, known := p.source.Starts(pod)
	_, have := podutil.GetPodCondition(&pod.Status, runview.StartEstimated)
	var change map[string]any
	switch {
	case waits(pod) && !known:
		return retryLast
	case !waits(pod) || text == "":
		if have == nil {
			return 0
		}
		change = map[string]any{"$patch": "delete", "type": runview.StartEstimated}
	case have != nil && have.Message == text:
		return 0
	default:
		since := metav1.NewTime(time.Now().Truncate(time.Second))
		if have != nil {
			since = have.LastTransitionTime
		}
		change = map[string]any{"type": runview.StartEstimated, "status": v1.ConditionTrue, "reason": "WaitsForCapacity",
			"message": text, "lastTransitionTime": since}
	}
	err := p.api.patchPodStatus(ctx, pod, map[string]any{"conditions": []map[string]any{change}})
	if err != nil && !apierrors.IsForbidden(err) { // an admission policy of before does not know the condition
		klog.FromContext(ctx).Error(err, "Writing when a pod is to start failed, trying again", "pod", klog.KObj(pod))
		return retryLast
	}
	return 0
}
