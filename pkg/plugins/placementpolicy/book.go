package placementpolicy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/lru"

	placementv1alpha1 "berth.dev/berth/pkg/apis/placement/v1alpha1"
	"berth.dev/berth/pkg/clusterwide"
	"berth.dev/berth/pkg/informers"
	"berth.dev/berth/pkg/policy"
	"berth.dev/berth/pkg/wellknown"
)

// maxDemands bounds how many pods' demands are remembered.
const maxDemands = 4096

// policyKind is the kind of placement policies.
var policyKind = informers.CustomKind{
	Resource:    placementv1alpha1.SchemeGroupVersion.WithResource("placementpolicies"),
	AddToScheme: placementv1alpha1.AddToScheme,
	Object:      &placementv1alpha1.PlacementPolicy{},
	List:        &placementv1alpha1.PlacementPolicyList{},
	Reader:      Name,
	Unread:      "no placement policy holds, and pods that ask for licenses stay pending",
}

// book is what all profiles share: the rules of the moment, and who holds licenses.
type book struct {
	handle fwk.Handle
	sources
	ledger policy.Ledger
	wide   *clusterwide.Book
	status *statusWriter
	told   *lru.Cache
	// nominated are pods for which others were evicted, by UID.
	nominated sync.Map

	// view is nil until the policies are known.
	view     atomic.Pointer[view]
	building sync.Mutex
	changes
}

// sources are what the book reads.
type sources struct {
	policies   cache.SharedIndexInformer
	pods       corelisters.PodLister
	nodes      corelisters.NodeLister
	namespaces corelisters.NamespaceLister
	byNode     *informers.ByNode[atomic.Pointer[marked]]
	synced     []cache.InformerSynced
}

// changes are those of policies and namespaces that the loop has to look at.
type changes struct {
	// changed wakes the loop.
	changed chan struct{}
	mu      sync.Mutex
	// stale is set while there are changes that the view does not have, wake are namespaces whose pods are to be tried.
	stale bool
	wake  map[string]bool
}

// view is the rules of all policies at one time, with what was worked out by them.
type view struct {
	set *policy.Set
	// none is the demand of a pod that no rule concerns, where there are no rules.
	none *policy.Demand
	// marks are those of the nodes that there are when the view is made, until they are with the nodes.
	marks atomic.Pointer[map[*v1.Node]*policy.Marks]
	// demands are those of pods, by podVersion.
	demands  *lru.Cache
	problems map[string]field.ErrorList
	policies []*placementv1alpha1.PlacementPolicy
}

// marked is what is kept of a node.
type marked struct {
	set   *policy.Set
	marks *policy.Marks
}

type podVersion struct {
	uid     types.UID
	version string
}

func newBook(ctx context.Context, handle fwk.Handle) (*book, error) {
	factory := handle.SharedInformerFactory()
	policies, client, err := informers.Custom(factory, handle.KubeConfig(), policyKind)
	if err != nil {
		return nil, err
	}
	wide, err := clusterwide.Of(factory)
	if err != nil {
		return nil, err
	}
	core := factory.Core().V1()
	byNode, err := informers.NewByNode[atomic.Pointer[marked]](factory)
	if err != nil {
		return nil, err
	}
	b := &book{handle: handle, wide: wide, told: lru.New(maxDemands),
		sources: sources{policies: policies, pods: core.Pods().Lister(), nodes: core.Nodes().Lister(),
			namespaces: core.Namespaces().Lister(), byNode: byNode},
		changes: changes{changed: make(chan struct{}, 1), wake: map[string]bool{}}}
	b.status = newStatusWriter(b, client, handle.EventRecorder())
	if err := b.watch(factory); err != nil {
		return nil, err
	}
	published.Publish(ctx, b)
	go b.run(ctx)
	go b.status.run(ctx)
	return b, nil
}

// current returns the rules of the moment. The scheduler has read all policies before its first cycle.
func (b *book) current() *view {
	if v := b.view.Load(); v != nil {
		return v
	}
	v, _, _ := b.build(true)
	return v
}

