package podgroup

import (
	"context"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apitypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/component-base/metrics/testutil"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/informers"
	"berth.dev/berth/pkg/sla"
)

// Pods of a class with a timeout come, change their class, get nodes and go: each wait that ends is reported once, at
// its end.
func TestAPodThatWaitsForTooLongIsToldOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		short, long := &sla.Class{Name: "short", Timeout: 10 * time.Minute}, &sla.Class{Name: "long", Timeout: time.Hour}
		begin := time.Now()
		pods, classes := map[gang.UID]*v1.Pod{}, map[gang.UID]*sla.Class{}
		recorder := events.NewFakeRecorder(10)
		c := New(&informers.Leader{}, Source{
			Tally:       func() map[string]int { return nil },
			Pods:        func() []*v1.Pod { return slices.Collect(maps.Values(pods)) },
			GangOf:      func(*v1.Pod) gang.ID { return gang.ID{} },
			Pod:         func(ref gang.Ref) *v1.Pod { return pods[ref.UID] },
			InTwoGroups: func(pod *v1.Pod) bool { return pod.Name == "twice" },
			TimedClass:  func(pod *v1.Pod) *sla.Class { return classes[gang.UID(pod.UID)] },
		})
		ctx, cancel := context.WithCancel(t.Context())
		waitTimeouts.Create(nil)
		add := func(name string, class *sla.Class) *v1.Pod {
			pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: apitypes.UID(name),
				CreationTimestamp: metav1.Now()}}
			pods[gang.UID(name)], classes[gang.UID(name)] = pod, class
			c.Pods.See(pod)
			return pod
		}
		add("there before", short)
		c.Start(ctx, newClient(t, newStore(), nil), recorder, nil)
		c.leader.Schedules()
		pass(time.Minute)
		starts := add("starts", short)
		add("twice", nil)
		hurries := add("hurries", long)
		gone := add("gone", short)
		pass(time.Minute)
		classes["starts"], classes["hurries"] = nil, short
		c.Pods.See(starts)
		c.Pods.See(hurries)
		c.Pods.See(hurries)
		delete(pods, "gone")
		c.Pods.Forget(gone)
		pass(30 * time.Second)
		var got []string
		for range 3 * 60 {
			pass(time.Minute)
			for len(recorder.Events) > 0 {
				got = append(got, time.Since(begin).Truncate(time.Minute).String()+" "+<-recorder.Events)
			}
		}
		want := []string{
			"3m0s Warning TwoGroups the pod is in a native group by spec.schedulingGroup and in a gang by its labels or its " +
				"owner: the native group alone counts",
			"10m0s Warning WaitTimeout the pod waits for longer than the 600 seconds that its class short allows " +
				"(berth.dev/sla-class)",
			"11m0s Warning WaitTimeout the pod waits for longer than the 600 seconds that its class short allows " +
				"(berth.dev/sla-class)",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		if counted, err := testutil.GetCounterMetricValue(waitTimeouts.WithLabelValues("short")); counted != 2 || err != nil {
			t.Errorf("%v counted, %v; want 2", counted, err)
		}
		if c.Pods.Forget(hurries); len(c.Pods.told) != 2 {
			t.Errorf("%d pods are remembered", len(c.Pods.told))
		}
		cancel()
		synctest.Wait()
	})
}
