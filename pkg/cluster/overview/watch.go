package overview

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"berth.dev/berth/pkg/cluster/inputs"
	"berth.dev/berth/pkg/screen/command"
)

const (
	// probeEvery is how often it is asked whether the API server still answers, and probeTimeout how long it may take.
	probeEvery, probeTimeout = 5 * time.Second, 5 * time.Second
	// unreachable is the name under which it is said that the server does not answer.
	unreachable = "API server"
)

// Watcher keeps a book up to date by watching a cluster. It only reads.
type Watcher struct {
	*Book
	// Progress, when set, is told of each kind that has been read, with the number of objects.
	Progress func(kind string, objects int)

	config  *rest.Config
	client  kubernetes.Interface
	changed chan struct{}
}

// NewWatcher makes a watcher of the cluster that config reaches.
func NewWatcher(config *rest.Config, book *Book) (*Watcher, error) {
	original := config
	config = rest.CopyConfig(config)
	config.ContentType, config.AcceptContentTypes = "application/vnd.kubernetes.protobuf",
		"application/vnd.kubernetes.protobuf,application/json"
	if config.QPS == 0 {
		config.QPS, config.Burst = 50, 100 // the pages of the first lists follow each other
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making the API client: %w", err)
	}
	return &Watcher{Book: book, config: original, client: client, changed: make(chan struct{}, 1)}, nil
}

// Changed receives a value after the cluster has changed.
func (w *Watcher) Changed() <-chan struct{} { return w.changed }

// Start reads the cluster, and watches it until ctx ends. It returns when all that may be read has been. A cluster
// whose nodes or pods may not be read is an error; what else may not be is left out.
func (w *Watcher) Start(ctx context.Context) error {
	type reader struct {
		name     string
		store    cache.Store
		informer cache.Controller
	}
	var readers []reader
	kinds, err := readKinds(w.config, w.client, metav1.NamespaceAll)
	if err != nil {
		return err
	}
	for i := range kinds {
		k := &kinds[i]
		_, err := k.source.ListWithContext(ctx, metav1.ListOptions{Limit: 1})
		if skip, err := w.skipped(k.name, k.name == "nodes" || k.name == "pods", err); skip || err != nil {
			if err != nil {
				return err
			}
			continue
		}
		store, informer := cache.NewInformerWithOptions(cache.InformerOptions{
			ListerWatcher: k.source, ObjectType: k.object, Handler: w.handler(), Transform: k.transform,
		})
		go informer.RunWithContext(ctx)
		readers = append(readers, reader{k.name, store, informer})
	}
	for _, r := range readers {
		if !cache.WaitForCacheSync(ctx.Done(), r.informer.HasSynced) {
			return fmt.Errorf("reading %s: %w", r.name, context.Cause(ctx))
		}
		if w.Progress != nil {
			w.Progress(r.name, len(r.store.ListKeys()))
		}
	}
	go w.probe(ctx)
	return nil
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
		_, err := w.client.CoreV1().Nodes().List(asking, metav1.ListOptions{Limit: 1})
		cancel()
		switch {
		case err == nil && lost != "":
			lost = ""
			w.LeaveOut(unreachable, "")
			w.poke()
		case err != nil && lost == "" && ctx.Err() == nil:
			lost = "does not answer since " + time.Now().Format(time.TimeOnly) + ", and what is shown is from then: " +
				command.OneLine(err)
			w.LeaveOut(unreachable, lost)
			w.poke()
		}
	}
}

// What is not shown is not kept: with 50,000 pods it would be most of the memory.

func trimPod(obj any) (any, error) {
	pod, ok := obj.(*v1.Pod)
	if !ok {
		return obj, nil
	}
	kept := inputs.KeepPod(pod)
	kept.ResourceVersion = pod.ResourceVersion
	return kept, nil
}

func trimNode(obj any) (any, error) {
	node, ok := obj.(*v1.Node)
	if !ok {
		return obj, nil
	}
	kept := inputs.KeepNode(node)
	kept.Status.Images, kept.ResourceVersion = nil, node.ResourceVersion
	return kept, nil
}

func trimEvent(obj any) (any, error) {
	e, ok := obj.(*v1.Event)
	if !ok {
		return obj, nil
	}
	return &v1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: e.Name, UID: e.UID,
		ResourceVersion: e.ResourceVersion, CreationTimestamp: e.CreationTimestamp},
		InvolvedObject: v1.ObjectReference{Kind: e.InvolvedObject.Kind, Namespace: e.InvolvedObject.Namespace,
			Name: e.InvolvedObject.Name}, Reason: e.Reason, Message: e.Message, Count: e.Count,
		LastTimestamp: e.LastTimestamp, EventTime: e.EventTime, Series: e.Series}, nil
}

func trim(obj any) (any, error) {
	if m, ok := obj.(metav1.Object); ok {
		m.SetManagedFields(nil)
	}
	return obj, nil
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
