package podview

import (
	"slices"

	v1 "k8s.io/api/core/v1"
)

// FailingDevices returns the devices of the pod that its kubelet calls unhealthy, by what its containers report of
// device plugins and of resource claims.
func FailingDevices(pod *v1.Pod) []string {
	var failing []string
	for _, statuses := range [][]v1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range statuses {
			for _, resource := range statuses[i].AllocatedResourcesStatus {
				for _, device := range resource.Resources {
					if device.Health == v1.ResourceHealthStatusUnhealthy {
						failing = append(failing, string(device.ResourceID))
					}
				}
			}
		}
	}
	slices.Sort(failing)
	return slices.Compact(failing)
}
