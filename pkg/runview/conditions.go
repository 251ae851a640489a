package runview

import v1 "k8s.io/api/core/v1"

// The conditions by which the scheduler tells pods that wait what follows from run times. DeadlineMissed is true if the
// pod cannot end by its deadline any more, and StartEstimated says when a pod in no gang is expected to start.
const (
	DeadlineMissed v1.PodConditionType = "berth.dev/DeadlineMissed"
	StartEstimated v1.PodConditionType = "berth.dev/StartEstimated"
)

// Says returns the message of the condition, empty if it is not true.
func Says(pod *v1.Pod, condition v1.PodConditionType) string {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == condition && c.Status == v1.ConditionTrue {
			return c.Message
		}
	}
	return ""
}
