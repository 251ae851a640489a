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

	berthv1alpha1 "berth.dev/berth/pkg/apis/berth/v1alpha1"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/policy"
	"berth.dev/berth/pkg/process"
	"berth.dev/berth/pkg/process/informers"
)

// maxDemands bounds how many pods' demands are remembered: those of the many pods that run must not evict those of the
// pods that wait.
const maxDemands = 1 << 16

// policyKind is the kind of placement policies.
var policyKind = informers.CustomKind{
	Resource: berthv1alpha1.SchemeGroupVersion.WithResource("placementpolicies"),
	Object:   &berthv1alpha1.PlacementPolicy{},
	List:     &berthv1alpha1.PlacementPolicyList{},
	Reader:   Name,
	Unread:   "no placement policy holds, and pods that ask for licenses stay pending",
}

// nominatedIndex is the index of pods for which others were evicted, under one key.
const nominatedIndex = Name + "/nominated"

// policies is what all profiles share: the rules in force, and the licenses that pods use.
type policies struct {
	handle     fwk.Handle
	kept       *process.Holds
	informer   cache.SharedIndexInformer
	pods       corelisters.PodLister
	podIndex   cache.Indexer
	nodes      corelisters.NodeLister
	namespaces corelisters.NamespaceLister
	byNode     *informers.ByNode[atomic.Pointer[marked]]
	// client writes the statuses of policies when status says so.
	client *restclient.RESTClient
	status *informers.StatusLoop

	// mu guards the ledgers of all views, and the current view, which is nil until the first cycle.
	mu   sync.Mutex
	view atomic.Pointer[view]
}

// view is the rules of all policies at one time, with what was computed from them. A cycle uses one view, even if
// another one takes its place meanwhile.
type view struct {
	set      *policy.Set
	ledger   *policy.Ledger
	demands  *lru.Cache // *policy.Demand by demandKey
	problems map[string]field.ErrorList
	policies []*berthv1alpha1.PlacementPolicy
}

// demandKey is all that a demand depends on.
type demandKey struct {
	uid       types.UID
	version   string
	namespace *v1.Namespace
}

// marked is the marks of a node by one set.
type marked struct {
	set   *policy.Set
	marks policy.Marks
}

func newPolicies(ctx context.Context, handle fwk.Handle) (*policies, error) {
	factory := handle.SharedInformerFactory()
	all, client, err := informers.Custom(factory, handle.KubeConfig(), policyKind)
	if err != nil {
		return nil, err
	}
	kept, err := process.HoldsOf(factory)
	if err != nil {
		return nil, err
	}
	byNode, err := informers.NewByNode[atomic.Pointer[marked]](factory)
	if err != nil {
		return nil, err
	}
	core := factory.Core().V1()
	ps := &policies{handle: handle, kept: kept, informer: all, pods: core.Pods().Lister(),
		podIndex: core.Pods().Informer().GetIndexer(), nodes: core.Nodes().Lister(),
		namespaces: core.Namespaces().Lister(), byNode: byNode, client: client,
		status: informers.NewStatusLoop(informers.ElectionOf(factory))}
	synced, err := ps.watch(factory)
	if err != nil {
		return nil, err
	}
	published.Publish(ctx, ps)
	ps.status.Poke()
	go ps.status.Run(ctx, synced, func() bool { return len(ps.current().policies) > 0 }, ps.writeStatuses)
	return ps, nil
}

// current returns the rules in force. All policies and pods are read before the first cycle.
func (ps *policies) current() *view {
	if v := ps.view.Load(); v != nil {
		return v
	}
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ps.view.Load() == nil {
		ps.use(ps.newView())
	}
	return ps.view.Load()
}

// made returns the view, nil before the first cycle. It waits for a view that is being made, which may lack the event
// that is being handled.
func (ps *policies) made() *view {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	return ps.view.Load()
}

// newView makes a view of the policies that the informer has. Slow work is done here, before the lock is taken: the
// demands of the pods that may use licenses, and the marks of nodes.
func (ps *policies) newView() *view {
	v := &view{demands: lru.New(maxDemands)}
	for _, obj := range ps.informer.GetStore().List() {
		v.policies = append(v.policies, obj.(*berthv1alpha1.PlacementPolicy))
	}
	v.set, v.problems = policy.NewSet(v.policies)
	v.ledger = policy.NewLedger(v.set)
	nodes, _ := ps.nodes.List(labels.Everything()) // a lister of a cache has no errors
	for _, node := range nodes {
		ps.marksOf(v, node)
	}
	for _, pod := range ps.licensed(v) {
		ps.demand(v, pod)
	}
	return v
}

// licensed are the pods that may use licenses by a view.
func (ps *policies) licensed(v *view) []*v1.Pod {
	if !v.set.Licenses() {
		return nil
	}
	pods, _ := ps.pods.List(labels.Everything())
	return slices.DeleteFunc(pods, func(pod *v1.Pod) bool { return !keepsLicenses(pod) })
}

