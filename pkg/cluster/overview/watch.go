package overview

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"berth.dev/berth/pkg/cluster/inputs"
)

const (
	// probeEvery is how often it is asked whether the API server still answers, and probeTimeout how long it may take.
	probeEvery, probeTimeout = 5 * time.Second, 5 * time.Second
	// unreachable is the name under which it is said that the server does not answer.
	unreachable = "API server"
)

// Read reads once what tells of the workloads of namespaces; "" stands for all of them. Pods have to be readable; what
// else is not is left out.
func (b *Book) Read(ctx context.Context, reader *inputs.Reader, namespaces ...string) error {
	kinds, err := reader.Shown(ctx)
	if err != nil {
		return err
	}
	for _, k := range kinds {
		for i, namespace := range namespaces {
			if k.Kind == "Event" || i > 0 && !k.Namespaced {
				break
			}
			err := reader.List(ctx, k, namespace, func(obj runtime.Object) error {
				b.Set(obj)
				return nil
			})
			if err := b.leaveOut(k, k.Kind == "Pod", err); err != nil {
				return err
			}
		}
	}
	return nil
}

// leaveOut notes that a kind could not be listed. That is an error for one that is required; one that the server does
// not serve has no objects.
func (b *Book) leaveOut(kind inputs.Kind, required bool, err error) error {
	switch {
	case err == nil, apierrors.IsNotFound(err) && !required:
		return nil
	case apierrors.IsForbidden(err) && !required:
		b.LeaveOut(kind.Resource, plainText(err.Error()))
		return nil
	}
	return fmt.Errorf("reading %s: %w", kind.Resource, err)
}

// Watcher keeps a book up to date by watching a cluster. It only reads.
type Watcher struct {
	*Book
	reader  *inputs.Reader
	changed chan struct{}
}

// Watch reads the cluster, and watches it until ctx ends. It returns when all that may be read has been. A cluster
// whose nodes or pods may not be read is an error; what else may not be is left out.
func (b *Book) Watch(ctx context.Context, reader *inputs.Reader) (*Watcher, error) {
	w := &Watcher{Book: b, reader: reader, changed: make(chan struct{}, 1)}
	kinds, err := reader.Shown(ctx)
	if err != nil {
		return nil, err
	}
	for _, k := range kinds {
		if err := w.leaveOut(k, k.Required, reader.Follow(ctx, k, w.handler())); err != nil {
			return nil, err
		}
	}
	if err := reader.Synced(ctx); err != nil {
		return nil, err
	}
	go w.probe(ctx)
	return w, nil
}

// Source is where the views get what they show.
type Source struct {
	// Name of the cluster.
	Name string
	// Cluster is the cluster as it is now, and Changed receives a value after it has changed.
	Cluster func() *Cluster
	Changed <-chan struct{}
	// PodsOn are the pods on a node.
	PodsOn func(node string) List
	// Explain says why a pod, a PodGroup or a workload is where it is or is not, in a table of a given width.
	Explain func(ctx context.Context, kind, namespace, name string, width int) (string, error)
}

// Source is the cluster that is watched, as of the moment of each question.
func (w *Watcher) Source() Source {
	return Source{Cluster: func() *Cluster { return w.Cluster(time.Now()) }, Changed: w.changed,
		PodsOn: func(node string) List { return w.PodsOn(node, time.Now()) }}
}

func (w *Watcher) handler() cache.ResourceEventHandler {
	set := func(obj any) {
		w.Set(obj)
		w.poke()
	}
	return cache.ResourceEventHandlerFuncs{AddFunc: set, UpdateFunc: func(_, obj any) { set(obj) },
		DeleteFunc: func(obj any) {
			if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = gone.Obj
			}
			w.Delete(obj)
			w.poke()
		}}
}

func (w *Watcher) poke() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// probe says whether the server answers, until ctx ends: a watch that is interrupted resumes later, without an event.
func (w *Watcher) probe(ctx context.Context) {
	ticker := time.NewTicker(probeEvery)
	defer ticker.Stop()
	lost := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		asking, cancel := context.WithTimeout(ctx, probeTimeout)
		err := w.reader.Answers(asking)
		cancel()
		switch {
		case err == nil && lost != "":
			lost = ""
			w.LeaveOut(unreachable, "")
			w.poke()
		case err != nil && lost == "" && ctx.Err() == nil:
			lost = "does not answer since " + time.Now().Format(time.TimeOnly) + ", and what is shown is from then: " +
				plainText(err.Error())
			w.LeaveOut(unreachable, lost)
			w.poke()
		}
	}
}

// warningOf reads an event. A series has a time and a count of its own.
func warningOf(e *v1.Event) Warning {
	w := Warning{Time: e.LastTimestamp.Time, Namespace: e.InvolvedObject.Namespace, Object: e.InvolvedObject.Kind + "/" +
		e.InvolvedObject.Name,
		Reason: e.Reason, Message: e.Message, Count: max(1, e.Count)}
	if e.Series != nil {
		w.Time, w.Count = e.Series.LastObservedTime.Time, e.Series.Count
	}
	for _, at := range []time.Time{e.EventTime.Time, e.CreationTimestamp.Time} {
		if w.Time.IsZero() {
			w.Time = at
		}
	}
	return w
}
