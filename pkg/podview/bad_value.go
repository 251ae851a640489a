package podview

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/pkg/wellknown"
)

// BadAnnotation is the error about a bad or missing annotation of a pod or a PodGroup.
func BadAnnotation(of metav1.Object, key, allowed string) *wellknown.BadValue {
	object := "PodGroup " + of.GetName()
	if _, ok := of.(*v1.Pod); ok {
		object = "pod"
	}
	value, found := of.GetAnnotations()[key]
	return &wellknown.BadValue{Object: object, Kind: "annotation", Key: key, Value: value, Missing: !found,
		Allowed: allowed}
}
