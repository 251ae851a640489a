package coscheduling

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/pkg/process"
	"berth.dev/berth/pkg/sla"
	"berth.dev/berth/pkg/wellknown"
)

func TestWhoWaitsByATimeout(t *testing.T) {
	t.Parallel()
	order := sla.NewOrder([]sla.Class{{Name: "timed", Timeout: time.Minute}, {Name: "patient"}}, nil)
	c := &coordinator{profiles: &process.Profiles{}, settings: settings{classes: queueClasses{order: order}}}
	c.profiles.Add(named{name: "ours"})
	for _, tc := range []struct {
		name   string
		change func(*v1.Pod)
		want   bool
	}{
		{"a pending pod of a class with a timeout", func(*v1.Pod) {}, true},
		{"a pod that is kept by a gate", func(p *v1.Pod) { p.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: "x"}} },
			true},
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
			pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{wellknown.SLAClassKey: "timed"}},
				Spec: v1.PodSpec{SchedulerName: "ours"}}
			tc.change(pod)
			if got := c.timedClass(pod); (got != nil) != tc.want {
				t.Errorf("class %v, want one: %t", got, tc.want)
			}
		})
	}
}

// named is a profile that is asked only for its name.
type named struct {
	framework.Framework
	name string
}

func (n named) ProfileName() string { return n.name }
