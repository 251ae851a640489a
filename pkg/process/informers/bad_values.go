package informers

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/wellknown"
)

// badValueReporter remembers what was reported, so that a bad value is news once and not at every heartbeat of its node
// or once for each profile of the scheduler.
type badValueReporter struct {
	mu sync.Mutex
	// reported holds, for each scope and node, the messages that still hold.
	reported map[reportKey]map[string]bool
}

type reportKey struct{ scope, node string }

// BadNodeValues records one warning event on a node for each bad value when it is first seen.
type BadNodeValues struct {
	*badValueReporter
	scope    string
	recorder events.EventRecorder
}

// NewBadNodeValues returns a reporter of bad values. Scope keeps those that different plugins read apart.
func NewBadNodeValues(handle fwk.Handle, scope string) (*BadNodeValues, error) {
	r, err := Shared(handle.SharedInformerFactory(), func() (*badValueReporter, error) {
		return &badValueReporter{reported: map[reportKey]map[string]bool{}}, nil
	})
	if err != nil {
		return nil, err
	}
	return &BadNodeValues{r, scope, handle.EventRecorder()}, nil
}

// WatchBadNodeValues calls check for every node that appears or changes and reports what it finds. Check must depend on
// the node alone. Of several watches of the same scope in a scheduler only the first is kept.
func WatchBadNodeValues(handle fwk.Handle, scope string, check func(*v1.Node) []*wellknown.BadValue) error {
	factory := handle.SharedInformerFactory()
	values, err := NewBadNodeValues(handle, scope)
	if err != nil {
		return err
	}
	_, err = SharedBy(factory, scope, func() (cache.ResourceEventHandlerRegistration, error) {
		return Handle(factory, factory.Core().V1().Nodes().Informer(), Events(
			func(_, node *v1.Node) { values.Report(node, check(node)) },
			func(node *v1.Node) { values.Forget(node.Name) },
		))
	})
	if err != nil {
		return fmt.Errorf("watching nodes for bad values: %w", err)
	}
	return nil
}

// Report takes note of all bad values of a node, and records those that are new.
func (b *BadNodeValues) Report(node *v1.Node, bad []*wellknown.BadValue) {
	for _, message := range b.news(b.scope, node.Name, bad) {
		b.recorder.Eventf(node, nil, v1.EventTypeWarning, "InvalidValue", "Reading", "%s", message)
	}
}

// Forget forgets a node that is gone.
func (b *BadNodeValues) Forget(node string) { b.forget(b.scope, node) }

// news replaces what is known to be bad on a node and returns, sorted, the messages that are new.
func (r *badValueReporter) news(scope, node string, bad []*wellknown.BadValue) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := reportKey{scope: scope, node: node}
	if len(bad) == 0 {
		delete(r.reported, key)
		return nil
	}
	before, now, fresh := r.reported[key], map[string]bool{}, map[string]bool{}
	for _, b := range bad {
		message := b.Error() + "; " + cmp.Or(b.Effect, "treated as absent")
		now[message] = true
		if !before[message] {
			fresh[message] = true
		}
	}
	r.reported[key] = now
	return slices.Sorted(maps.Keys(fresh))
}

func (r *badValueReporter) forget(scope, node string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.reported, reportKey{scope: scope, node: node})
}