// build makes a view of the policies that the informer has, and returns it and the one that it replaces, or nil, and
// whether licenses are free that were not. If there has to be no view yet, one that there is stays.
func (b *book) build(first bool) (now, before *view, freed bool) {
	b.building.Lock()
	defer b.building.Unlock()
	before = b.view.Load()
	if first && before != nil {
		return before, before, false
	}
	b.mu.Lock()
	b.stale = false
	b.mu.Unlock()
	v, marks := &view{demands: lru.New(maxDemands)}, map[*v1.Node]*policy.Marks{}
	for _, obj := range b.policies.GetStore().List() {
		v.policies = append(v.policies, obj.(*placementv1alpha1.PlacementPolicy))
	}
	v.set, v.problems = policy.NewSet(v.policies)
	v.none = v.set.DemandOf(&v1.Pod{}, nil)
	if !v.set.Empty() {
		nodes, _ := b.nodes.List(labels.Everything()) // a lister of a cache has no errors
		for _, node := range nodes {
			marks[node] = v.set.MarksOf(node)
		}
	}
	v.marks.Store(&marks)
	demands := b.demandsOfBound(v)
	freed = b.ledger.Rebuild(v.set, func() []policy.Holder { return b.bound(v, demands) },
		func(pod *v1.Pod, node string) (*policy.Demand, *policy.Marks) {
			return b.read(v, pod), b.marksByName(v, node)
		}, func() { b.view.Store(v) })
	for node := range marks {
		b.marksOf(v, node)
	}
	// Nodes are replaced at every change, and those of today would be kept as long as the view.
	v.marks.Store(nil)
	b.status.Poke()
	return v, before, freed
}

// demandsOfBound works out, before anything is locked, what the pods that run have to do with licenses.
func (b *book) demandsOfBound(v *view) map[*v1.Pod]*policy.Demand {
	if len(v.set.Limits()) == 0 {
		return nil
	}
	demands := map[*v1.Pod]*policy.Demand{}
	pods, _ := b.pods.List(labels.Everything())
	for _, pod := range pods {
		if holds(pod) {
			demands[pod] = b.read(v, pod)
		}
	}
	return demands
}

// bound lists the pods that run and use licenses.
func (b *book) bound(v *view, demands map[*v1.Pod]*policy.Demand) []policy.Holder {
	if len(v.set.Limits()) == 0 {
		return nil
	}
	var holders []policy.Holder
	pods, _ := b.pods.List(labels.Everything())
	for _, pod := range pods {
		if !holds(pod) {
			continue
		}
		d := demands[pod]
		if d == nil {
			d = b.read(v, pod)
		}
		if d.UsesLicenses() {
			holders = append(holders, policy.Holder{UID: string(pod.UID), Node: pod.Spec.NodeName, Uses: d,
				Marks: b.marksByName(v, pod.Spec.NodeName)})
		}
	}
	return holders
}

// holds reports whether the pod keeps its licenses: from when it has a node until it ends.
func holds(pod *v1.Pod) bool {
	return pod.Spec.NodeName != "" && pod.Status.Phase != v1.PodSucceeded && pod.Status.Phase != v1.PodFailed
}

// errUnknownNamespace means that a rule may read labels that are not known yet.
var errUnknownNamespace = errors.New("the namespace is not known to the scheduler yet")

// unconcerned reports whether there are no rules and the pod asks for none, so that nothing has to be worked out.
func (v *view) unconcerned(pod *v1.Pod) bool {
	if !v.set.Empty() {
		return false
	}
	_, licenses := pod.Annotations[wellknown.LicensesKey]
	_, datasets := pod.Annotations[wellknown.DatasetsKey]
	return !licenses && !datasets
}

// demand returns what the pod has to do with the rules.
func (b *book) demand(v *view, pod *v1.Pod) (*policy.Demand, error) {
	if v.unconcerned(pod) {
		return v.none, nil
	}
	key := podVersion{pod.UID, pod.ResourceVersion}
	if known, ok := v.demands.Get(key); ok {
		return known.(*policy.Demand), nil
	}
	labels, err := b.namespaceLabels(v, pod.Namespace)
	if err != nil {
		return nil, err
	}
	d := v.set.DemandOf(pod, labels)
	v.demands.Add(key, d)
	return d, nil
}

// read is demand for a pod that is placed already: an unknown namespace has no labels.
func (b *book) read(v *view, pod *v1.Pod) *policy.Demand {
	if v.unconcerned(pod) {
		return v.none
	}
	labels, err := b.namespaceLabels(v, pod.Namespace)
	if err != nil {
		labels = map[string]string{v1.LabelMetadataName: pod.Namespace}
	}
	return v.set.DemandOf(pod, labels)
}

