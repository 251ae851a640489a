package status

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apitypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/component-base/metrics/testutil"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/sla"
	"berth.dev/berth/pkg/wellknown"
)

// dueIn makes a pod that is to end after some time, and declares how long it runs.
func dueIn(name string, end time.Duration, run string) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: apitypes.UID(name),
		CreationTimestamp: metav1.Now(),
		Annotations: map[string]string{wellknown.DeadlineKey: time.Now().Add(end).UTC().Format(time.RFC3339),
			wellknown.RunTimeKey: run}}, Spec: v1.PodSpec{SchedulerName: "ours"}}
}

func TestAPodThatWaitsForTooLongIsToldOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		missedDeadlines.Create(nil)
		waitTimeouts.Create(nil)
		pods, store := map[string]*v1.Pod{}, newPods()
		put := func(pod *v1.Pod) {
			pods[pod.Name] = pod
			if err := store.Add(pod); err != nil {
				t.Error(err)
			}
		}
		var got []string
		begin := time.Now()
		note := func(words string) {
			got = append(got, time.Since(begin).Truncate(time.Minute).String()+" "+words)
		}
		var written *v1.Pod
		api := granted(func(_ *http.Request, body []byte) {
			var pod v1.Pod
			if err := json.Unmarshal(body, &pod); err != nil {
				t.Error(err)
			}
			s := pod.Status
			note(string(s.Conditions[0].Type) + "=" + string(s.Conditions[0].Status) + " " + s.Conditions[0].Reason)
			if written = pods["p"].DeepCopy(); len(s.Conditions) == 1 {
				written.Status.Conditions = s.Conditions
			}
			put(written)
		})
		recorder := events.NewFakeRecorder(10)
		c := New(newSource(sla.NewOrder([]sla.Class{{Name: "short", Timeout: 10 * time.Minute}}, nil), store))
		ctx, cancel := context.WithCancel(t.Context())
		member, foreign, bound := dueIn("member", time.Hour, "2h"), dueIn("foreign", time.Hour, "2h"),
			dueIn("bound", time.Hour, "2h")
		member.Labels = map[string]string{schedulingv1alpha1.PodGroupLabel: "g"}
		foreign.Spec.SchedulerName, bound.Spec.NodeName = "theirs", "n"
		short := dueIn("short", 0, "")
		short.Annotations, short.Labels = nil, map[string]string{wellknown.SLAClassKey: "short"}
		for _, pod := range []*v1.Pod{member, foreign, bound, short, dueIn("p", 2*time.Hour, "90m"),
			dueIn("silent", time.Minute, "")} {
			put(pod)
			c.Pods.See(pod) // it is looked at again when the controller starts
		}
		c.Start(ctx, newClient(t, api), recorder, nil)
		hear := func(minutes int) {
			for range minutes {
				pass(time.Minute)
				c.Pods.See(pods["p"])
				synctest.Wait()
				for len(recorder.Events) > 0 {
					note(<-recorder.Events)
				}
			}
		}
		hear(60)
		pods["p"].Annotations[wellknown.DeadlineKey] = begin.Add(10 * time.Hour).UTC().Format(time.RFC3339)
		hear(20)
		for _, pod := range pods {
			c.Pods.See(pod)
		}
		hear(5)
		deadline := begin.Add(2 * time.Hour).UTC().Format(time.RFC3339)
		want := []string{
			"10m0s Warning WaitTimeout the pod waits for longer than the 600 seconds that its class short allows " +
				"(berth.dev/sla-class)",
			"30m0s berth.dev/DeadlineMissed=True CannotEndInTime",
			"31m0s Warning DeadlineMissed the pod cannot end by " + deadline +
				" (berth.dev/deadline): with a run time of 1h30m0s, it had to start by " +
				begin.Add(30*time.Minute).UTC().Format(time.RFC3339),
			"1h1m0s berth.dev/DeadlineMissed=False CanEndInTime",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("what is written (-want +got):\n%s", diff)
		}
		if n, err := testutil.GetCounterMetricValue(missedDeadlines.WithLabelValues(ofPod)); err != nil || n != 1 {
			t.Errorf("%g deadlines of pods count as missed, want 1: %v", n, err)
		}
		if n, err := testutil.GetCounterMetricValue(waitTimeouts.WithLabelValues("short")); err != nil || n != 1 {
			t.Errorf("%g waits count as too long, want 1: %v", n, err)
		}
		if c.Pods.Forget(short); c.Pods.told["short"] != nil {
			t.Error("a pod that is gone is remembered")
		}
		cancel()
		synctest.Wait()
	})
}

