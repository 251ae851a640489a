package overview

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/cluster/stranded"
	"berth.dev/berth/pkg/cost/price"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/pkg/plural"
	"berth.dev/berth/pkg/podview"
)

// mostWarnings is how many warnings are kept.
const mostWarnings = 200

// Pricing says what nodes cost.
type Pricing struct {
	// Of returns the price of a node an hour, and false where it is not known.
	Of func(*v1.Node) (price.MicroDollars, bool)
	// Rates divide the price of a node over its resources.
	Rates price.Rates
}

// Store keeps the objects of a cluster that an overview is made of. Its methods may be called from any goroutine. The
// caller must not change objects after Set.
type Store struct {
	feed
	pricing Pricing
	// levels are those of the network. The narrowest one that a node has is shown.
	levels podview.NetworkLevels
	// changed receives a value after a change of a watched cluster.
	changed chan struct{}
}

// feed keeps the objects that Set and Delete report.
type feed struct {
	mu sync.Mutex
	objects
	*claimedDevices
	notes
	keys gpuview.Keys
	// jobs are those that have not succeeded. They may have no pods.
	jobs   map[types.UID]*batchv1.Job
	queues kueue
	// trees are those of Kubernetes' own groups.
	trees *read.Trees
}

// notes are the warnings among the events, and the kinds that cannot be read with the reasons.
type notes struct {
	warnings []Warning
	leftOut  map[string]string
}

// objects are the nodes, pods and gangs of the cluster, and the references between them.
type objects struct {
	nodes map[string]*nodeEntry
	pods  map[types.UID]*podEntry
	gangs map[gang.ID]*gangEntry
	// mix counts all pods that have not ended.
	mix stranded.Mix
}

// nodeEntry is a node and the pods on it.
type nodeEntry struct {
	node *v1.Node // nil while only pods of it are known
	pods map[types.UID]*podEntry
	view *nodeView // nil when something has changed
}

// podEntry is a pod with what is computed from it once.
type podEntry struct {
	pod     *v1.Pod
	gang    gang.ID
	minimum int
	// asked is its GPU request and milli that request with the devices of its claims, in thousandths of a GPU.
	asked, milli int64
	// shape is its key in the mix.
	shape string
}

type gangEntry struct {
	group   *schedulingv1alpha1.PodGroup
	members map[types.UID]*podEntry
}

// NewStore makes an empty store.
func NewStore(keys gpuview.Keys, pricing Pricing, levels podview.NetworkLevels) *Store {
	return &Store{
		feed: feed{keys: keys, trees: read.TreesOf(nil), jobs: map[types.UID]*batchv1.Job{}, queues: newKueue(),
			objects: objects{nodes: map[string]*nodeEntry{}, pods: map[types.UID]*podEntry{},
				gangs: map[gang.ID]*gangEntry{}},
			claimedDevices: newClaimedDevices(keys.Drivers), notes: notes{leftOut: map[string]string{}}},
		pricing: pricing, levels: levels, changed: make(chan struct{}, 1)}
}

// Set adds an object or replaces its previous state. Objects of kinds that an overview does not show are ignored.
func (f *feed) Set(obj any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch o := obj.(type) {
	case *v1.Node:
		n := f.nodeNamed(o.Name)
		n.node, n.view = o, nil
	case *v1.Pod:
		f.setPod(o)
	case *schedulingv1alpha1.PodGroup:
		f.gangNamed(gang.ID{Namespace: o.Namespace, Name: o.Name}).group = o
	case *batchv1.Job:
		if f.jobs[o.UID] = o; jobCondition(o, batchv1.JobComplete) != nil {
			delete(f.jobs, o.UID)
		}
	case *unstructured.Unstructured:
		f.setOther(o)
	case *resourcev1.ResourceSlice:
		f.slices[o.Name], f.stale = o, true
	case *resourcev1.ResourceClaim:
		f.deleteClaim(o.UID)
		if o.Status.Allocation != nil {
			f.claims[o.UID], f.stale = o, true
		}
	case *v1.Event:
		f.addWarning(warningOf(o))
	}
}

// Delete removes an object.
func (f *feed) Delete(obj any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch o := obj.(type) {
	case *v1.Node:
		if n := f.nodes[o.Name]; n != nil {
			n.node, n.view = nil, nil
			f.forgetNode(o.Name)
		}
	case *v1.Pod:
		f.removePod(o.UID)
	case *schedulingv1alpha1.PodGroup:
		id := gang.ID{Namespace: o.Namespace, Name: o.Name}
		if g := f.gangs[id]; g != nil {
			g.group = nil
			f.forgetGang(id)
		}
	case *batchv1.Job:
		delete(f.jobs, o.UID)
	case *unstructured.Unstructured:
		f.refile(o.GetNamespace(), f.trees.Delete(o))
		f.queues.forget(o)
	case *resourcev1.ResourceSlice:
		delete(f.slices, o.Name)
		f.stale = true
	case *resourcev1.ResourceClaim:
		f.deleteClaim(o.UID)
	}
}

func (o *objects) nodeNamed(name string) *nodeEntry {
	if o.nodes[name] == nil {
		o.nodes[name] = &nodeEntry{pods: map[types.UID]*podEntry{}}
	}
	return o.nodes[name]
}

// forgetNode removes the entry of a node that does not exist and has no pods.
func (o *objects) forgetNode(name string) {
	if n := o.nodes[name]; n.node == nil && len(n.pods) == 0 {
		delete(o.nodes, name)
	}
}

