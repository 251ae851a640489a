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

// staleAnswersPatch removes the annotations and the record of devices from a pod that goes to a node where the kubelet
// chooses; nil if there are none.
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

// statusPatch makes a patch of annotations and conditions. The API server refuses it if the UID shows that a new pod
// has taken the name, or the version that the pod has changed since: the devices of a bound pod stay. Annotations and
// status are written at once or not at all.
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

// writeStatus writes the patch that makePatch returns for the newest pod, nil for nothing to write.
func (p *Plugin) writeStatus(ctx context.Context, cycle fwk.CycleState, pod *v1.Pod,
	makePatch func(*v1.Pod) ([]byte, error)) error {
	err := process.PatchPodStatus(ctx, p.handle.ClientSet().CoreV1(), pod, p.shared.seen(pod),
		types.StrategicMergePatchType, makePatch)
	if bound := (*process.BoundError)(nil); errors.As(err, &bound) {
		bindingOf(cycle).bound = bound.Pod
	}
	if err != nil {
		return fmt.Errorf("writing the GPUs of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}
