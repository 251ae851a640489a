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
	// probeEvery is the interval of requests that check whether the API server still answers, within probeTimeout.
	probeEvery, probeTimeout = 5 * time.Second, 5 * time.Second
	// unreachable stands in the list of kinds that are left out for a server that does not answer.
	unreachable = "API server"
)

// Read reads once what describes the workloads of namespaces; "" stands for all of them. Pods have to be readable;
// other kinds that are not are left out.
func (s *Store) Read(ctx context.Context, reader *inputs.Reader, namespaces ...string) error {
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
				s.Set(obj)
				return nil
			})
			if err := s.checkRead(k, k.Kind == "Pod", err); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkRead leaves out a kind that the user may not read, unless it is required. A kind that the server does not serve
// has no objects.
func (s *Store) checkRead(kind inputs.Kind, required bool, err error) error {
	switch {
	case err == nil, apierrors.IsNotFound(err) && !required:
		return nil
	case apierrors.IsForbidden(err) && !required:
		s.leaveOut(kind.Resource, plainText(err.Error()))
		return nil
	}
	return fmt.Errorf("reading %s: %w", kind.Resource, err)
}

// Watch reads the cluster, and watches it until ctx ends. It returns when all objects have been read. Nodes and pods
// have to be readable; other kinds that are not are left out.
func (s *Store) Watch(ctx context.Context, reader *inputs.Reader) error {
	kinds, err := reader.Shown(ctx)
	if err != nil {
		return err
	}
	for _, k := range kinds {
		if err := s.checkRead(k, k.Required, reader.Follow(ctx, k, s.handler())); err != nil {
			return err
		}
	}
	if err := reader.Synced(ctx); err != nil {
		return err
	}
	go s.probe(ctx, reader)
	return nil
}

// Source gives the views of a watched cluster what they show.
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

// Source is the watched cluster, as of the moment of each call.
func (s *Store) Source() Source {
	return Source{Cluster: func() *Cluster { return s.Cluster(time.Now()) }, Changed: s.changed,
		PodsOn: func(node string) List { return s.PodsOn(node, time.Now()) }}
}

func (s *Store) handler() cache.ResourceEventHandler {
	set := func(obj any) {
		s.Set(obj)
		s.signal()
	}
	return cache.ResourceEventHandlerFuncs{AddFunc: set, UpdateFunc: func(_, obj any) { set(obj) },
		DeleteFunc: func(obj any) {
			if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = gone.Obj
			}
			s.Delete(obj)
			s.signal()
		}}
}

// signal reports a change on changed, unless one is reported already.
func (s *Store) signal() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// probe checks whether the server answers, until ctx ends: an interrupted watch resumes later without an event.
func (s *Store) probe(ctx context.Context, reader *inputs.Reader) {
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
		err := reader.Answers(asking)
		cancel()
		switch {
		case err == nil && lost != "":
			lost = ""
			s.leaveOut(unreachable, "")
			s.signal()
		case err != nil && lost == "" && ctx.Err() == nil:
			lost = "does not answer since " + time.Now().Format(time.TimeOnly) + ", and what is shown is from then: " +
				plainText(err.Error())
			s.leaveOut(unreachable, lost)
			s.signal()
		}
	}
}

// warningOf converts an event. A series has a time and a count of its own.
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
