package main

import (
	"fmt"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"berth.dev/berth/pkg/lab/simulation/memapi"
	"berth.dev/berth/test/invariants"
)

// prompt is how long nothing has to change before everything that can be done must have been done: longer than the
// longest back-off, and shorter than the minute after which the scheduler looks at all blocked gangs again, which would
// hide that nothing has woken one.
const prompt = 25 * time.Second

// rest notices when the cluster has come to rest.
type rest struct {
	// changed is when something last changed that decides who can be placed, looked what it was at the last look, both
	// in Unix nanoseconds.
	changed atomic.Int64
	looked  int64
}

// stir starts to wait again.
func (r *rest) stir() { r.changed.Store(time.Now().UnixNano()) }

// observe takes a change that the API has made.
func (r *rest) observe(e memapi.Event) {
	if e.Type != memapi.Modified || matters(e.Old, e.Object) {
		r.stir()
	}
}

// matters says whether a change can decide who can be placed. What the scheduler says of pods and gangs cannot.
func matters(old, object runtime.Object) bool {
	switch after := object.(type) {
	case *v1.Pod:
		before := old.(*v1.Pod)
		return before.Status.Phase != after.Status.Phase ||
			(before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil) ||
			!equality.Semantic.DeepEqual(before.Labels, after.Labels) || !equality.Semantic.DeepEqual(before.Spec, after.Spec)
	case *unstructured.Unstructured:
		before := old.(*unstructured.Unstructured)
		return !equality.Semantic.DeepEqual(before.Object["spec"], after.Object["spec"])
	}
	return true
}

// reached reports, once each time, that nothing has changed for long enough.
func (r *rest) reached() bool {
	changed := r.changed.Load()
	if r.looked == changed || time.Since(time.Unix(0, changed)) < prompt {
		return false
	}
	r.looked = changed
	return true
}

// lookIfAtRest looks for what waits although it fits, once the cluster has come to rest and no pod is on its way out. A
// write that is lost is tried again only when something else happens.
func (w *world) lookIfAtRest() {
	if w.late != nil || w.weather.lostPercent > 0 || w.leaving.any() || !w.rest.reached() {
		return
	}
	if w.late = w.overlooks(); w.late != nil {
		w.late.Detail = fmt.Sprintf("%s after the last change, %s", prompt, w.late.Detail)
	}
}

// first is the fault that was found first, or nil.
func (w *world) first() *invariants.Fault {
	if fault := w.checker.First(); fault != nil {
		return fault
	}
	return w.late
}
