package runview

import v1 "k8s.io/api/core/v1"

// DeadlineMissed is the condition that is true if a pod cannot end by its deadline any more.
const DeadlineMissed v1.PodConditionType = "berth.dev/DeadlineMissed"

// Says returns the message of the condition, empty if it is not true.
func Says(pod *v1.Pod, condition v1.PodConditionType) string {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == condition && c.Status == v1.ConditionTrue {
			return c.Message
		}
	}
	return ""
}
