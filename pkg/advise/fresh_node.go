package advise

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/pkg/podview"
)

// freshNode is a node of another name that is bought like this one and has just become ready: open, and with all of its
// GPUs unused.
func freshNode(like *v1.Node, name string) *v1.Node {
	node := like.DeepCopy()
	node.ObjectMeta = metav1.ObjectMeta{Name: name, Labels: node.Labels, Annotations: node.Annotations}
	if _, labelled := node.Labels[v1.LabelHostname]; labelled {
		node.Labels[v1.LabelHostname] = name
	}
	node.Spec.Unschedulable, node.Spec.ProviderID = false, ""
	node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(t v1.Taint) bool {
		switch t.Key {
		case v1.TaintNodeUnschedulable, v1.TaintNodeNotReady, v1.TaintNodeUnreachable, v1.TaintNodeOutOfService,
			v1.TaintNodeMemoryPressure, v1.TaintNodeDiskPressure, v1.TaintNodePIDPressure, v1.TaintNodeNetworkUnavailable:
			return true
		default:
			return podview.IsLeavingTaint(t.Key)
		}
	})
	node.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}
	return node
}
