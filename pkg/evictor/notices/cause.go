package notices

import (
	"context"
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/util"

	"berth.dev/berth/pkg/gang"
)

// The reasons in the conditions of pods that are evicted from hardware that fails, and of pods that are moved.
const (
	FailingHardware = "FailingHardware"
	Defragmentation = "Defragmentation"
)

// repairFor and movesFor begin the names for whose sake that is done.
const (
	repairFor = "the repair of gang "
	movesFor  = "moves for gang "
)

// RepairOf is the name for whose sake members of the gang are evicted from hardware that fails.
func RepairOf(id gang.ID) string { return repairFor + id.String() }

// MovesFor is the name for whose sake pods are moved so that the gang starts sooner.
func MovesFor(id gang.ID) string { return movesFor + id.String() }

// IsRepair reports whether the name is one of a repair.
func IsRepair(name string) bool { return strings.HasPrefix(name, repairFor) }

// needless says why a pod need not go any more that was to go for the sake of the name.
func needless(name string) string {
	switch {
	case IsRepair(name):
		return "its hardware works again, or there is no room elsewhere"
	case strings.HasPrefix(name, movesFor):
		return "the " + name + " have ended"
	}
	return name + " does not need its room any more"
}

// Disruption is the condition of a pod that is evicted for the sake of the name, or is to be: tense is "to be " then.
func Disruption(pod *v1.Pod, name, tense string) *v1.PodCondition {
	c := &v1.PodCondition{Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Reason: v1.PodReasonPreemptionByScheduler,
		Message: fmt.Sprintf("%s: %spreempted by %s of higher priority", pod.Spec.SchedulerName, tense, name)}
	if IsRepair(name) {
		c.Reason = FailingHardware
		c.Message = fmt.Sprintf("%s: %sevicted for %s", pod.Spec.SchedulerName, tense, name)
	}
	if id, moves := strings.CutPrefix(name, movesFor); moves {
		c.Reason = Defragmentation
		c.Message = fmt.Sprintf("%s: %smoved so that gang %s starts sooner", pod.Spec.SchedulerName, tense, id)
	}
	return c
}

// isTarget reports whether the pod is marked as evicted, or to be evicted, by this scheduler.
func isTarget(pod *v1.Pod) bool {
	_, c := podutil.GetPodCondition(&pod.Status, v1.DisruptionTarget)
	return c != nil && c.Status == v1.ConditionTrue && (c.Reason == v1.PodReasonPreemptionByScheduler ||
		c.Reason == FailingHardware || c.Reason == Defragmentation)
}

// PreemptedByScheduler reports whether the pod was evicted for a pod of higher priority.
func PreemptedByScheduler(pod *v1.Pod) bool {
	_, c := podutil.GetPodCondition(&pod.Status, v1.DisruptionTarget)
	return c != nil && c.Status == v1.ConditionTrue && c.Reason == v1.PodReasonPreemptionByScheduler
}

// Remove marks the pod as evicted for the sake of the name, and deletes it. Gone is set if it was gone before.
func Remove(ctx context.Context, profile framework.Framework, pod *v1.Pod, name string) (gone bool, err error) {
	status := pod.Status.DeepCopy()
	podutil.UpdatePodCondition(status, Disruption(pod, name, ""))
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
