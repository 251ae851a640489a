package placementpolicy

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	corelisters "k8s.io/client-go/listers/core/v1"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/lru"

	placementv1alpha1 "berth.dev/berth/pkg/apis/placement/v1alpha1"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/policy"
	"berth.dev/berth/pkg/process"
	"berth.dev/berth/pkg/process/informers"
)

// maxDemands bounds how many pods' demands are remembered.
const maxDemands = 4096

// policyKind is the kind of placement policies.
var policyKind = informers.CustomKind{
	Resource: placementv1alpha1.SchemeGroupVersion.WithResource("placementpolicies"),
	Object:   &placementv1alpha1.PlacementPolicy{},
	List:     &placementv1alpha1.PlacementPolicyList{},
	Reader:   Name,
	Unread:   "no placement policy holds, and pods that ask for licenses stay pending",
}

// nominatedIndex is the index of pods for which others were evicted, under one key.
const nominatedIndex = Name + "/nominated"

// book is what all profiles share: the rules of the moment, and who holds licenses.
type book struct {
	handle     fwk.Handle
	wide       *process.Holds
	policies   cache.SharedIndexInformer
	pods       corelisters.PodLister
	podIndex   cache.Indexer
	nodes      corelisters.NodeLister
	namespaces corelisters.NamespaceLister
	byNode     *informers.ByNode[atomic.Pointer[marked]]
	// client writes the statuses of policies when status says so.
	client *restclient.RESTClient
	status *informers.StatusLoop

	// mu guards the ledgers of all views, and which view is the one that counts. It is nil until it is asked for first.
	mu   sync.Mutex
	view atomic.Pointer[view]
}

// view is the rules of all policies at one time, with what was worked out by them. What a cycle has begun with stays as
// it is once another view has taken its place.
type view struct {
	set      *policy.Set
	ledger   *policy.Ledger
	demands  *lru.Cache // *policy.Demand by demandKey
	problems map[string]field.ErrorList
	policies []*placementv1alpha1.PlacementPolicy
}

// demandKey is all that a demand is worked out from.
type demandKey struct {
	uid       types.UID
	version   string
	namespace *v1.Namespace
}

// marked is what is kept of a node: its marks by one set.
type marked struct {
	set   *policy.Set
	marks policy.Marks
}

func newBook(ctx context.Context, handle fwk.Handle) (*book, error) {
	factory := handle.SharedInformerFactory()
	policies, client, err := informers.Custom(factory, handle.KubeConfig(), policyKind)
	if err != nil {
		return nil, err
	}
	wide, err := process.HoldsOf(factory)
	if err != nil {
		return nil, err
	}
	byNode, err := informers.NewByNode[atomic.Pointer[marked]](factory)
	if err != nil {
		return nil, err
	}
	core := factory.Core().V1()
	b := &book{handle: handle, wide: wide, policies: policies, pods: core.Pods().Lister(),
		podIndex: core.Pods().Informer().GetIndexer(), nodes: core.Nodes().Lister(),
		namespaces: core.Namespaces().Lister(), byNode: byNode, client: client,
		status: informers.NewStatusLoop(informers.ElectionOf(factory))}
	synced, err := b.watch(factory)
	if err != nil {
		return nil, err
	}
	published.Publish(ctx, b)
	b.status.Poke()
	go b.status.Run(ctx, synced, func() bool { return len(b.current().policies) > 0 }, b.writeStatuses)
	return b, nil
}

