package overview

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/wellknown"
)

func TestAGangSaysHowFarItHasGrown(t *testing.T) {
	t.Parallel()
	g := &gangEntry{group: &schedulingv1alpha1.PodGroup{}, members: map[types.UID]*podEntry{}}
	g.group.Spec.MinMember = 2
	g.group.Annotations = map[string]string{wellknown.MinMembersByRoleKey: "leader=1,worker=1"}
	add := func(uid types.UID, role, node string, phase v1.PodPhase) {
		p := &v1.Pod{Spec: v1.PodSpec{NodeName: node}, Status: v1.PodStatus{Phase: phase}}
		p.Labels = map[string]string{wellknown.RoleKey: role}
		g.members[uid] = &podEntry{pod: p}
	}
	add("a", "leader", "n", v1.PodRunning)
	add("b", "worker", "n", v1.PodRunning)
	add("c", "leader", "n", v1.PodRunning)
	add("d", "worker", "", v1.PodSucceeded)
	add("e", "worker", "n", v1.PodFailed)
	add("f", "worker", "", v1.PodPending)
	for _, tc := range []struct{ by, want string }{
		{"", ""},
		{"leader=1,worker=1", "grows by leader=1,worker=1, 1 step taken"},
		{"leader=1,worker=2", "grows by leader=1,worker=2, 0 steps taken"},
		{"double", "grows by double, 1 step taken"},
		{"other=1", ""},
	} {
		if delete(g.group.Annotations, wellknown.GrowByKey); tc.by != "" {
			g.group.Annotations[wellknown.GrowByKey] = tc.by
		}
		if got := g.growth(); got != tc.want {
			t.Errorf("by %q it says %q, want %q", tc.by, got, tc.want)
		}
	}
	if got := (&gangEntry{}).growth(); got != "" {
		t.Errorf("without a PodGroup it says %q", got)
	}
}
