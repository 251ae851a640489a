package coscheduling

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apitypes "k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"pgregory.net/rapid"

	"berth.dev/berth/pkg/profiles"
	"berth.dev/berth/pkg/sla"
	"berth.dev/berth/pkg/wellknown"
)

// Whatever pods come, change their class, get nodes and go: each is told of once, in the first look after the end of its wait.
func TestOverdueTellsOfEachWaitOnce(t *testing.T) {
	t.Parallel()
	short, long := &sla.Class{Name: "short", Timeout: time.Minute}, &sla.Class{Name: "long", Timeout: time.Hour}
	rapid.Check(t, func(t *rapid.T) {
		o, now := newOverdue(), noon
		type wait struct {
			class *sla.Class
			told  bool
		}
		model := map[string]*wait{}
		pods := map[string]*v1.Pod{}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			name := fmt.Sprint(rapid.IntRange(0, 5).Draw(t, "pod"))
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0, 1:
				if pods[name] == nil {
					pods[name] = &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: apitypes.UID(name), CreationTimestamp: metav1.NewTime(now)}}
				}
				class := rapid.SampledFrom([]*sla.Class{short, long, nil}).Draw(t, "class")
				o.see(pods[name], class)
				if class == nil {
					delete(model, name)
				} else if model[name] == nil || model[name].class != class {
					model[name] = &wait{class: class}
				}
			case 2:
				now = now.Add(time.Duration(rapid.IntRange(0, 90).Draw(t, "minutes")) * time.Minute)
			default:
				ended, next := o.due(now)
				var got, want []string
				for _, w := range ended {
					got = append(got, w.pod.Name+" "+w.class)
				}
				var first time.Time
				for _, name := range slices.Sorted(maps.Keys(model)) {
					w := model[name]
					if w.told {
						continue
					}
					end := pods[name].CreationTimestamp.Add(w.class.Timeout)
					if !now.Before(end) {
						w.told = true
						want = append(want, name+" "+w.class.Name)
					} else if first.IsZero() || end.Before(first) {
						first = end
					}
				}
				slices.Sort(got)
				if diff := cmp.Diff(want, got); diff != "" || !first.Equal(next) {
					t.Fatalf("next at %s, want %s; ended (-want +got):\n%s", next, first, diff)
				}
			}
		}
		if len(o.waits) != len(model) {
			t.Fatalf("%d waits are kept of %d pods that wait", len(o.waits), len(model))
		}
	})
}

func TestWhoWaitsByATimeout(t *testing.T) {
	t.Parallel()
	c := &coordinator{profiles: &profiles.Set{}, classes: queueClasses{order: sla.NewOrder([]sla.Class{
		{Name: "timed", Timeout: time.Minute}, {Name: "patient"},
	}, nil)}}
	c.profiles.Add(named{name: "ours"})
	for _, tc := range []struct {
		name   string
		change func(*v1.Pod)
		want   bool
	}{
		{"a pending pod of a class with a timeout", func(*v1.Pod) {}, true},
		{"a pod that is kept by a gate", func(p *v1.Pod) { p.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: "x"}} }, true},
		{"one of a class without a timeout", func(p *v1.Pod) { p.Labels[wellknown.SLAClassKey] = "patient" }, false},
		{"one without a class", func(p *v1.Pod) { p.Labels = nil }, false},
		{"one of an unknown class", func(p *v1.Pod) { p.Labels[wellknown.SLAClassKey] = "gold" }, false},
		{"one that has a node", func(p *v1.Pod) { p.Spec.NodeName = "n" }, false},
		{"one that is being deleted", func(p *v1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: noon} }, false},
		{"one that has failed", func(p *v1.Pod) { p.Status.Phase = v1.PodFailed }, false},
		{"one of another scheduler", func(p *v1.Pod) { p.Spec.SchedulerName = "theirs" }, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{wellknown.SLAClassKey: "timed"}}, Spec: v1.PodSpec{SchedulerName: "ours"}}
			tc.change(pod)
			if got := c.timedClass(pod); (got != nil) != tc.want {
				t.Errorf("class %v, want one: %t", got, tc.want)
			}
		})
	}
}

// A pod of a class with a timeout is told of once, when that ends; one that has a node by then is not.
func TestAPodThatWaitsForTooLongIsToldOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		class := &sla.Class{Name: "told-once", Timeout: 10 * time.Minute}
		recorder := events.NewFakeRecorder(10)
		store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
		c := &coordinator{overdue: newOverdue(), pods: &memberPods{lister: corelisters.NewPodLister(store)}, status: newStatusWriter(), recorder: recorder}
		c.status.synced = func() bool { return true }
		c.status.leading.Store(true)
		registerMetrics()
		waitTimeouts.Create(nil)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			(&feed{ctx: ctx, coordinator: c}).tellOverdue(ctx)
		}()
		for i, name := range []string{"waits", "starts", "waits-too"} {
			pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: apitypes.UID(name), CreationTimestamp: metav1.Now()}}
			if err := store.Add(pod); err != nil {
				t.Fatal(err)
			}
			c.overdue.see(pod, class)
			time.Sleep(time.Duration(i) * time.Minute) //nolint:forbidigo // virtual time
		}
		c.overdue.see(&v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "starts"}}, nil)
		time.Sleep(24 * time.Hour) //nolint:forbidigo // virtual time
		cancel()
		<-done
		close(recorder.Events)
		n := 0
		for event := range recorder.Events {
			n++
			if want := "Warning WaitTimeout the pod waits for longer than the 600 seconds that its class told-once allows (berth.dev/sla-class)"; event != want {
				t.Errorf("event %q, want %q", event, want)
			}
		}
		counted, err := testutil.GetCounterMetricValue(waitTimeouts.WithLabelValues("told-once"))
		if n != 2 || counted != 2 || err != nil {
			t.Errorf("%d events, %v counted, %v; want 2 and 2", n, counted, err)
		}
	})
}

// named is a profile of which only the name is asked for.
type named struct {
	framework.Framework
	name string
}

func (n named) ProfileName() string { return n.name }