// setPod adds or replaces a pod. One that has ended is kept only as a member of its gang.
func (f *feed) setPod(pod *v1.Pod) {
	f.removePod(pod.UID)
	p := &podEntry{pod: pod}
	if m, err := f.trees.GangOf(pod); err == nil {
		p.gang, p.minimum = m.ID, m.Minimum
	}
	if podview.Finished(pod) {
		if p.gang == (gang.ID{}) {
			return
		}
	} else {
		f.readRequest(p)
		p.milli = p.asked + f.claimedMilli[pod.UID]
		if pod.Spec.NodeName != "" {
			n := f.nodeNamed(pod.Spec.NodeName)
			n.pods[pod.UID], n.view = p, nil
		}
	}
	f.pods[pod.UID] = p
	if p.gang != (gang.ID{}) {
		f.gangNamed(p.gang).members[pod.UID] = p
	}
}

// readRequest reads the GPU request of the pod and adds it to the mix.
func (f *feed) readRequest(p *podEntry) {
	if !f.keys.MayUseGPU(p.pod) {
		return
	}
	asked, err := f.keys.PodGPURequest(p.pod)
	if err != nil {
		return // the scheduler reports the error
	}
	p.asked = int64(asked.TotalMilli(0))
	cpu, memory, _ := podview.PodNeeds(p.pod)
	p.shape = f.mix.Add(p.pod, stranded.Need{Count: asked.Count, Milli: asked.Milli, CPUMilli: cpu, MemoryBytes: memory,
		Models: asked.Models})
}

func (o *objects) removePod(uid types.UID) {
	p := o.pods[uid]
	if p == nil {
		return
	}
	delete(o.pods, uid)
	if n := o.nodes[p.pod.Spec.NodeName]; n != nil {
		delete(n.pods, uid)
		n.view = nil
		o.forgetNode(p.pod.Spec.NodeName)
	}
	o.mix.Remove(p.shape)
	if g := o.gangs[p.gang]; g != nil {
		delete(g.members, uid)
		o.forgetGang(p.gang)
	}
}

func (o *objects) gangNamed(id gang.ID) *gangEntry {
	if o.gangs[id] == nil {
		o.gangs[id] = &gangEntry{members: map[types.UID]*podEntry{}}
	}
	return o.gangs[id]
}

func (o *objects) forgetGang(id gang.ID) {
	if g := o.gangs[id]; g.group == nil && len(g.members) == 0 {
		delete(o.gangs, id)
	}
}

// addWarning adds an event. It replaces an earlier one about the same object with the same reason.
func (n *notes) addWarning(w Warning) {
	w.Object, w.Reason, w.Message = plainText(w.Object), plainText(w.Reason), plainText(w.Message)
	n.warnings = slices.DeleteFunc(n.warnings, func(o Warning) bool {
		return o.Namespace == w.Namespace && o.Object == w.Object && o.Reason == w.Reason
	})
	n.warnings = append(n.warnings, w)
	slices.SortStableFunc(n.warnings, func(x, y Warning) int { return y.Time.Compare(x.Time) })
	n.warnings = n.warnings[:min(len(n.warnings), mostWarnings)]
}

// leaveOut records why a kind cannot be read. An empty reason means that it can be read again.
func (f *feed) leaveOut(kind, reason string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if reason == "" {
		delete(f.leftOut, kind)
	} else {
		f.leftOut[kind] = reason
	}
}

// leftOutNow are the kinds that cannot be read, and devices that do not count yet, each with the reason.
func (f *feed) leftOutNow() []string {
	list := []string{}
	for _, kind := range slices.Sorted(maps.Keys(f.leftOut)) {
		list = append(list, kind+": "+f.leftOut[kind])
	}
	claiming := 0
	for _, p := range f.pods {
		if len(p.pod.Spec.ResourceClaims) > 0 && p.pod.Spec.NodeName == "" && !podview.Finished(p.pod) {
			claiming++
		}
	}
	if claiming > 0 {
		list = append(list, plural.Of(claiming, "pending pod")+": devices that are claimed count when they are allocated")
	}
	return list
}

// countDevices updates nodes and pods after a change of claims or devices.
func (f *feed) countDevices() {
	before := f.claimedMilli
	for name := range f.count() {
		if n := f.nodes[name]; n != nil {
			n.view = nil
		}
	}
	for _, claimed := range []map[types.UID]int64{before, f.claimedMilli} {
		for uid := range claimed {
			if p := f.pods[uid]; p != nil {
				p.milli = p.asked + f.claimedMilli[uid]
			}
		}
	}
}

// Cluster is the cluster at this moment. The caller may change the nodes, but not their lists of GPUs.
func (s *Store) Cluster(now time.Time) *Cluster {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &Cluster{Taken: now, Nodes: []Node{}, Queue: []Waiting{}, Gangs: []Gang{}, Jobs: []Job{}, Queues: []Queue{},
		Namespaces: []Namespace{}, Warnings: append([]Warning{}, s.warnings...), LeftOut: s.leftOutNow()}
	s.countDevices()
	costs := map[string]price.MicroDollars{}
	for _, n := range s.nodes {
		if n.node != nil {
			s.addNode(c, n, costs)
		}
	}
	slices.SortFunc(c.Nodes, func(x, y Node) int {
		return cmp.Or(x.Domain.Compare(y.Domain), cmp.Compare(x.Model, y.Model), compareNames(x.Name, y.Name))
	})
	s.addGangs(c, now)
	s.addQueue(c, now)
	s.addJobs(c, now)
	s.addNamespaces(c, costs)
	return c
}
