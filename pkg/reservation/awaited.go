package reservation

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// Remain reports whether one of the pods is still there, by the nodes that a cycle sees.
func Remain(pods []*v1.Pod, nodes fwk.NodeInfoLister) bool {
	return slices.ContainsFunc(pods, func(pod *v1.Pod) bool {
		node, err := nodes.Get(pod.Spec.NodeName)
		return err == nil && slices.ContainsFunc(node.GetPods(),
			func(info fwk.PodInfo) bool { return info.GetPod().UID == pod.UID })
	})
}

// InfoOf reads a pod for a NodeInfo.
func InfoOf(pod *v1.Pod) (fwk.PodInfo, error) {
	info, err := framework.NewPodInfo(pod)
	if err != nil {
		return nil, fmt.Errorf("reading pod %s: %w", klog.KObj(pod), err)
	}
	info.CalculateResource()
	return info, nil
}
