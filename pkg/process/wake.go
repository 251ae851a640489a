package process

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
)

// Wake has the scheduler try the wanted pods without a node again, for a change that no cluster event announces. why
// begins the log message.
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
