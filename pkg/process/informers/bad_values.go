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

// BadNodeValues records one warning event on a node for each bad value, and not one at every heartbeat of the node.
type BadNodeValues struct {
	recorder events.EventRecorder

	mu sync.Mutex
	// reported holds, for each node, the messages that still hold.
	reported map[string]map[string]bool
}

// NewBadNodeValues returns a reporter of bad values, which profiles must share.
func NewBadNodeValues(handle fwk.Handle) *BadNodeValues {
	return &BadNodeValues{recorder: handle.EventRecorder(), reported: map[string]map[string]bool{}}
}

// WatchBadNodeValues calls check for every node that is added or changed, and reports what it returns. check must
// depend on the node alone. A scheduler keeps only the first watch of each scope.
func WatchBadNodeValues(handle fwk.Handle, scope string, check func(*v1.Node) []*wellknown.BadValue) error {
	factory := handle.SharedInformerFactory()
	_, err := SharedBy(factory, scope, func() (cache.ResourceEventHandlerRegistration, error) {
		values := NewBadNodeValues(handle)
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

// Report replaces the known bad values of a node, and records an event for each new one.
func (b *BadNodeValues) Report(node *v1.Node, bad []*wellknown.BadValue) {
	for _, message := range b.news(node.Name, bad) {
		b.recorder.Eventf(node, nil, v1.EventTypeWarning, "InvalidValue", "Reading", "%s", message)
	}
}

// Forget forgets a node that was deleted.
func (b *BadNodeValues) Forget(node string) { b.news(node, nil) }

// news replaces what is known to be bad on a node and returns, sorted, the messages that are new.
func (b *BadNodeValues) news(node string, bad []*wellknown.BadValue) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(bad) == 0 {
		delete(b.reported, node)
		return nil
	}
	before, now, fresh := b.reported[node], map[string]bool{}, map[string]bool{}
	for _, value := range bad {
		message := value.Error() + "; " + cmp.Or(value.Effect, "treated as absent")
		now[message] = true
		if !before[message] {
			fresh[message] = true
		}
	}
	b.reported[node] = now
	return slices.Sorted(maps.Keys(fresh))
}
