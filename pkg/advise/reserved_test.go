package advise

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/test/harness/require"
)

// reserved is the PodGroup of the gang g, for which nodes are reserved.
func reserved(t *testing.T, minimum int32, nodes ...string) runtime.Object {
	t.Helper()
	pg := &schedulingv1alpha1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: "g", Namespace: "default", UID: "g"},
		Spec: schedulingv1alpha1.PodGroupSpec{MinMember: minimum},
		Status: schedulingv1alpha1.PodGroupStatus{ReservedNodes: nodes,
			Conditions: []metav1.Condition{{Type: schedulingv1alpha1.PodGroupReserved,
				Status: metav1.ConditionTrue, Reason: "NodesReserved", LastTransitionTime: metav1.NewTime(now)}}}}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(pg)
	require.NoError(t, err)
	custom := &unstructured.Unstructured{Object: content}
	custom.SetGroupVersionKind(schedulingv1alpha1.SchemeGroupVersion.WithKind("PodGroup"))
	return custom
}

// Nodes are reserved for a gang that waits, and nothing else may start there. That must not shut out the replacements
// of what is moved for the gang itself, if only until the gang has started.
func TestTheReservationOfAGangIsNotInTheWayOfItsPlan(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		running []string // the nodes that the running scheduler has reserved
	}{
		{"the run reserves for it", nil},
		{"the running scheduler has reserved all nodes for it", []string{"n0", "n1", "n2", "n3", "n4", "n5", "n6", "n7"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var objects []runtime.Object
			for i := range 8 {
				name := fmt.Sprintf("n%d", i)
				objects = append(objects, node(name, "8", "1"))
				if i < 6 { // n6 and n7 are empty
					objects = append(objects, pod("x"+name, name, "1"))
				}
			}
			for i := range 8 { // or half of the nodes would be too few for a reservation
				objects = append(objects, node(fmt.Sprint("cpu", i), "0", "1"))
			}
			for i := range 5 {
				objects = append(objects, pod(fmt.Sprint("g", i), "", "8", gangOf("5")))
			}
			if tt.running != nil {
				objects = append(objects, reserved(t, 5, tt.running...))
			}
			a := ask(t, Unit{KindPodGroup, "default", "g"}, objects...)
			if len(a.Pending) != 1 || a.Pending[0].Plan == nil || a.Pending[0].Plan.pods() != 3 {
				t.Fatalf("%+v", a.Pending)
			}
			for _, m := range a.Pending[0].Plan.Moves {
				if to := m.Pods[0].To; !strings.HasPrefix(to, "n") {
					t.Errorf("%s moves to %s", m.Name, to)
				}
			}
		})
	}
}

// What the running scheduler has reserved is not free for others: a pod that waits does not start there, and neither
// does a replacement.
func TestReservationsOfTheRunningSchedulerAreRead(t *testing.T) {
	t.Parallel()
	objects := []runtime.Object{node("a", "8", "1"), node("b", "8", "1"), node("c", "8", "1"), node("d", "8", "1"),
		pod("x", "a", "1", bare), pod("y", "b", "8", bare), pod("z", "d", "8", bare), pod("p", "", "2"),
		pod("g0", "", "8", gangOf("2")), pod("g1", "", "8", gangOf("2"))}
	free := ask(t, Unit{}, objects...)
	if s := fmt.Sprint(free.Pending); strings.Contains(s, "default p ") {
		t.Errorf("p does not start without a reservation: %s", s)
	}
	kept := ask(t, Unit{KindPod, "default", "p"}, append(objects, reserved(t, 2, "a", "c"))...)
	if len(kept.Pending) != 1 || !strings.Contains(kept.Pending[0].Why, "kept for gang default/g") {
		t.Errorf("p starts although nodes are reserved: %+v", kept.Pending)
	}
}
