package explain

import (
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gang/work"
	"berth.dev/berth/test/harness/assert"
	"berth.dev/berth/test/harness/require"
)

// The running scheduler says in the status of a PodGroup what it has reserved for the gang.
func TestReservationsOfTheRunningSchedulerAreRead(t *testing.T) {
	t.Parallel()
	plain := func() *unstructured.Unstructured {
		group := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"minMember": int64(2)}}}
		group.SetGroupVersionKind(schedulingv1alpha1.SchemeGroupVersion.WithKind("PodGroup"))
		group.SetNamespace("default")
		group.SetName("g")
		group.SetUID("g")
		return group
	}
	reserved := func(nodes ...string) *unstructured.Unstructured {
		group := plain()
		status, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&schedulingv1alpha1.PodGroupStatus{
			ReservedNodes: nodes,
			Conditions: []metav1.Condition{{Type: schedulingv1alpha1.PodGroupReserved, Status: metav1.ConditionTrue,
				Reason:  "NodesReserved",
				Message: "2 nodes reserved, on which at least 1 pod has to end first", LastTransitionTime: metav1.NewTime(now)},
				{Type: schedulingv1alpha1.PodGroupDeadlineMissed, Status: metav1.ConditionTrue,
					Message: "the gang cannot end in time"}}})
		require.NoError(t, err)
		group.Object["status"] = status
		return group
	}
	member := func(name string) *v1.Pod {
		p := pod(name, "", "8", 0)
		p.Labels = map[string]string{"scheduling.x-k8s.io/pod-group": "g"}
		return p
	}
	waits, runs := pod("p", "", "2", 0), pod("x", "a", "1", 0)
	cluster := func(group runtime.Object) []runtime.Object {
		return []runtime.Object{node("a", "8"), node("b", "8"), node("c", "8"), node("d", "8"), runs, pod("y", "b", "8", 0),
			pod("z", "d", "8", 0),
			waits, member("g-0"), member("g-1"), group}
	}
	if e := ask(t, waits, cluster(plain())...); e.Winner == "" {
		t.Errorf("without a reservation no node fits: %s", e.Verdict)
	}
	e := ask(t, waits, cluster(reserved("a", "c"))...)
	if e.Winner != "" || !strings.Contains(e.Verdict, "2 whose free capacity is kept for gang default/g (Coscheduling)") {
		t.Errorf("with a and c reserved the pod gets %q: %s", e.Winner, e.Verdict)
	}
	if e := ask(t, pod("important", "", "2", 10), cluster(reserved("a", "c"))...); e.Winner == "" {
		t.Errorf("a pod of higher priority is kept off: %s", e.Verdict)
	}
	// The nodes are those that the scheduler says, although d and not a would be chosen without x.
	if e := ask(t, runs, cluster(reserved("a", "c"))...); !strings.HasPrefix(e.Verdict, "It runs on a.") {
		t.Errorf("a pod that runs on a reserved node: %s", e.Verdict)
	}
	e = ask(t, member("g-0"), cluster(reserved("a", "c"))...)
	if e.Gang.Reserved != "2 nodes reserved, on which at least 1 pod has to end first" ||
		!slices.Equal(e.Gang.ReservedNodes, []string{"a", "c"}) {
		t.Errorf("the gang has %q on %v", e.Gang.Reserved, e.Gang.ReservedNodes)
	}
	assert.Contains(t, onPaper(t, e, 10),
		"\n2 nodes reserved, on which at least 1 pod has to end first: a c\nthe gang cannot end in time\n")
}

// The running scheduler says on a pod that it misses its deadline.
func TestWhatTheRunningSchedulerSaysOfAPodIsRead(t *testing.T) {
	t.Parallel()
	told := func(p *v1.Pod) *v1.Pod {
		p.Status.Conditions = append(p.Status.Conditions, v1.PodCondition{Type: work.DeadlineMissed,
			Status: v1.ConditionTrue, Message: "the pod cannot end in time"})
		return p
	}
	for name, test := range map[string]struct {
		pod  *v1.Pod
		want string
	}{
		"a pod that waits": {told(pod("p", "", "8", 0)), "\nthe pod cannot end in time\n"},
		"one that runs":    {told(pod("p", "a", "8", 0)), "\nthe pod cannot end in time\n"},
		"one without":      {pod("p", "", "8", 0), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			said := onPaper(t, ask(t, test.pod, node("a", "8"), pod("x", "a", "8", 0), test.pod), 10)
			if !strings.Contains(said, test.want) || strings.Contains(said, "cannot end") != (test.want != "") {
				t.Errorf("it says:\n%s", said)
			}
		})
	}
}
