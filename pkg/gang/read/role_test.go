package read

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/wellknown"
)

func groupWith(minMember int32, annotations map[string]string) *schedulingv1alpha1.PodGroup {
	return &schedulingv1alpha1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: "g", Annotations: annotations},
		Spec: schedulingv1alpha1.PodGroupSpec{MinMember: minMember}}
}

func TestGangSpecMinimum(t *testing.T) {
	t.Parallel()
	roles := func(text string) map[string]string { return map[string]string{wellknown.MinMembersByRoleKey: text} }
	for _, tc := range []struct {
		name string
		pg   *schedulingv1alpha1.PodGroup
		want gang.Minimum
		err  bool
	}{
		{"nothing said is one member", groupWith(0, nil), gang.Minimum{Total: 1}, false},
		{"more than the roles add up to", groupWith(9, roles("leader=1, worker = 7")),
			gang.Minimum{Total: 9, Roles: map[string]int{"leader": 1, "worker": 7}}, false},
		{"a role of which none is needed has no minimum", groupWith(2, roles("leader=1,spare=0")),
			gang.Minimum{Total: 2, Roles: map[string]int{"leader": 1}}, false},
		{"an empty text", groupWith(1, roles("")), gang.Minimum{}, true},
		{"a role twice", groupWith(1, roles("leader=1,leader=2")), gang.Minimum{}, true},
		{"a negative number", groupWith(1, roles("leader=-1")), gang.Minimum{}, true},
		{"no value of a label", groupWith(1, roles("the leader=1")), gang.Minimum{}, true},
		{"a label that is none", groupWith(1, map[string]string{wellknown.RoleLabelKey: "a b"}), gang.Minimum{}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, err := Spec(tc.pg, time.Minute)
			if (err != nil) != tc.err {
				t.Fatalf("error %v, want one: %t", err, tc.err)
			}
			if diff := cmp.Diff(tc.want, got.Minimum); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
