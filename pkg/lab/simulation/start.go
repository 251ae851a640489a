package simulation

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// StartPod does in the instant of the binding what a kubelet does soon after. It is for memapi.Server.MutateBinding.
func StartPod(obj runtime.Object) {
	pod := obj.(*v1.Pod)
	now := metav1.Now()
	pod.Status.Phase = v1.PodRunning
	pod.Status.StartTime = &now
	pod.Status.NominatedNodeName = ""
}
