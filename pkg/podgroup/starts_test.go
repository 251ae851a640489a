package podgroup

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/informers"
	"berth.dev/berth/pkg/runview"
	"berth.dev/berth/pkg/sla"
)

// bodies is an API server that takes patches and keeps what they say.
type bodies func(text string)

func (b bodies) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	b(string(body))
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
		Body: io.NopCloser(strings.NewReader(`{"kind":"Pod","apiVersion":"v1"}`))}, nil
}

func TestAPodIsToldItsStartWhileItWaits(t *testing.T) {
	t.Parallel()
	condition := func(text string) []v1.PodCondition {
		return []v1.PodCondition{{Type: runview.StartEstimated, Status: v1.ConditionTrue, Reason: "WaitsForCapacity",
			Message:            text,
			LastTransitionTime: metav1.NewTime(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC))}}
	}
	for _, tc := range []struct {
		name     string
		text     string
		unknown  bool
		had      []v1.PodCondition
		bound    bool
		wantText string
		taken    bool
	}{
		{name: "one that nothing is known of"},
		{name: "one that is told its start", text: "at 14:05", wantText: "at 14:05"},
		{name: "one that knows it already", text: "at 14:05", had: condition("at 14:05")},
		{name: "one whose start has moved", text: "at 15:00", had: condition("at 14:05"), wantText: "at 15:00"},
		{name: "one that is told nothing any more", had: condition("at 14:05"), taken: true},
		{name: "one that has started", text: "at 14:05", had: condition("at 14:05"), bound: true, taken: true},
		{name: "one of before a restart, until the scheduler has looked", unknown: true, had: condition("at 14:05")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "p"},
					Status: v1.PodStatus{Conditions: tc.had}}
				if tc.bound {
					pod.Spec.NodeName = "n"
				}
				var written []string
				c := New(&informers.Leader{}, Source{
					State: func(gang.ID) State { return State{} }, Tally: func() map[string]int { return nil },
					Pods: func() []*v1.Pod { return []*v1.Pod{pod} }, Pod: func(gang.Ref) *v1.Pod { return pod },
					GangOf: func(*v1.Pod) gang.ID { return gang.ID{} }, InTwoGroups: func(*v1.Pod) bool { return false },
					Ours: func(*v1.Pod) bool { return true }, TimedClass: func(*v1.Pod) *sla.Class { return nil },
					Starts: func(*v1.Pod) (string, bool) { return tc.text, !tc.unknown },
				})
				ctx, cancel := context.WithCancel(t.Context())
				c.Start(ctx, newClient(t, newStore(), bodies(func(text string) { written = append(written, text) })),
					events.NewFakeRecorder(1), nil)
				c.leader.Schedules()
				synctest.Wait()
				cancel()
				synctest.Wait()
				want := 0
				if tc.wantText != "" || tc.taken {
					want = 1
				}
				if len(written) != want {
					t.Fatalf("%d writes, want %d: %v", len(written), want, written)
				}
				if want == 0 {
					return
				}
				var got struct {
					Status struct{ Conditions []map[string]any }
				}
				if err := json.Unmarshal([]byte(written[0]), &got); err != nil {
					t.Fatal(err)
				}
				wantCondition := map[string]any{"type": "berth.dev/StartEstimated", "$patch": "delete"}
				if !tc.taken {
					wantCondition = map[string]any{"type": "berth.dev/StartEstimated", "status": "True", "reason": "WaitsForCapacity",
						"message": tc.wantText, "lastTransitionTime": "2000-01-01T00:00:00Z"}
				}
				if diff := cmp.Diff([]map[string]any{wantCondition}, got.Status.Conditions); diff != "" {
					t.Errorf("conditions (-want +got):\n%s", diff)
				}
			})
		})
	}
}
