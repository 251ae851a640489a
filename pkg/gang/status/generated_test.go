package status

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"k8s.io/utils/ptr"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gang"
)

func TestOwnersOfAGeneratedPodGroup(t *testing.T) {
	t.Parallel()
	pod := func(name, controller string) *v1.Pod {
		p := st.MakePod().Namespace("ns").Name(name).UID(name).Obj()
		if controller != "" {
			p.OwnerReferences = []metav1.OwnerReference{
				{APIVersion: "batch/v1", Kind: "Job", Name: controller, UID: types.UID(controller), Controller: ptr.To(true),
					BlockOwnerDeletion: ptr.To(true)}}
		}
		return p
	}
	job := metav1.OwnerReference{APIVersion: "batch/v1", Kind: "Job", Name: "j", UID: "j"}
	member := func(name string) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: name, UID: types.UID(name)}
	}
	many := make([]*v1.Pod, 100)
	var first []metav1.OwnerReference
	for i := range many {
		many[i] = pod(fmt.Sprint(i), "")
		if i < maxOwners {
			first = append(first, member(fmt.Sprint(i)))
		}
	}
	for _, tc := range []struct {
		name    string
		members []*v1.Pod
		want    []metav1.OwnerReference
	}{
		{"the controller that all share", []*v1.Pod{pod("a", "j"), pod("b", "j")}, []metav1.OwnerReference{job}},
		{"the members, if their controllers differ", []*v1.Pod{pod("a", "j"), pod("b", "k")},
			[]metav1.OwnerReference{member("a"), member("b")}},
		{"the members, if one has no controller", []*v1.Pod{pod("a", "j"), pod("b", "")},
			[]metav1.OwnerReference{member("a"), member("b")}},
		{"the members, if the first has no controller", []*v1.Pod{pod("a", ""), pod("b", "j")},
			[]metav1.OwnerReference{member("a"), member("b")}},
		{"the first of very many", many, first},
		{"none", nil, []metav1.OwnerReference{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			pg := generatedPodGroup(gang.ID{Namespace: "ns", Name: "g"}, 2, tc.members)
			if diff := cmp.Diff(tc.want, pg.OwnerReferences); diff != "" {
				t.Errorf("owners (-want +got):\n%s", diff)
			}
		})
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
			requests := &recordedRequests{}
			g := &Controller{api: newClient(t, requests)}
			pg := generatedPodGroup(id, 2, []*v1.Pod{pod})
			if tc.edit != nil {
				tc.edit(pg)
			}
			if _, _, err := g.keep(t.Context(), id, &tc.state, pg, &record{}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, requests.methods); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

// recordedRequests grants all requests.
type recordedRequests struct{ methods []string }

func (r *recordedRequests) RoundTrip(request *http.Request) (*http.Response, error) {
	r.methods = append(r.methods, request.Method)
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(`{"kind":"Status","apiVersion":"v1","status":"Success"}`))}, nil
}
