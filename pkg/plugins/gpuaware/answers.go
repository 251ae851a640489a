package gpuaware

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/pkg/process"
	"berth.dev/berth/pkg/process/cycles"
)

// assignmentPatch is the strategic merge patch of a pod's status by which the pod, the agents of its node, and the next
// scheduler learn which devices it holds.
func assignmentPatch(pod *v1.Pod, r *gpuview.Request, a gpuview.Assignment, now time.Time) ([]byte, error) {
	annotations, record, err := gpuview.Answers(pod, r, a, now)
	if err != nil {
		return nil, err
	}
	return statusPatch(pod, annotations, map[string]any{
		"type": gpuview.GPUsAssigned, "status": v1.ConditionTrue, "reason": "DevicesAssigned", "message": record,
		"lastTransitionTime": metav1.NewTime(now),
	})
}

// staleAnswersPatch is one that removes the answers which a pod carries to a node where the kubelet chooses; nil when
// there are none.
func staleAnswersPatch(pod *v1.Pod) ([]byte, error) {
	switch annotations, recorded := gpuview.StaleAnswers(pod); {
	case recorded:
		return statusPatch(pod, annotations, map[string]any{"$patch": "delete", "type": gpuview.GPUsAssigned})
	case len(annotations) > 0:
		return statusPatch(pod, annotations)
	default:
		return nil, nil
	}
}

// statusPatch words a patch of annotations and conditions. The UID makes the API server refuse it when a new pod has
// taken the name, and the version when the pod has changed since: what a bound pod was told stays. The server takes
// annotations with the status, so that both are written at once or not at all.
func statusPatch(pod *v1.Pod, annotations map[string]any, conditions ...map[string]any) ([]byte, error) {
	patch := map[string]any{"metadata": map[string]any{
		"uid": pod.UID, "resourceVersion": pod.ResourceVersion, "annotations": annotations,
	}}
	if len(conditions) > 0 {
		patch["status"] = map[string]any{"conditions": conditions}
	}
	encoded, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("encoding the patch of the status: %w", err)
	}
	return encoded, nil
}

// boundKey keeps a pod that turned out to be bound.
const boundKey fwk.StateKey = "berth.dev/" + Name + "/bound"

type boundMark struct{ pod *v1.Pod }

// Clone returns the mark, whose pod nothing changes.
func (m boundMark) Clone() fwk.StateData { return m }

// foundBound is the pod of the cycle if PreBind has found it bound, nil if not.
func foundBound(cycle fwk.CycleState) *v1.Pod {
	mark, _ := cycles.Read[boundMark](cycle, boundKey)
	return mark.pod
}

// tell writes the patch that word makes of the newest pod, nil for nothing to write.
func (p *Plugin) tell(ctx context.Context, cycle fwk.CycleState, pod *v1.Pod,
	word func(*v1.Pod) ([]byte, error)) error {
	err := process.PatchPodStatus(ctx, p.handle.ClientSet().CoreV1(), pod, p.cluster.seen(pod),
		types.StrategicMergePatchType, word)
	if bound := (*process.BoundError)(nil); errors.As(err, &bound) {
		cycle.Write(boundKey, boundMark{bound.Pod})
	}
	if err != nil {
		return fmt.Errorf("telling pod %s/%s its GPUs: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}
