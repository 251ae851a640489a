package informers

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

const (
	// statusEvery is the least time between two rounds of writing, so that a stream of pods is not one of writes as
	// well.
	statusEvery = 2 * time.Second
	// electionGrace is how long after its informers have synced a scheduler without a leader election counts as one
	// that leads if it has had no cycle.
	electionGrace = 10 * time.Second
	// leadingEvery is how often a process that waits to lead looks whether it does.
	leadingEvery = 200 * time.Millisecond
)

// Leader tells whether this scheduler leads. The zero Leader does not know yet.
type Leader struct{ leading atomic.Bool }

// Schedules notes a scheduling cycle, which only the leader has.
func (l *Leader) Schedules() {
	if !l.leading.Load() {
		l.leading.Store(true)
	}
}

// Leads reports whether this scheduler leads, by its cycles or by its leader election. A scheduler without an
// election leads some time after its informers have synced.
func (l *Leader) Leads(synced time.Time) bool {
	if l.leading.Load() {
		return true
	}
	elected, running := Leads()
	if !elected && (running || time.Since(synced) < electionGrace) {
		return false
	}
	l.leading.Store(true)
	return true
}

// Leading reports whether this scheduler is known to lead.
func (l *Leader) Leading() bool { return l.leading.Load() }

// Await returns true once the informers have synced and this scheduler leads, false if ctx is done before.
func (l *Leader) Await(ctx context.Context, informers ...cache.DoneChecker) bool {
	if !cache.WaitFor(ctx, "", informers...) {
		return false
	}
	synced := time.Now()
	return wait.PollUntilContextCancel(ctx, leadingEvery, true,
		func(context.Context) (bool, error) { return l.Leads(synced), nil }) == nil
}

// StatusLoop has statuses written when they may have changed, by the scheduler that leads.
type StatusLoop struct {
	Leader
	pokes chan struct{}
}

// NewStatusLoop returns a loop that has yet to run.
func NewStatusLoop() *StatusLoop { return &StatusLoop{pokes: make(chan struct{}, 1)} }

// Poke notes that some status may have changed.
func (l *StatusLoop) Poke() {
	select {
	case l.pokes <- struct{}{}:
	default:
	}
}

// Run calls write after each poke, with a pause between two calls, until ctx ends. Write reports whether all is
// written. While needed reports that no object has a status, the loop only waits.
func (l *StatusLoop) Run(ctx context.Context, synchronized []cache.InformerSynced, needed func() bool,
	write func(context.Context) bool) {
	if !cache.WaitForCacheSync(ctx.Done(), synchronized...) {
		return
	}
	synced := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.pokes:
		}
		if !needed() {
			continue
		}
		if !l.Leads(synced) || !write(ctx) {
			l.Poke() // again after the pause
		}
		pause := time.NewTimer(statusEvery)
		select {
		case <-ctx.Done():
			pause.Stop()
			return
		case <-pause.C:
		}
	}
}

// PatchStatus writes fields of the status of a custom object. An object that has gone, or that another one has taken
// the name of, is left alone.
func PatchStatus(ctx context.Context, client restclient.Interface, kind CustomKind, object metav1.Object,
	status map[string]any) error {
	what := kind.Resource.GroupResource().String() + " " + object.GetName()
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": object.GetUID()}, "status": status})
	if err != nil {
		return fmt.Errorf("encoding the status of %s: %w", what, err)
	}
	err = client.Patch(types.MergePatchType).Resource(kind.Resource.Resource).Name(object.GetName()).SubResource(
		"status").Body(data).Do(ctx).Error()
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("writing the status of %s: %w", what, err)
	}
	return nil
}
