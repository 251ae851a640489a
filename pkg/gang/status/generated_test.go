package status

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gang"
)

// To whom others belong is told in label-only.scenario and label-only-edits.scenario.
func TestAGeneratedPodGroupOfVeryManyBelongsToTheFirst(t *testing.T) {
	t.Parallel()
	members := make([]*v1.Pod, 2*maxOwners)
	for i := range members {
		members[i] = st.MakePod().Namespace("ns").Name(fmt.Sprint(i)).UID(fmt.Sprint(i)).Obj()
	}
	owners := generatedPodGroup(gang.ID{Namespace: "ns", Name: "g"}, 2, members).OwnerReferences
	if len(owners) != maxOwners || owners[maxOwners-1].Name != fmt.Sprint(maxOwners-1) {
		t.Errorf("%d owners, the last is %+v; want the first %d members", len(owners), owners[len(owners)-1], maxOwners)
	}
}

// The scheduler starts beside a gang that runs: what its PodGroup was generated for may not be known yet.
func TestAGeneratedPodGroupStaysUntilItsOwnerIsRead(t *testing.T) {
	t.Parallel()
	id := gang.ID{Namespace: "ns", Name: "g"}
	pod := st.MakePod().Namespace("ns").Name("p").UID("p").Obj()
	for _, tc := range []struct {
		name  string
		state State
		edit  func(pg *schedulingv1alpha1.PodGroup)
		want  []string
	}{
		{name: "the owner has not been read", state: State{OwnerUnread: true}},
		{name: "the owner declares no gang any more", want: []string{http.MethodDelete}},
		{name: "the minimum has changed", state: State{View: gang.View{Undeclared: 3}}, want: []string{http.MethodPatch}},
		{name: "nothing has changed", state: State{View: gang.View{Undeclared: 2}}},
		{name: "a user has edited it", edit: func(pg *schedulingv1alpha1.PodGroup) { pg.Spec.MinMember = 7 }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var requests []string
			g := &Controller{api: newClient(t, granted(func(r *http.Request, _ []byte) {
				requests = append(requests, r.Method)
			}))}
			pg := generatedPodGroup(id, 2, []*v1.Pod{pod})
			if tc.edit != nil {
				tc.edit(pg)
			}
			if _, _, err := g.keep(t.Context(), id, &tc.state, pg, &record{}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, requests); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}
