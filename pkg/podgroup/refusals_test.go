package podgroup

import (
	"errors"
	"net/http"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gangview"
)

func TestRefusals(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	t.Run("one namespace's pause is its own, and doubles", func(t *testing.T) {
		t.Parallel()
		var r refusals
		if pause, first := r.refuse("ns", refusedPause, now); pause != refusedPause || !first {
			t.Errorf("the first refusal pauses for %s, first %t", pause, first)
		}
		if pause, first := r.refuse("ns", refusedPause, now.Add(time.Second)); pause != refusedPause-time.Second || first {
			t.Errorf("another one that was under way pauses for %s, first %t", pause, first)
		}
		if r.pause("ns", now.Add(refusedPause-1)) != 1 || r.pause("other", now) != 0 {
			t.Error("want the namespace refused, and no other")
		}
		later := now.Add(refusedPause)
		if r.pause("ns", later) != 0 {
			t.Error("the namespace is refused after the pause")
		}
		if pause, first := r.refuse("ns", refusedPause, later); pause != 2*refusedPause || first {
			t.Errorf("the second pause is %s, first %t; want twice the first", pause, first)
		}
		if r.accept("ns"); r.pause("ns", later) != 0 {
			t.Error("the namespace is refused after a PodGroup was accepted")
		}
	})
	t.Run("what the cluster does not serve is a pause for all", func(t *testing.T) {
		t.Parallel()
		var r refusals
		r.refuse(everywhere, unservedPause, now)
		if r.pause("ns", now) != unservedPause || r.pause("ns", now.Add(unservedPause)) != 0 {
			t.Error("want all namespaces refused for the pause")
		}
	})
	t.Run("the pause is bounded, and namespaces that ask no more are forgotten", func(t *testing.T) {
		t.Parallel()
		var r refusals
		at := now
		for range 20 {
			pause, _ := r.refuse("ns", refusedPause, at)
			if at = at.Add(pause); pause > refusedPauseMost || r.pause("ns", at) != 0 {
				t.Fatalf("a pause of %s", pause)
			}
		}
		if r.refuse("other", refusedPause, at.Add(2*refusedPauseMost)); len(r.paused) != 1 {
			t.Errorf("%d namespaces are remembered", len(r.paused))
		}
	})
}

func TestWhatComesOfCreatingAPodGroup(t *testing.T) {
	t.Parallel()
	resource := schema.GroupResource{Group: "scheduling.x-k8s.io", Resource: "podgroups"}
	id := gang.ID{Namespace: "ns", Name: "g"}
	for _, tc := range []struct {
		name  string
		err   error
		pause time.Duration
		// told is set if an event about a member says why, fails if the sync is tried again as after any error.
		told, fails, never bool
	}{
		{name: "it is created"},
		{name: "it exists", err: apierrors.NewAlreadyExists(resource, "g")},
		{name: "a quota forbids it", err: apierrors.NewForbidden(resource, "g", errors.New("exceeded quota")),
			pause: refusedPause, told: true},
		{name: "a webhook calls it invalid", err: apierrors.NewInvalid(schema.GroupKind{}, "g", nil), told: true,
			never: true},
		{name: "a webhook denies it", err: apierrors.NewBadRequest("admission webhook denied the request"),
			pause: refusedPause, told: true},
		{name: "the cluster does not serve it", err: apierrors.NewNotFound(resource, ""), pause: unservedPause},
		{name: "the namespace is gone", err: apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "ns")},
		{name: "there is no answer", err: http.ErrServerClosed, fails: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			fake := events.NewFakeRecorder(2)
			g := &generator{recorder: recorder{fake}}
			pod := st.MakePod().Namespace("ns").Name("p").UID("p").Obj()
			s, r := &State{Members: []*v1.Pod{pod}, View: gang.View{Any: gangview.RefOf(pod)}}, &record{}
			for range 2 { // what is reported is reported once
				pause, err := g.handleCreateResult(t.Context(), id, s, r, tc.err)
				if (err != nil) != tc.fails || pause > tc.pause || tc.pause > 0 && pause <= 0 || r.uncreatable != tc.never {
					t.Errorf("pause %s, never again %t, error %v; want %s, %t, %t", pause, r.uncreatable, err, tc.pause, tc.never,
						tc.fails)
				}
				if tc.never {
					break
				}
			}
			if told := len(fake.Events) == 1; told != tc.told {
				t.Errorf("%d events, want one: %t", len(fake.Events), tc.told)
			}
		})
	}
}