// use counts the licenses of pods by a new view and makes it the current one. mu must be locked.
func (ps *policies) use(v *view) {
	if before := ps.view.Load(); before != nil {
		for pod, node := range before.ledger.Assumed() {
			marks, _ := ps.marksByName(v, node)
			v.ledger.Assume(pod, node, ps.demand(v, pod), marks)
		}
	}
	for _, pod := range ps.licensed(v) {
		ps.bind(v, pod)
	}
	ps.view.Store(v)
}

// renew makes another view when policies have changed. It wakes pending pods that other rules than before concern, and
// those that use licenses. Only the informer's handler calls it, so that the last view is of the newest policies.
func (ps *policies) renew() {
	defer ps.status.Poke() // when there is the view that statuses are written by
	before := ps.made()
	if before == nil {
		return // the first view is of all policies
	}
	now := ps.newView()
	ps.mu.Lock()
	ps.use(now)
	ps.mu.Unlock()
	process.Wake(klog.Background(), ps.handle, "Placement policies changed", func(pod *v1.Pod) bool {
		d := ps.demand(now, pod)
		return d.UsesLicenses() || ps.demand(before, pod).Key() != d.Key()
	})
}

// bind counts a pod that has a node.
func (ps *policies) bind(v *view, pod *v1.Pod) {
	marks, _ := ps.marksByName(v, pod.Spec.NodeName)
	v.ledger.Bind(pod, ps.demand(v, pod), marks)
}

// keepsLicenses reports whether the pod has a node and has not ended.
func keepsLicenses(pod *v1.Pod) bool {
	return pod.Spec.NodeName != "" && !podview.Finished(pod)
}

// demand returns the rules that concern the pod.
func (ps *policies) demand(v *view, pod *v1.Pod) *policy.Demand {
	key := ps.keyOf(pod)
	if known, ok := v.demands.Get(key); ok {
		return known.(*policy.Demand)
	}
	d := v.set.DemandOf(pod, key.namespace)
	v.demands.Add(key, d)
	return d
}

// keyOf returns the key of a pod, with a nil namespace if that is not known yet.
func (ps *policies) keyOf(pod *v1.Pod) demandKey {
	key := demandKey{uid: pod.UID, version: pod.ResourceVersion}
	if namespace, err := ps.namespaces.Get(pod.Namespace); err == nil {
		key.namespace = namespace
	}
	return key
}

// marksOf returns the node sets of the view that the node is in.
func (ps *policies) marksOf(v *view, node *v1.Node) policy.Marks {
	entry := ps.byNode.Of(node)
	known := entry.Value.Load()
	if known == nil || known.set != v.set {
		known = &marked{v.set, v.set.MarksOf(node)}
		entry.Value.Store(known)
	}
	return known.marks
}

// marksByName returns the marks of an unknown node and false if no node has the name.
func (ps *policies) marksByName(v *view, name string) (policy.Marks, bool) {
	node, err := ps.nodes.Get(name)
	if err != nil {
		return "", false
	}
	return ps.marksOf(v, node), true
}

// reserve takes the pod's licenses, or returns why the pod may not run on the node by the policies in force now.
func (ps *policies) reserve(pod *v1.Pod, nodeName string) (reason string) {
	ps.current()
	ps.mu.Lock()
	defer ps.mu.Unlock()
	v := ps.view.Load()
	d := ps.demand(v, pod)
	if d.Refusal != "" {
		return d.Refusal
	}
	var marks policy.Marks
	if d.Filters() {
		var known bool
		if marks, known = ps.marksByName(v, nodeName); !known {
			return "node " + nodeName + " is gone"
		}
		if reason := d.Forbids(marks); reason != "" {
			return reason
		}
	}
	ps.status.Poke()
	return v.ledger.Reserve(pod, nodeName, d, marks)
}

func (ps *policies) unreserve(pod *v1.Pod) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if v := ps.view.Load(); v != nil {
		v.ledger.Unreserve(string(pod.UID))
		ps.status.Poke()
	}
}

// freeFor returns which licenses are free for a pod whose cycle begins.
func (ps *policies) freeFor(v *view, pod *v1.Pod) *policy.Free {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	return v.ledger.FreeFor(string(pod.UID))
}

// count sets whether another pod counts in a cycle from now on, and reports whether it uses licenses. The key is its
// UID, or a different one for each node if one pod stands for several.
func (ps *policies) count(s *cycleState, key string, other *v1.Pod, m policy.Marks, counts bool) bool {
	d := ps.demand(s.view, other)
	if d.UsesLicenses() {
		ps.mu.Lock()
		defer ps.mu.Unlock()
		s.free.Count(key, d, m, counts)
	}
	return d.UsesLicenses()
}
