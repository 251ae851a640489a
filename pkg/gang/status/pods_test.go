package status

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apitypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/utils/ptr"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/sla"
	"berth.dev/berth/pkg/wellknown"
)

// Pods of a class with a timeout come, change their class, get nodes and go: each wait that ends is reported once, at
// its end.
func TestAPodThatWaitsForTooLongIsToldOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begin, pods := time.Now(), newPods()
		recorder := events.NewFakeRecorder(10)
		c := New(newSource(sla.NewOrder([]sla.Class{{Name: "short", Timeout: 10 * time.Minute},
			{Name: "long", Timeout: time.Hour}}, nil), pods))
		ctx, cancel := context.WithCancel(t.Context())
		waitTimeouts.Create(nil)
		see := func(pod *v1.Pod) *v1.Pod {
			if err := pods.Add(pod); err != nil {
				t.Fatal(err)
			}
			c.Pods.See(pod)
			return pod
		}
		add := func(name, class string) *v1.Pod {
			return see(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: apitypes.UID(name),
				CreationTimestamp: metav1.Now(), Labels: map[string]string{wellknown.SLAClassKey: class}},
				Spec: v1.PodSpec{SchedulerName: "ours"}})
		}
		add("there before", "short")
		c.Start(ctx, newClient(t, nil), recorder, nil)
		pass(time.Minute)
		starts := add("starts", "short")
		twice := add("twice", "")
		twice.Labels = map[string]string{schedulingv1alpha1.PodGroupLabel: "g"}
		twice.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: ptr.To("g")}
		see(twice)
		hurries := add("hurries", "long")
		gone := add("gone", "short")
		pass(time.Minute)
		starts.Labels, hurries.Labels[wellknown.SLAClassKey] = nil, "short"
		see(starts)
		see(hurries)
		see(hurries)
		if err := pods.Delete(gone); err != nil {
			t.Fatal(err)
		}
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