// placed is read for a pod that the cycle looks at, which others may look at as well.
func (b *book) placed(v *view, pod *v1.Pod) *policy.Demand {
	if d, err := b.demand(v, pod); err == nil {
		return d
	}
	return b.read(v, pod)
}

func (b *book) namespaceLabels(v *view, name string) (map[string]string, error) {
	if !v.set.ReadsNamespaces() {
		return nil, nil
	}
	namespace, err := b.namespaces.Get(name)
	if err != nil {
		return nil, fmt.Errorf("reading namespace %s for placement policies: %w", name, errUnknownNamespace)
	}
	return namespace.Labels, nil
}

// marksOf returns what the node has to do with the rules.
func (b *book) marksOf(v *view, node *v1.Node) *policy.Marks {
	entry := b.byNode.Of(node)
	if known := entry.Value.Load(); known != nil && known.set == v.set {
		return known.marks
	}
	var marks *policy.Marks
	if ready := v.marks.Load(); ready != nil {
		marks = (*ready)[node]
	}
	if marks == nil {
		marks = v.set.MarksOf(node)
	}
	if b.view.Load() == v {
		entry.Value.Store(&marked{v.set, marks})
	}
	return marks
}

// marksByName returns nil for a node that is not known, which may be in any node set.
func (b *book) marksByName(v *view, name string) *policy.Marks {
	node, err := b.nodes.Get(name)
	if err != nil {
		return nil
	}
	return b.marksOf(v, node)
}

// run brings the view up to date and wakes pods, until ctx ends.
func (b *book) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.changed:
		}
		// A view that lacks pods would count too few licenses in the first cycle.
		if !cache.WaitForCacheSync(ctx.Done(), b.synced...) {
			return
		}
		b.mu.Lock()
		stale, wake := b.stale, maps.Clone(b.wake)
		clear(b.wake)
		b.mu.Unlock()
		b.catchUp(ctx, b.view.Load(), stale, wake)
	}
}

// catchUp replaces a view that is out of date and wakes pods. The first cycle may have made a view since known was
// loaded, which was nil then, and its pods wait by the rules of that one.
func (b *book) catchUp(ctx context.Context, known *view, stale bool, wake map[string]bool) {
	before, freed := known, false
	if stale && (known == nil || len(wake) > 0 || !b.upToDate(known)) {
		_, before, freed = b.build(false)
	}
	if before != nil {
		b.activate(ctx, before, wake, freed)
	}
}

// upToDate reports whether the view is of the policies that there are: what the first one is made of is told to
// handlers later.
func (b *book) upToDate(v *view) bool {
	now := b.policies.GetStore().List()
	return len(now) == len(v.policies) && !slices.ContainsFunc(now, func(obj any) bool {
		return !slices.Contains(v.policies, obj.(*placementv1alpha1.PlacementPolicy))
	})
}

// renew notes that the view is out of date.
func (b *book) renew(namespace string) {
	b.mu.Lock()
	b.stale = true
	if namespace != "" {
		b.wake[namespace] = true
	}
	b.mu.Unlock()
	select {
	case b.changed <- struct{}{}:
	default:
	}
}

// activate has the pods tried that wait and for which other rules hold than before, and those that use licenses if any
// were freed: by the new labels of a namespace, pods of other ones may have used some, too.
func (b *book) activate(ctx context.Context, before *view, wake map[string]bool, freed bool) {
	now, awake := b.view.Load(), map[string]*v1.Pod{}
	pods, _ := b.pods.List(labels.Everything())
	for _, pod := range pods {
		if pod.Spec.NodeName != "" {
			continue
		}
		was, err := b.demand(before, pod)
		is, errNow := b.demand(now, pod)
		known := err == nil && errNow == nil
		if wake[pod.Namespace] || freed && errNow == nil && is.UsesLicenses() || known && was.Key() != is.Key() ||
			(err == nil) != (errNow == nil) {
			awake[string(pod.UID)] = pod
		}
	}
	if len(awake) > 0 {
		klog.FromContext(ctx).V(3).Info("Placement policies changed, trying pods again", "pods", len(awake))
		b.handle.Activate(klog.FromContext(ctx), awake)
	}
}
