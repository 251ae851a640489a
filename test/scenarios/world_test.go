package scenarios_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

const (
	// groupLabel makes a pod a member of a PodGroup.
	groupLabel = "scheduling.x-k8s.io/pod-group"
	// setLabel marks the pods of one `pods` command, scenarioLabel the nodes and pods of one scenario.
	setLabel      = "scenario.test/set"
	scenarioLabel = "scenario.test/name"
	// partialLimit is how long a gang may be seen partly bound, unless the scenario says otherwise.
	partialLimit = 2 * time.Second
	lookEvery    = 100 * time.Millisecond
	// waitForControllers is how long the controllers may take to see what a scenario creates.
	waitForControllers = 20 * time.Second
)

var podGroups = schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "podgroups"}

// world is one scenario's part of the shared cluster: nodes of its own, which only its pods select, and namespaces.
type world struct {
	t       *testing.T
	name    string
	cluster cluster
	client  kubernetes.Interface
	dynamic dynamic.Interface
	// slack multiplies limits of time.
	slack int
	// writes is what the scenario has changed that the scheduler may not have heard of.
	writes *writes
	// groups, by namespace, and nodes are read from what informers hold.
	groups map[string]cache.GenericLister
	nodes  corelisters.NodeLister

	mu sync.Mutex
	// pods holds the scenario's pods by namespace/name as last looked at, minimum the minimum of every gang.
	pods    map[string]*v1.Pod
	minimum map[string]int
	// labelled are the gangs whose minimum is known by labels alone.
	labelled map[string]bool
	// partialFor is how long a gang has been seen partly bound while a scheduler led, looked when that was last counted,
	// both by the time of the machine; lostAt is when no scheduler led any more, zero while one does.
	partialFor map[string]time.Duration
	looked     time.Duration
	lostAt     time.Time
	exempt     map[string]bool
	// terminateAfter is how long pods that are deleted take to go, by set; that of "" holds for all others.
	terminateAfter map[string]time.Duration
	// patience is how long a gang may be seen partly bound.
	patience time.Duration
	lister   corelisters.PodLister
	// gone counts pods by set that were not deleted by the scenario.
	gone map[string]int
	mine map[types.UID]bool
	made map[string]int
	// created, bound and deleted are when a pod was created, first seen bound, and first seen terminating, by the time of
	// the machine.
	created, bound, deleted map[types.UID]time.Duration
	// nextGroup is when the next second begins after the group that a script created last, by the clock of the API server.
	nextGroup time.Time
	// youngest is the creation time of the pod that was created last.
	youngest time.Time
	// disks counts the volumes that were created.
	disks int
	// streams ends the streams of pods by their sets.
	streams map[string]context.CancelFunc
	// background counts what runs besides the script.
	background sync.WaitGroup
	// namespaces holds those that exist; only the script's own goroutine uses it.
	namespaces map[string]bool
	// clusterWide removes objects without a namespace.
	clusterWide []func(context.Context)
	// counts is how many plans and tries there had been when they were counted.
	counts map[string]int
}

func newWorld(t *testing.T, c cluster, name string) (*world, error) {
	config, err := c.config()
	if err != nil {
		return nil, err
	}
	written := &writes{}
	written.through(config)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	dyn, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &world{t: t, name: name, cluster: c, slack: 1, counts: map[string]int{}, writes: written, client: client,
		dynamic: dyn,
		pods:    map[string]*v1.Pod{}, minimum: map[string]int{},
		labelled: map[string]bool{}, partialFor: map[string]time.Duration{}, exempt: map[string]bool{},
		gone: map[string]int{},
		mine: map[types.UID]bool{}, made: map[string]int{}, namespaces: map[string]bool{},
		terminateAfter: map[string]time.Duration{}, patience: partialLimit,
		streams: map[string]context.CancelFunc{}, created: map[types.UID]time.Duration{},
		bound:   map[types.UID]time.Duration{},
		deleted: map[types.UID]time.Duration{}}, nil
}

