package podview

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestFailingHardware(t *testing.T) {
	t.Parallel()
	gpus := func(all, works string) *v1.Node {
		list := func(n string) v1.ResourceList {
			return v1.ResourceList{"cpu": resource.MustParse("8"), "nvidia.com/gpu": resource.MustParse(n)}
		}
		return &v1.Node{Status: v1.NodeStatus{Capacity: list(all), Allocatable: list(works)}}
	}
	reserved := gpus("8", "8")
	reserved.Status.Allocatable["cpu"] = resource.MustParse("7")
	leaving := gpus("8", "8")
	leaving.Spec.Taints = []v1.Taint{{Key: "ToBeDeletedByClusterAutoscaler", Effect: v1.TaintEffectNoSchedule}}
	other := gpus("8", "8")
	other.Spec.Taints = []v1.Taint{{Key: "team", Effect: v1.TaintEffectNoSchedule}}
	deleted := gpus("8", "8")
	deleted.DeletionTimestamp = &metav1.Time{}
	for _, tc := range []struct {
		name string
		node *v1.Node
		want string
	}{
		{"all works", gpus("8", "8"), ""},
		{"a GPU does not", gpus("8", "7"), "offers 7 of 8 nvidia.com/gpu"},
		{"the device plugin is away", gpus("8", "0"), ""},
		{"there are no GPUs", gpus("0", "0"), ""},
		{"a CPU is reserved", reserved, ""},
		{"an autoscaler takes it away", leaving, "has the taint ToBeDeletedByClusterAutoscaler"},
		{"another taint", other, ""},
		{"it is being deleted", deleted, "is being deleted"},
	} {
		if got := FailingHardware(tc.node); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}
