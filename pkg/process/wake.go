package process

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
)

// Wake has the pods tried that wait for a node and are wanted, for something that no event of the cluster announces.
// Why is what the log says of it.
func Wake(logger klog.Logger, handle fwk.Handle, why string, wanted func(*v1.Pod) bool) {
	lister := handle.SharedInformerFactory().Core().V1().Pods().Lister()
	pods, _ := lister.List(labels.Everything()) // a lister of a cache has no errors
	awake := map[string]*v1.Pod{}
	for _, pod := range pods {
		if pod.Spec.NodeName == "" && wanted(pod) {
			awake[string(pod.UID)] = pod
		}
	}
	if len(awake) > 0 {
		logger.V(3).Info(why+", trying pods again", "pods", len(awake))
		handle.Activate(logger, awake)
	}
}
