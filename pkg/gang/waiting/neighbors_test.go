package waiting

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestWhichPodsHelpAMemberByComing(t *testing.T) {
	t.Parallel()
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "peer"}}
	near := func(change func(*v1.PodAffinityTerm)) *v1.Pod {
		term := v1.PodAffinityTerm{TopologyKey: "zone", LabelSelector: selector}
		change(&term)
		return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a"},
			Spec: v1.PodSpec{Affinity: &v1.Affinity{PodAffinity: &v1.PodAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{term}}}}}
	}
	spread := func(when v1.UnsatisfiableConstraintAction) *v1.Pod {
		return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a"},
			Spec: v1.PodSpec{TopologySpreadConstraints: []v1.TopologySpreadConstraint{
				{MaxSkew: 1, TopologyKey: "zone", WhenUnsatisfiable: when, LabelSelector: selector}}}}
	}
	coming := func(namespace, app string) *v1.Pod {
		return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Labels: map[string]string{"app": app}}}
	}
	unchanged := func(*v1.PodAffinityTerm) {}
	for _, tc := range []struct {
		name   string
		member *v1.Pod
		comes  *v1.Pod
		want   bool
	}{
		{"a pod that it has to be near", near(unchanged), coming("a", "peer"), true},
		{"a pod with other labels", near(unchanged), coming("a", "other"), false},
		{"a pod of another namespace", near(unchanged), coming("b", "peer"), false},
		{"a pod of a namespace that the term names", near(func(t *v1.PodAffinityTerm) { t.Namespaces = []string{"b"} }),
			coming("b", "peer"), true},
		{"a pod of any namespace", near(func(t *v1.PodAffinityTerm) { t.NamespaceSelector = &metav1.LabelSelector{} }),
			coming("b", "peer"), true},
		{"a pod of a namespace whose labels are not known",
			near(func(t *v1.PodAffinityTerm) { t.NamespaceSelector = selector }), coming("b", "peer"), true},
		{"a pod that its spread counts", spread(v1.DoNotSchedule), coming("a", "peer"), true},
		{"a pod of another namespace does not count", spread(v1.DoNotSchedule), coming("b", "peer"), false},
		{"a spread that is only preferred", spread(v1.ScheduleAnyway), coming("a", "peer"), false},
		{"a member that depends on no pod", &v1.Pod{}, coming("a", "peer"), false},
	} {
		var n neighbors
		n.add(tc.member)
		if got := n.Has([]*v1.Pod{coming("x", "x"), tc.comes}); got != tc.want {
			t.Errorf("%s: helps is %t, want %t", tc.name, got, tc.want)
		}
	}
}
