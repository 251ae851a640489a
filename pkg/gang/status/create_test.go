package status

import (
	"errors"
	"net/http"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/read"
)

func TestWhatComesOfCreatingAPodGroup(t *testing.T) {
	t.Parallel()
	resource := schema.GroupResource{Group: "scheduling.x-k8s.io", Resource: "podgroups"}
	id := gang.ID{Namespace: "ns", Name: "g"}
	for _, tc := range []struct {
		name  string
		err   error
		pause time.Duration
		// told is set if an event about a member says why, fails if the sync is tried again as after any error.
		told, fails bool
	}{
		{name: "it is created"},
		{name: "it exists", err: apierrors.NewAlreadyExists(resource, "g")},
		{name: "a quota forbids it", err: apierrors.NewForbidden(resource, "g", errors.New("exceeded quota")),
			pause: refusedPause, told: true},
		{name: "its name is invalid", err: apierrors.NewInvalid(schema.GroupKind{}, "g", nil), pause: refusedPause,
			told: true},
		{name: "a webhook denies it", err: apierrors.NewBadRequest("admission webhook denied the request"),
			pause: refusedPause, told: true},
		{name: "the cluster does not serve it", err: apierrors.NewNotFound(resource, ""), pause: refusedPause, told: true},
		{name: "the namespace is gone", err: apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "ns")},
		{name: "there is no answer", err: http.ErrServerClosed, fails: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			fake := events.NewFakeRecorder(2)
			c := &Controller{recorder: recorder{fake}}
			pod := st.MakePod().Namespace("ns").Name("p").UID("p").Obj()
			s, r := &State{Members: []*v1.Pod{pod}, View: gang.View{Any: read.RefOf(pod)}}, &record{}
			for range 2 { // what is reported is reported once, and pauses double
				pause, err := c.handleCreateResult(t.Context(), id, s, r, tc.err)
				if (err != nil) != tc.fails || pause != tc.pause {
					t.Errorf("pause %s, error %v; want %s, %t", pause, err, tc.pause, tc.fails)
				}
				tc.pause *= 2
			}
			if told := len(fake.Events) == 1; told != tc.told {
				t.Errorf("%d events, want one: %t", len(fake.Events), tc.told)
			}
		})
	}
}
