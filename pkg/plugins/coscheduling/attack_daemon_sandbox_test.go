package coscheduling_test

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	realbox "berth.dev/berth/test/harness/box"
)

// TestPodsThatClaimADaemonSetMakeWay has a tenant fill the nodes with pods of low priority that refer to DaemonSets, as pods of
// these are never evicted, and another one create a gang of high priority.
func TestPodsThatClaimADaemonSetMakeWay(t *testing.T) {
	t.Parallel()
	a := newAttack(t, "testdata/scheduler-config.yaml")
	high := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 1000}
	if err := realbox.CreatePriorityClass(t.Context(), a.Client, high); err != nil {
		t.Fatal(err)
	}
	only := func(node string) *v1.Affinity {
		return &v1.Affinity{NodeAffinity: &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
			MatchFields: []v1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: v1.NodeSelectorOpIn, Values: []string{node}}}}}}}}
	}
	for i := range 10 {
		a.member("mallory", fmt.Sprintf("d-%d", i), "", 0, cpu("60", func(pod *v1.Pod) {
			pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "agent", UID: "agent", Controller: ptr.To(true)}}
			pod.Spec.TerminationGracePeriodSeconds = ptr.To[int64](0)
			if i < 5 {
				// Made for one node, and of a group that no garbage collector knows, so that nothing deletes the pod.
				pod.OwnerReferences[0].APIVersion = "example.com/v1"
				pod.Spec.Affinity = only(fmt.Sprintf("node-%d", i))
			}
		}))
		a.awaitBound("mallory", i+1)
	}
	for i := range 10 {
		a.member("alice", fmt.Sprintf("w-%d", i), "train", 10, cpu("60", func(pod *v1.Pod) { pod.Spec.PriorityClassName = "high" }))
	}
	a.awaitBound("alice", 10)
}