func TestWhatAPodGroupSaysOfItsDeadline(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	member := func(end, run string) *v1.Pod {
		return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "m",
			Annotations: map[string]string{wellknown.DeadlineKey: "2026-01-01T" + end + ":00Z", wellknown.RunTimeKey: run}}}
	}
	bound := member("12:30", "1h")
	bound.Spec.NodeName = "n"
	starts := func(minutes int) *schedulingv1alpha1.PodGroupEstimatedStart {
		return &schedulingv1alpha1.PodGroupEstimatedStart{
			Time: metav1.NewTime(now.Add(time.Duration(minutes) * time.Minute))}
	}
	had := metav1.Condition{Type: schedulingv1alpha1.PodGroupDeadlineMissed, Status: metav1.ConditionTrue,
		Reason: cannotEndInTime, Message: "before"}
	for _, tc := range []struct {
		name  string
		state State
		group string
		had   []metav1.Condition
		want  string
		again time.Duration
	}{
		{"one that can end in time says nothing, and is looked at again", State{Members: []*v1.Pod{member("13:30", "89m")}},
			"", nil, "", longestWait},
		{"just before its time is over", State{Members: []*v1.Pod{member("13:30", "89m50s")}}, "", nil, "", 11 * time.Second},
		{"its PodGroup may say how long it runs", State{Members: []*v1.Pod{member("13:30", "")}}, "2h", nil,
			"True CannotEndInTime the gang cannot end by 2026-01-01T13:30:00Z (berth.dev/deadline): with a run time of " +
				"2h0m0s, it had to start by 2026-01-01T11:30:00Z", 0},
		{"one that is expected to start too late says so at once", State{Members: []*v1.Pod{member("14:00", "1h")},
			Reserved: Reservation{Start: starts(61)}}, "", nil,
			"True ExpectedTooLate the gang cannot end by 2026-01-01T14:00:00Z (berth.dev/deadline): with a run time of " +
				"1h0m0s, it had to start by 2026-01-01T13:00:00Z, and is expected to start later", longestWait},
		{"a deadline that is put off is kept again", State{Members: []*v1.Pod{member("15:00", "1h")}}, "",
			[]metav1.Condition{had}, "False CanEndInTime ", longestWait},
		{"what was said of one that has started stays", State{View: gang.View{Started: true}, Members: []*v1.Pod{bound}}, "",
			[]metav1.Condition{had}, "True CannotEndInTime before", 0},
		{"members with a node are not looked at", State{Members: []*v1.Pod{bound}}, "", nil, "", 0},
	} {
		pg := &schedulingv1alpha1.PodGroup{Spec: schedulingv1alpha1.PodGroupSpec{MinMember: 4},
			Status: schedulingv1alpha1.PodGroupStatus{Conditions: tc.had}}
		if tc.group != "" {
			pg.Annotations = map[string]string{wellknown.RunTimeKey: tc.group}
		}
		tc.state.Known, tc.state.Minimum = true, gang.Minimum{Total: 4}
		got := ""
		for _, c := range wantedStatus(pg, &tc.state, now).Conditions {
			if c.Type == schedulingv1alpha1.PodGroupDeadlineMissed {
				got = string(c.Status) + " " + c.Reason + " " + c.Message
			}
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: condition (-want +got):\n%s", tc.name, diff)
		}
		if again := tc.state.lookAtDeadline(pg, now); again != tc.again {
			t.Errorf("%s: it is looked at again after %s, want %s", tc.name, again, tc.again)
		}
	}
}
