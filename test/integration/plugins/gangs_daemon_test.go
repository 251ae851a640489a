package plugins_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"berth.dev/berth/test/harness/box"
)

// testDaemonPods has a tenant fill the nodes with pods of low priority that refer to DaemonSets, as pods of these are
// never evicted, and another one create a gang of high priority.
func testDaemonPods(t *testing.T, b *box.Box) {
	of := newTenants(t, b, "daemons")
	high := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 1000}
	if err := box.CreatePriorityClass(t.Context(), b.Client, high); err != nil {
		t.Fatal(err)
	}
	only := func(node string) *v1.Affinity {
		return &v1.Affinity{NodeAffinity: &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{
			NodeSelectorTerms: []v1.NodeSelectorTerm{{
				MatchFields: []v1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: v1.NodeSelectorOpIn,
					Values: []string{node}}}}}}}}
	}
	for i, name := range numbered("d", 10) {
		member(t, of.mallory, name, "", 0, asking(strs{"cpu": "60"}), func(pod *v1.Pod) {
			pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "agent", UID: "agent",
				Controller: ptr.To(true)}}
			if i < 5 {
				// Made for one node, and of a group that no garbage collector knows, so that nothing deletes the pod.
				pod.OwnerReferences[0].APIVersion = "example.com/v1"
				pod.Spec.Affinity = only(numbered("daemons", 10)[i])
			}
		})
		of.mallory.Bound(t, name, "")
	}
	for _, name := range numbered("w", 10) {
		member(t, of.alice, name, "train", 10, asking(strs{"cpu": "60"}),
			func(pod *v1.Pod) { pod.Spec.PriorityClassName = "high" })
	}
	of.alice.BoundPods(t, "", 10)
}
