package main

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"berth.dev/berth/test/harness/assert"
	"berth.dev/berth/test/invariants"
)

func pod(name, uid, node string) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(uid)},
		Spec: v1.PodSpec{NodeName: node}}
}

func TestWhatHappenedWhileNobodyWatchedIsFoundInALists(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		before, after []v1.Pod
		bound         int
		want          string
	}{
		"nothing": {before: []v1.Pod{*pod("a", "1", "")}, after: []v1.Pod{*pod("a", "1", "")}},
		"a pod was bound": {before: []v1.Pod{*pod("a", "1", "")}, after: []v1.Pod{*pod("a", "1", "n")},
			bound: 1},
		"a pod came and was bound": {after: []v1.Pod{*pod("a", "1", "n")}},
		"a pod is gone": {before: []v1.Pod{*pod("a", "1", "n"), *pod("b", "2", "")},
			after: []v1.Pod{*pod("b", "2", "")}},
		"a pod has another node": {before: []v1.Pod{*pod("a", "1", "n")}, after: []v1.Pod{*pod("a", "1", "m")},
			want: invariants.BoundTwice},
		"another pod of the same name":  {before: []v1.Pod{*pod("a", "1", "n")}, after: []v1.Pod{*pod("a", "2", "m")}},
		"another pod that is not bound": {before: []v1.Pod{*pod("a", "1", "n")}, after: []v1.Pod{*pod("a", "2", "")}},
		"a pod was bound, another is gone": {before: []v1.Pod{*pod("a", "1", ""), *pod("b", "2", "")},
			after: []v1.Pod{*pod("a", "1", "n")}, bound: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newObserver(invariants.New(0))
			for _, p := range test.before {
				o.take("pods", watch.Added, &p)
			}
			var list []any
			for i := range test.after {
				list = append(list, &test.after[i])
			}
			o.replace("pods", list)
			got := ""
			if fault := o.checker.First(); fault != nil {
				got = fault.Kind
			}
			assert.Equal(t, "fault", test.want, got)
			if bound := o.bound(time.Time{}); len(bound) != test.bound {
				t.Errorf("%d bindings, want %d", len(bound), test.bound)
			}
			if left := o.pods(); len(left) != len(test.after) {
				t.Errorf("%d pods are known, want %d", len(left), len(test.after))
			}
		})
	}
}

func TestBindingsAreCountedFromATime(t *testing.T) {
	t.Parallel()
	o := newObserver(invariants.New(0))
	bind := func(name string) {
		o.take("pods", watch.Added, pod(name, name, ""))
		o.take("pods", watch.Modified, pod(name, name, "n"))
		o.take("pods", watch.Modified, pod(name, name, "n"))
	}
	bind("a")
	between := time.Now()
	bind("b")
	if got := o.bound(between); len(got) != 1 || got[0].at.Before(between) {
		t.Errorf("bindings since then are %v, want that of b", got)
	}
	if got := o.bound(time.Time{}); len(got) != 2 {
		t.Errorf("%d bindings, want 2", len(got))
	}
	if got := o.bound(time.Now().Add(time.Hour)); len(got) != 0 {
		t.Errorf("%d bindings in the future", len(got))
	}
}