// locate splits "b/name" into the namespace that the scenario calls b and name.
func (w *world) locate(ident string) (namespace, name string) {
	if other, name, ok := strings.Cut(ident, "/"); ok {
		return w.name + "-" + other, name
	}
	return w.name, ident
}

func setOf(ident string) string { return strings.ReplaceAll(ident, "/", "-") }

func (w *world) namespace(ctx context.Context, name string) error {
	if w.namespaces[name] {
		return nil
	}
	w.namespaces[name] = true
	_, err := w.client.CoreV1().Namespaces().Create(ctx, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}},
		metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// listen lets informers follow what the scenario asks about, until ctx is done, and returns when they know all of it.
func (w *world) listen(ctx context.Context) error {
	factory := informers.NewSharedInformerFactoryWithOptions(w.client, 0,
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.LabelSelector = scenarioLabel + "=" + w.name
		}))
	w.lister, w.nodes = factory.Core().V1().Pods().Lister(), factory.Core().V1().Nodes().Lister()
	if _, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: w.noteBound, UpdateFunc: func(_, now any) { w.noteBound(now) },
		DeleteFunc: w.noteDeleted(v1.Resource("pods"))}); err != nil {
		return fmt.Errorf("watching pods: %w", err)
	}
	if _, err := factory.Core().V1().Nodes().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		DeleteFunc: w.noteDeleted(v1.Resource("nodes"))}); err != nil {
		return fmt.Errorf("watching nodes: %w", err)
	}
	w.groups = map[string]cache.GenericLister{}
	for _, namespace := range []string{w.name, w.name + "-b"} {
		groups := dynamicinformer.NewFilteredDynamicSharedInformerFactory(w.dynamic, 0, namespace, nil)
		of := groups.ForResource(podGroups)
		w.groups[namespace] = of.Lister()
		if _, err := of.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
			DeleteFunc: w.noteDeleted(podGroups.GroupResource())}); err != nil {
			return fmt.Errorf("watching PodGroups: %w", err)
		}
		groups.Start(ctx.Done())
		groups.WaitForCacheSync(ctx.Done())
		w.background.Go(func() {
			<-ctx.Done()
			groups.Shutdown()
		})
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	w.background.Go(func() {
		<-ctx.Done()
		factory.Shutdown()
	})
	return ctx.Err()
}

// watch looks at the scenario's pods ten times a second until ctx is done: it checks the invariant, and does what a
// kubelet would: bound pods run, deleted pods go away after a while.
func (w *world) watch(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		list, err := w.lister.List(labels.Everything())
		if err != nil {
			continue
		}
		w.look(list, w.led(ctx), w.cluster.now())
		for _, pod := range list {
			w.kubelet(ctx, pod)
		}
	}
}

// noteBound notes when a pod is seen bound for the first time.
func (w *world) noteBound(o any) {
	pod, ok := o.(*v1.Pod)
	if !ok || pod.Spec.NodeName == "" {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.bound[pod.UID]; !ok {
		w.bound[pod.UID] = w.cluster.now()
	}
}

// waited returns how long the pod was, or has been, pending.
func (w *world) waited(pod *v1.Pod) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	until, ok := w.bound[pod.UID]
	if !ok {
		until = w.cluster.now()
	}
	return until - w.created[pod.UID]
}

