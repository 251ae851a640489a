package informers

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// statusEvery is the least time between two rounds of writes, so that not every pod causes one.
const statusEvery = 2 * time.Second

// StatusLoop writes statuses when they may have changed, if the scheduler leads.
type StatusLoop struct {
	election Election
	pokes    chan struct{}
}

// NewStatusLoop returns a loop that has yet to run.
func NewStatusLoop(election Election) *StatusLoop {
	return &StatusLoop{election: election, pokes: make(chan struct{}, 1)}
}

// Poke notes that some status may have changed.
func (l *StatusLoop) Poke() {
	select {
	case l.pokes <- struct{}{}:
	default:
	}
}

// Run calls write after each Poke, with a pause between two calls, until ctx ends. write reports whether everything was
// written; if not, it is called again. While needed returns false, no object has a status and write is not called.
func (l *StatusLoop) Run(ctx context.Context, synchronized []cache.InformerSynced, needed func() bool,
	write func(context.Context) bool) {
	if !cache.WaitForCacheSync(ctx.Done(), synchronized...) {
		return
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.pokes:
		}
		if !needed() {
			continue
		}
		if !l.election.Leads() || !write(ctx) {
			l.Poke() // again after the pause
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(statusEvery):
		}
	}
}

// PatchStatus writes fields of the status of a custom object. It does nothing if the object was deleted or replaced.
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
