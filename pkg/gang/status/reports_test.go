package status

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/obstacle"
)

func TestAGangSaysForWhatItWaits(t *testing.T) {
	t.Parallel()
	id := gang.ID{Namespace: "default", Name: "train"}
	pg := &schedulingv1alpha1.PodGroup{Spec: schedulingv1alpha1.PodGroupSpec{MinMember: 3}}
	of := func(minimum, pending int, set ...func(*gang.View)) gang.View {
		v := gang.View{Minimum: gang.Minimum{Total: minimum}}
		v.Count[gang.Pending] = pending
		for _, f := range set {
			f(&v)
		}
		return v
	}
	for _, tt := range []struct {
		name  string
		view  gang.View
		group *schedulingv1alpha1.PodGroup
		want  string
	}{
		{"no PodGroup and three members", of(0, 3), nil,
			"MissingPodGroup: PodGroup default/train does not exist, and 3 pods wait for it"},
		{"a PodGroup without members", of(0, 0), pg, "TooFewMembers: 0 of 3 members exist"},
		{"none of one member", of(1, 0), pg, "TooFewMembers: 0 of 1 member exists"},
		{"enough members without a role", of(3, 3, func(v *gang.View) {
			v.Minimum.Roles = map[string]int{"leader": 1}
			v.Roles = map[string]gang.ByState{"worker": {gang.Pending: 3}}
		}), pg, "TooFewMembers: 0 of 1 member with role leader exists"},
		{"an owner that can never make enough", of(0, 1, func(v *gang.View) { v.Note = "Job x asks for 2 pods" }), nil,
			"MissingPodGroup: Job x asks for 2 pods"},
		{"no room", of(3, 3, func(v *gang.View) { v.Reason = obstacle.Text("fits 2") }), pg, "NotEnoughRoom: fits 2"},
		{"over", of(3, 0, func(v *gang.View) { v.Count[gang.Failed] = 3 }), pg, ""},
	} {
		got := ""
		if w := waitOf(id, &tt.view, tt.group); w != nil {
			got = w.reason + ": " + w.message
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: wait (-want +got):\n%s", tt.name, diff)
		}
	}
}