func (w *world) look(pods []*v1.Pod, led bool, now time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	passed := time.Duration(0)
	if led && w.looked > 0 {
		passed = now - w.looked
	}
	w.looked = 0
	if led {
		w.looked = now
	}
	before := w.pods
	w.pods = map[string]*v1.Pod{}
	placed := map[string]int{}
	for _, pod := range pods {
		key := pod.Namespace + "/" + pod.Name
		w.pods[key] = pod
		if old := before[key]; old != nil && old.UID != pod.UID && !w.mine[old.UID] {
			w.gone[old.Labels[setLabel]]++
		}
		delete(before, key)
		if group := groupOf(pod); group != "" && counts(pod) {
			placed[pod.Namespace+"/"+group]++
		}
	}
	for _, old := range before {
		if !w.mine[old.UID] {
			w.gone[old.Labels[setLabel]]++
		}
	}
	for group, minimum := range w.minimum {
		if n := placed[group]; n == 0 || n >= minimum || w.exempt[group] {
			delete(w.partialFor, group)
			continue
		}
		if w.partialFor[group] += passed; w.partialFor[group] > w.slacken(w.patience) {
			w.t.Errorf("gang %s shows %d of %d members bound for %s", group, placed[group], minimum,
				w.partialFor[group].Round(lookEvery))
			w.exempt[group] = true
		}
	}
}

// counts reports whether the pod counts towards its gang's minimum.
func counts(pod *v1.Pod) bool {
	return pod.Status.Phase == v1.PodSucceeded ||
		(pod.Spec.NodeName != "" && pod.DeletionTimestamp == nil && pod.Status.Phase != v1.PodFailed)
}

// ending is how long a pod of the set takes to go. The lock is held.
func (w *world) ending(set string) time.Duration {
	if after, ok := w.terminateAfter[set]; ok {
		return after
	}
	return w.terminateAfter[""]
}

// grace is the grace period of a pod of the set, in seconds: if it takes its time, more than that can be on any
// machine.
func (w *world) grace(set string) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ending(set) > 0 {
		return 600
	}
	return 1
}

// terminates reports whether the pod, which is being deleted, still has a while to run.
func (w *world) terminates(pod *v1.Pod) bool {
	now := w.cluster.now()
	w.mu.Lock()
	defer w.mu.Unlock()
	since, ok := w.deleted[pod.UID]
	if !ok {
		since, w.deleted[pod.UID] = now, now
	}
	return pod.Spec.NodeName != "" && now-since < w.ending(pod.Labels[setLabel])
}

func (w *world) kubelet(ctx context.Context, pod *v1.Pod) {
	switch {
	case pod.DeletionTimestamp != nil:
		if w.terminates(pod) {
			return
		}
		_ = w.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
			GracePeriodSeconds: ptr.To[int64](0), Preconditions: &metav1.Preconditions{UID: &pod.UID}})
	case pod.Spec.NodeName != "" && pod.Status.Phase == v1.PodPending:
		// A pod that has ended since it was looked at must not run again.
		_, _ = w.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType,
			fmt.Appendf(nil, `{"metadata":{"resourceVersion":%q},"status":{"phase":%q}}`, pod.ResourceVersion, v1.PodRunning), metav1.PatchOptions{}, "status")
	}
}

func (w *world) phase(ctx context.Context, pod *v1.Pod, phase v1.PodPhase) {
	_, _ = w.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType,
		[]byte(`{"status":{"phase":"`+string(phase)+`"}}`), metav1.PatchOptions{}, "status")
}

// set returns the pods of one set, as last looked at.
func (w *world) set(set string) []*v1.Pod {
	w.mu.Lock()
	defer w.mu.Unlock()
	var pods []*v1.Pod
	for _, p := range w.pods {
		if p.Labels[setLabel] == setOf(set) {
			pods = append(pods, p)
		}
	}
	return pods
}

// group returns a PodGroup as informers know it.
func (w *world) group(ident string) (*unstructured.Unstructured, error) {
	namespace, name := w.locate(ident)
	groups := w.groups[namespace]
	if groups == nil {
		return nil, fmt.Errorf("PodGroups of %s are not watched: a scenario has its own namespace, and b", namespace)
	}
	obj, err := groups.ByNamespace(namespace).Get(name)
	if err != nil {
		return nil, err
	}
	return obj.(*unstructured.Unstructured), nil
}
