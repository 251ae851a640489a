package reservation

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gangview"
)

// AwaitedPod is a pod that has to go from a node.
type AwaitedPod struct {
	gang.Ref
	node string
}

// AwaitedPods names the pods and where they are.
func AwaitedPods(pods []*v1.Pod) []AwaitedPod {
	out := make([]AwaitedPod, len(pods))
	for i, pod := range pods {
		out[i] = AwaitedPod{Ref: gangview.RefOf(pod), node: pod.Spec.NodeName}
	}
	return out
}

// Remain reports whether one of the pods is still there, by the nodes that a cycle sees.
func Remain(pods []AwaitedPod, nodes fwk.NodeInfoLister) bool {
	return slices.ContainsFunc(pods, func(r AwaitedPod) bool {
		node, err := nodes.Get(r.node)
		return err == nil && slices.ContainsFunc(node.GetPods(),
			func(info fwk.PodInfo) bool { return gang.UID(info.GetPod().UID) == r.UID })
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
