package main

import (
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/lab/simulation/memapi"
	"berth.dev/berth/test/histories/history"
)

func TestTheClusterIsAtRestWhenNothingHasChangedForLong(t *testing.T) {
	t.Parallel()
	objects := (&history.Pod{Name: "a"}).Objects()
	pod := objects[len(objects)-1].(*v1.Pod)
	bound, told := pod.DeepCopy(), pod.DeepCopy()
	bound.Spec.NodeName = "n"
	told.Status.Conditions = []v1.PodCondition{{Type: v1.PodScheduled, Status: v1.ConditionFalse, Message: "does not fit"}}
	group, larger := (&history.Gang{Name: "g", MinMember: 2}).Object(), (&history.Gang{Name: "g", MinMember: 3}).Object()
	for name, test := range map[string]struct {
		change memapi.Event
		want   bool
	}{
		"a pod comes":             {change: memapi.Event{Type: memapi.Added, Object: pod}},
		"a pod is bound":          {change: memapi.Event{Type: memapi.Modified, Object: bound, Old: pod}},
		"a pod says why it waits": {change: memapi.Event{Type: memapi.Modified, Object: told, Old: pod}, want: true},
		"a gang gets a minimum":   {change: memapi.Event{Type: memapi.Modified, Object: larger, Old: group}},
		"a gang is as it was":     {change: memapi.Event{Type: memapi.Modified, Object: group, Old: group}, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var r rest
				r.stir()
				time.Sleep(prompt / 2) //nolint:forbidigo // virtual time
				r.observe(test.change)
				time.Sleep(prompt / 2) //nolint:forbidigo // virtual time
				if got := r.reached(); got != test.want {
					t.Errorf("at rest: %t, want %t", got, test.want)
				}
				time.Sleep(prompt) //nolint:forbidigo // virtual time
				if got := r.reached(); got == test.want {
					t.Errorf("at rest again: %t, want %t", got, !test.want)
				}
			})
		})
	}
}
