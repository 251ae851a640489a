package overview

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/command"
	"berth.dev/berth/pkg/informers"
	"berth.dev/berth/pkg/inputs"
)

const (
	// probeEvery is how often it is asked whether the API server still answers, and probeTimeout how long it may take.
	probeEvery, probeTimeout = 5 * time.Second, 5 * time.Second
	// unreachable is the name under which it is said that the server does not answer.
	unreachable = "API server"
)

// podGroups is the kind of PodGroups as a reader of them sees it.
var podGroups = informers.CustomKind{
	Resource:    schedulingv1alpha1.SchemeGroupVersion.WithResource("podgroups"),
	AddToScheme: schedulingv1alpha1.AddToScheme,
	Object:      &schedulingv1alpha1.PodGroup{},
	List:        &schedulingv1alpha1.PodGroupList{},
	Reader:      "berth",
	Unread:      "gangs are shown by their pods alone",
}

// kind is a kind that is watched.
type kind struct {
	name   string
	object runtime.Object
	source cache.ListerWatcher
	// probe says whether the kind may be read; nil for a kind that is empty then.
	probe func(context.Context) error
	// required kinds make up the picture.
	required  bool
	transform cache.TransformFunc
	set       func(obj any)
	gone      func(obj any)
}

// Watcher keeps a book up to date by watching a cluster. It only reads.
type Watcher struct {
	*Book
	// Progress, when set, is told of each kind that has been read, with the number of objects.
	Progress func(kind string, objects int)

	client  kubernetes.Interface
	kueue   dynamic.Interface
	kinds   []kind
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
	groups, err := informers.NewCustomClient(config, podGroups)
	if err != nil {
		return nil, err
	}
	kueue, err := dynamic.NewForConfig(rest.CopyConfig(original))
	if err != nil {
		return nil, fmt.Errorf("making the client of Kueue's objects and of groups: %w", err)
	}
	w := &Watcher{Book: book, client: client, kueue: kueue, changed: make(chan struct{}, 1)}
	one := metav1.ListOptions{Limit: 1}
	core, resources := client.CoreV1().RESTClient(), client.ResourceV1().RESTClient()
	w.kinds = []kind{
		{name: "nodes", object: &v1.Node{}, source: cache.NewListWatchFromClient(core, "nodes", "", fields.Everything()),
			required:  true,
			probe:     func(ctx context.Context) error { _, err := client.CoreV1().Nodes().List(ctx, one); return err },
			transform: trimNode,
			set:       func(obj any) { book.SetNode(obj.(*v1.Node)) },
			gone:      func(obj any) { book.DeleteNode(obj.(*v1.Node).Name) }},
		{name: "pods", object: &v1.Pod{}, source: cache.NewListWatchFromClient(core, "pods", "", fields.Everything()),
			required:  true,
			probe:     func(ctx context.Context) error { _, err := client.CoreV1().Pods("").List(ctx, one); return err },
			transform: trimPod,
			set:       func(obj any) { book.SetPod(obj.(*v1.Pod)) }, gone: func(obj any) { book.DeletePod(obj.(*v1.Pod).UID) }},
		{name: "podgroups", object: &schedulingv1alpha1.PodGroup{}, source: informers.NewCustomListWatch(groups, podGroups),
			transform: trim, set: func(obj any) { book.SetPodGroup(obj.(*schedulingv1alpha1.PodGroup)) },
			gone: func(obj any) {
				book.DeletePodGroup(obj.(*schedulingv1alpha1.PodGroup).Namespace, obj.(*schedulingv1alpha1.PodGroup).Name)
			}},
		{name: "resourceslices", object: &resourcev1.ResourceSlice{},
			source: cache.NewListWatchFromClient(resources, "resourceslices", "", fields.Everything()),
			probe: func(ctx context.Context) error {
				_, err := client.ResourceV1().ResourceSlices().List(ctx, one)
				return err
			},
			transform: trim,
			set:       func(obj any) { book.SetSlice(obj.(*resourcev1.ResourceSlice)) },
			gone:      func(obj any) { book.DeleteSlice(obj.(*resourcev1.ResourceSlice).Name) }},
		{name: "resourceclaims", object: &resourcev1.ResourceClaim{},
			source: cache.NewListWatchFromClient(resources, "resourceclaims", "", fields.Everything()),
			probe: func(ctx context.Context) error {
				_, err := client.ResourceV1().ResourceClaims("").List(ctx, one)
				return err
			},
			transform: trim,
			set:       func(obj any) { book.SetClaim(obj.(*resourcev1.ResourceClaim)) },
			gone:      func(obj any) { book.DeleteClaim(obj.(*resourcev1.ResourceClaim).UID) }},
		{name: "jobs", object: &batchv1.Job{},
			source:    cache.NewListWatchFromClient(client.BatchV1().RESTClient(), "jobs", "", fields.Everything()),
			probe:     func(ctx context.Context) error { _, err := client.BatchV1().Jobs("").List(ctx, one); return err },
			transform: trim,
			set:       func(obj any) { book.SetJob(obj.(*batchv1.Job)) },
			gone:      func(obj any) { book.DeleteJob(obj.(*batchv1.Job)) }},
		{name: "events", object: &v1.Event{},
			source: cache.NewListWatchFromClient(core, "events", "",
				fields.OneTermEqualSelector("type", v1.EventTypeWarning)),
			probe:     func(ctx context.Context) error { _, err := client.CoreV1().Events("").List(ctx, one); return err },
			transform: trimEvent,
			set:       func(obj any) { book.AddWarning(warningOf(obj.(*v1.Event))) }, gone: func(any) {}},
	}
	return w, nil
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
	queues, err := w.otherKinds()
	if err != nil {
		return err
	}
	for _, k := range append(queues, w.kinds...) {
		if k.probe != nil {
			err := k.probe(ctx)
			switch {
			case err == nil:
			case apierrors.IsNotFound(err) && !k.required:
				continue // the server does not serve it, so there are none
			case apierrors.IsForbidden(err) && !k.required:
				w.LeaveOut(k.name, command.OneLine(err))
				continue
			default:
				return fmt.Errorf("listing %s: %w", k.name, err)
			}
		}
		store, informer := cache.NewInformerWithOptions(cache.InformerOptions{
			ListerWatcher: k.source, ObjectType: k.object, Handler: w.handler(&k), Transform: k.transform,
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

// otherKinds are those that are read where the server has them.
func (w *Watcher) otherKinds() ([]kind, error) {
	resources, err := otherResources(w.client.Discovery())
	var kinds []kind
	for _, r := range resources {
		client := w.kueue.Resource(r)
		kinds = append(kinds, kind{
			name: r.Resource, object: &unstructured.Unstructured{}, transform: trim,
			source: &cache.ListWatch{
				ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
					return client.List(ctx, options)
				},
				WatchFuncWithContext: client.Watch,
			},
			probe: func(ctx context.Context) error {
				_, err := client.List(ctx, metav1.ListOptions{Limit: 1})
				return err
			},
			set:  func(obj any) { w.SetOther(obj.(*unstructured.Unstructured)) },
			gone: func(obj any) { w.DeleteOther(obj.(*unstructured.Unstructured)) },
		})
	}
	return kinds, err
}

func (w *Watcher) handler(k *kind) cache.ResourceEventHandler {
	set := func(obj any) {
		k.set(obj)
		w.poke()
	}
	return cache.ResourceEventHandlerFuncs{AddFunc: set, UpdateFunc: func(_, obj any) { set(obj) },
		DeleteFunc: func(obj any) {
			if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = gone.Obj
			}
			k.gone(obj)
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
