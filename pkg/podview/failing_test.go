package podview

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
)

func TestDevicesThatTheKubeletCallsUnhealthy(t *testing.T) {
	t.Parallel()
	holds := func(devices ...v1.ResourceHealth) []v1.ContainerStatus {
		return []v1.ContainerStatus{{AllocatedResourcesStatus: []v1.ResourceStatus{{Name: "nvidia.com/gpu",
			Resources: devices}}}}
	}
	for name, test := range map[string]struct {
		status v1.PodStatus
		want   []string
	}{
		"a pod without devices": {},
		"devices that work": {status: v1.PodStatus{ContainerStatuses: holds(v1.ResourceHealth{ResourceID: "a",
			Health: v1.ResourceHealthStatusHealthy},
			v1.ResourceHealth{ResourceID: "b", Health: v1.ResourceHealthStatusUnknown})}},
		"one of two does not, which two containers share": {status: v1.PodStatus{
			InitContainerStatuses: holds(v1.ResourceHealth{ResourceID: "b", Health: v1.ResourceHealthStatusUnhealthy}),
			ContainerStatuses: holds(v1.ResourceHealth{ResourceID: "a", Health: v1.ResourceHealthStatusHealthy},
				v1.ResourceHealth{ResourceID: "b", Health: v1.ResourceHealthStatusUnhealthy})}, want: []string{"b"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, FailingDevices(&v1.Pod{Status: test.status})); diff != "" {
				t.Errorf("devices (-want +got):\n%s", diff)
			}
		})
	}
}