// current returns the rules of the moment. All policies and pods are read before the first cycle asks for them.
func (b *book) current() *view {
	if v := b.view.Load(); v != nil {
		return v
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.view.Load() == nil {
		b.use(b.newView())
	}
	return b.view.Load()
}

// made returns the view, nil if none has been asked for. It waits for one that is being made, which may lack what an
// informer tells of now.
func (b *book) made() *view {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.view.Load()
}

// newView makes a view of the policies that the informer has. What takes long is done here, before the lock is held:
// the demands of the pods that hold licenses, and the marks of nodes.
func (b *book) newView() (v *view, demands map[demandKey]*policy.Demand) {
	v, demands = &view{demands: lru.New(maxDemands)}, map[demandKey]*policy.Demand{}
	for _, obj := range b.policies.GetStore().List() {
		v.policies = append(v.policies, obj.(*placementv1alpha1.PlacementPolicy))
	}
	v.set, v.problems = policy.NewSet(v.policies)
	v.ledger = policy.NewLedger(v.set)
	nodes, _ := b.nodes.List(labels.Everything()) // a lister of a cache has no errors
	for _, node := range nodes {
		b.marksOf(v, node)
	}
	for _, pod := range b.holders(v) {
		demands[b.keyOf(pod)] = b.workOut(v, pod)
	}
	return v, demands
}

// holders are the pods that may hold licenses by a view.
func (b *book) holders(v *view) []*v1.Pod {
	if !v.set.Licenses() {
		return nil
	}
	pods, _ := b.pods.List(labels.Everything())
	return slices.DeleteFunc(pods, func(pod *v1.Pod) bool { return !holds(pod) })
}

// use counts who holds licenses by a new view, which takes the place of the one before. The caller holds mu.
func (b *book) use(v *view, demands map[demandKey]*policy.Demand) {
	if before := b.view.Load(); before != nil {
		for pod, node := range before.ledger.Held() {
			marks, _ := b.marksByName(v, node)
			v.ledger.Hold(pod, node, b.workOut(v, pod), marks)
		}
	}
	for _, pod := range b.holders(v) {
		b.bind(v, pod, demands[b.keyOf(pod)])
	}
	b.view.Store(v)
}

// renew makes another view when policies have changed, and has the pods tried that wait for other rules than before,
// and those that use licenses. Only the informer's handler calls it, so that the last view is of the newest policies.
func (b *book) renew() {
	defer b.status.Poke() // when there is the view that statuses are written by
	before := b.made()
	if before == nil {
		return // the first view is of all policies
	}
	now, demands := b.newView()
	b.mu.Lock()
	b.use(now, demands)
	b.mu.Unlock()
	b.wake(func(pod *v1.Pod) bool {
		d := b.demand(now, pod)
		return d.UsesLicenses() || b.demand(before, pod).Key() != d.Key()
	})
}

// wake has the pods tried that wait and are wanted.
func (b *book) wake(wanted func(*v1.Pod) bool) {
	process.Wake(klog.Background(), b.handle, "Placement policies changed", wanted)
}

// bind counts a pod that has a node, by its demand or, if that is nil, by one that is worked out now.
func (b *book) bind(v *view, pod *v1.Pod, d *policy.Demand) {
	if d == nil {
		d = b.workOut(v, pod)
	}
	marks, _ := b.marksByName(v, pod.Spec.NodeName)
	v.ledger.Bind(pod, d, marks)
}

// holds reports whether the pod keeps its licenses: from when it has a node until it ends.
func holds(pod *v1.Pod) bool {
	return pod.Spec.NodeName != "" && !podview.Finished(pod)
}

// demand returns what the pod has to do with the rules.
func (b *book) demand(v *view, pod *v1.Pod) *policy.Demand {
	key := b.keyOf(pod)
	if known, ok := v.demands.Get(key); ok {
		return known.(*policy.Demand)
	}
	d := v.set.DemandOf(pod, key.namespace)
	v.demands.Add(key, d)
	return d
}

// workOut is demand for one of many pods, which would push those that wait out of memory.
func (b *book) workOut(v *view, pod *v1.Pod) *policy.Demand {
	return v.set.DemandOf(pod, b.keyOf(pod).namespace)
}

// keyOf leaves the namespace nil if it is not known yet.
func (b *book) keyOf(pod *v1.Pod) demandKey {
	key := demandKey{uid: pod.UID, version: pod.ResourceVersion}
	if namespace, err := b.namespaces.Get(pod.Namespace); err == nil {
		key.namespace = namespace
	}
	return key
}

// marksOf returns what the node has to do with the rules.
func (b *book) marksOf(v *view, node *v1.Node) policy.Marks {
	entry := b.byNode.Of(node)
	known := entry.Value.Load()
	if known == nil || known.set != v.set {
		known = &marked{v.set, v.set.MarksOf(node)}
		entry.Value.Store(known)
	}
	return known.marks
}

// marksByName returns false and the marks of an unknown node if there is none of the name.
func (b *book) marksByName(v *view, name string) (policy.Marks, bool) {
	node, err := b.nodes.Get(name)
	if err != nil {
		return "", false
	}
	return b.marksOf(v, node), true
}

// reserve takes the pod's licenses, or returns why it may not run on the node: where the policies have changed since
// Filter, the node is judged by the new ones.
func (b *book) reserve(pod *v1.Pod, nodeName string) (reason string) {
	b.current()
	b.mu.Lock()
	defer b.mu.Unlock()
	v := b.view.Load()
	d := b.demand(v, pod)
	if d.Refusal != "" {
		return d.Refusal
	}
	var marks policy.Marks
	if d.Filters() {
		var known bool
		if marks, known = b.marksByName(v, nodeName); !known {
			return "node " + nodeName + " is gone"
		}
		if reason := d.Forbids(marks); reason != "" {
			return reason
		}
	}
	b.status.Poke()
	return v.ledger.Reserve(pod, nodeName, d, marks)
}

func (b *book) unreserve(pod *v1.Pod) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if v := b.view.Load(); v != nil {
		v.ledger.Unreserve(string(pod.UID))
		b.status.Poke()
	}
}

// freeFor returns which licenses are free for a pod whose cycle begins.
func (b *book) freeFor(v *view, pod *v1.Pod) *policy.Free {
	b.mu.Lock()
	defer b.mu.Unlock()
	return v.ledger.FreeFor(string(pod.UID))
}

// count says whether another pod counts in a cycle from now on, and reports whether it uses licenses. The key is its
// UID, or another one for each place if one pod stands for several.
func (b *book) count(s *cycleState, key string, other *v1.Pod, m policy.Marks, counts bool) bool {
	d := b.demand(s.view, other)
	if d.UsesLicenses() {
		b.mu.Lock()
		defer b.mu.Unlock()
		s.free.Count(key, d, m, counts)
	}
	return d.UsesLicenses()
}
