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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/structured"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/claimview"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gangview"
	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/gpuview"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/price"
	"berth.dev/berth/pkg/runtimes"
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

// Book knows a cluster from its objects. Its methods may be called from any goroutine. Objects that it is given must
// not be changed any more.
type Book struct {
	keys    gpuview.Keys
	pricing Pricing

	mu      sync.Mutex
	nodes   map[string]*nodeEntry
	pods    map[types.UID]*podEntry
	waiting map[types.UID]*podEntry
	gangs   map[gang.ID]*gangEntry
	// kinds counts the requests of all pods that have not ended.
	kinds   map[string]*kindCount
	slices  map[string]*resourcev1.ResourceSlice
	claims  map[types.UID]*resourcev1.ResourceClaim
	devices *claimview.Slices
	// allocated is what claims hold of them.
	allocated *structured.AllocatedState
	stale     bool // slices or claims have changed since devices were counted
	// suspended are Jobs that may have no pods.
	suspended map[types.UID]*batchv1.Job
	queues    kueue
	runs      learned
	warnings  []Warning
	leftOut   map[string]string
}

// nodeEntry is a node and the pods on it.
type nodeEntry struct {
	node *v1.Node // nil while only pods of it are known
	pods map[types.UID]*v1.Pod
	view *nodeView // nil when something has changed
}

// podEntry is what is read of a pod once.
type podEntry struct {
	pod  *v1.Pod
	gang gang.ID
	spec *gang.Spec
	// milli is what it asks for of GPUs, gpus how many they are.
	milli int64
	gpus  int
	kind  string
}

type gangEntry struct {
	group   *schedulingv1alpha1.PodGroup
	members map[types.UID]*podEntry
}

type kindCount struct {
	gpu.RequestKind
	pods int
}

// NewBook makes an empty book.
func NewBook(keys gpuview.Keys, pricing Pricing) *Book {
	return &Book{keys: keys, pricing: pricing, nodes: map[string]*nodeEntry{}, pods: map[types.UID]*podEntry{},
		waiting: map[types.UID]*podEntry{}, gangs: map[gang.ID]*gangEntry{}, kinds: map[string]*kindCount{},
		slices: map[string]*resourcev1.ResourceSlice{},
		claims: map[types.UID]*resourcev1.ResourceClaim{}, devices: claimview.NoSlices(keys.Drivers), stale: true,
		leftOut: map[string]string{}, suspended: map[types.UID]*batchv1.Job{}, queues: newKueue(),
		runs: learned{book: runtimes.NewBook(), limits: map[types.NamespacedName]time.Duration{}}}
}

// SetNode notes a node as it is now.
func (b *Book) SetNode(node *v1.Node) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.nodeNamed(node.Name)
	n.node, n.view = node, nil
}

// DeleteNode notes that the node is gone.
func (b *Book) DeleteNode(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n := b.nodes[name]; n != nil {
		n.node, n.view = nil, nil
		b.forgetNode(name)
	}
}

func (b *Book) nodeNamed(name string) *nodeEntry {
	if b.nodes[name] == nil {
		b.nodes[name] = &nodeEntry{pods: map[types.UID]*v1.Pod{}}
	}
	return b.nodes[name]
}

// forgetNode drops a node that is not known any more.
func (b *Book) forgetNode(name string) {
	if n := b.nodes[name]; n.node == nil && len(n.pods) == 0 {
		delete(b.nodes, name)
	}
}

// SetPod notes a pod as it is now. One that has ended is forgotten but for its gang.
func (b *Book) SetPod(pod *v1.Pod) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.removePod(pod.UID)
	p := &podEntry{pod: pod}
	if id, spec, err := gangview.Of(pod); err == nil {
		p.gang, p.spec = id, spec
	}
	if podview.Finished(pod) {
		if p.gang == (gang.ID{}) {
			return
		}
	} else {
		b.readRequest(p)
		if pod.Spec.NodeName == "" {
			b.waiting[pod.UID] = p
		} else {
			n := b.nodeNamed(pod.Spec.NodeName)
			n.pods[pod.UID], n.view = pod, nil
		}
	}
	b.pods[pod.UID] = p
	if p.gang != (gang.ID{}) {
		b.gangNamed(p.gang).members[pod.UID] = p
	}
}

// readRequest reads what the pod asks for, and counts it among the requests of the cluster.
func (b *Book) readRequest(p *podEntry) {
	if !b.keys.MayUseGPU(p.pod) {
		return
	}
	asked, err := b.keys.PodGPURequest(p.pod)
	if err != nil {
		return // the scheduler says what is wrong with it
	}
	p.milli, p.gpus = int64(asked.TotalMilli(0)), asked.Count
	if asked.Count == 0 {
		return
	}
	cpu, memory, _ := podview.PodNeeds(p.pod)
	k := gpu.RequestKind{Count: asked.Count, Milli: asked.Milli, CPUMilli: cpu, MemoryBytes: memory, Models: asked.Models}
	p.kind = k.Key()
	if b.kinds[p.kind] == nil {
		b.kinds[p.kind] = &kindCount{RequestKind: k}
	}
	b.kinds[p.kind].pods++
}

// DeletePod notes that the pod is gone.
func (b *Book) DeletePod(uid types.UID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.removePod(uid)
}

func (b *Book) removePod(uid types.UID) {
	p := b.pods[uid]
	if p == nil {
		return
	}
	delete(b.pods, uid)
	delete(b.waiting, uid)
	if n := b.nodes[p.pod.Spec.NodeName]; n != nil {
		delete(n.pods, uid)
		n.view = nil
		b.forgetNode(p.pod.Spec.NodeName)
	}
	if k := b.kinds[p.kind]; k != nil {
		if k.pods--; k.pods == 0 {
			delete(b.kinds, p.kind)
		}
	}
	if g := b.gangs[p.gang]; g != nil {
		delete(g.members, uid)
		b.forgetGang(p.gang)
	}
}

func (b *Book) gangNamed(id gang.ID) *gangEntry {
	if b.gangs[id] == nil {
		b.gangs[id] = &gangEntry{members: map[types.UID]*podEntry{}}
	}
	return b.gangs[id]
}

func (b *Book) forgetGang(id gang.ID) {
	if g := b.gangs[id]; g.group == nil && len(g.members) == 0 {
		delete(b.gangs, id)
	}
}

// SetPodGroup notes a PodGroup as it is now.
func (b *Book) SetPodGroup(pg *schedulingv1alpha1.PodGroup) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.gangNamed(gang.ID{Namespace: pg.Namespace, Name: pg.Name}).group = pg
}

// DeletePodGroup notes that the PodGroup is gone.
func (b *Book) DeletePodGroup(namespace, name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	id := gang.ID{Namespace: namespace, Name: name}
	if g := b.gangs[id]; g != nil {
		g.group = nil
		b.forgetGang(id)
	}
}

// SetSlice notes a ResourceSlice as it is now.
func (b *Book) SetSlice(s *resourcev1.ResourceSlice) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.slices[s.Name], b.stale = s, true
}

// DeleteSlice notes that the ResourceSlice is gone.
func (b *Book) DeleteSlice(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.slices, name)
	b.stale = true
}

// SetClaim notes a ResourceClaim as it is now.
func (b *Book) SetClaim(c *resourcev1.ResourceClaim) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.claims[c.UID] != nil || c.Status.Allocation != nil {
		b.stale = true
	}
	if c.Status.Allocation == nil {
		delete(b.claims, c.UID)
		return
	}
	b.claims[c.UID] = c
}

// DeleteClaim notes that the ResourceClaim is gone.
func (b *Book) DeleteClaim(uid types.UID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.claims[uid] != nil {
		delete(b.claims, uid)
		b.stale = true
	}
}

// AddWarning notes an event. One about the same object with the same reason takes the place of the one before.
func (b *Book) AddWarning(w Warning) {
	w.Object, w.Reason, w.Message = plainText(w.Object), plainText(w.Reason), plainText(w.Message)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.warnings = slices.DeleteFunc(b.warnings, func(o Warning) bool {
		return o.Namespace == w.Namespace && o.Object == w.Object && o.Reason == w.Reason
	})
	b.warnings = append(b.warnings, w)
	slices.SortStableFunc(b.warnings, func(x, y Warning) int { return y.Time.Compare(x.Time) })
	b.warnings = b.warnings[:min(len(b.warnings), mostWarnings)]
}

// LeaveOut says why a kind cannot be read, or with an empty reason that it can be.
func (b *Book) LeaveOut(kind, reason string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if reason == "" {
		delete(b.leftOut, kind)
	} else {
		b.leftOut[kind] = reason
	}
}

// leftOutNow are the kinds that cannot be read, each with the reason.
func (b *Book) leftOutNow() []string {
	list := []string{}
	for _, kind := range slices.Sorted(maps.Keys(b.leftOut)) {
		list = append(list, kind+": "+b.leftOut[kind])
	}
	return list
}

// Cluster is what the book knows at this moment. The nodes are the caller's; they share their GPUs with later answers.
func (b *Book) Cluster(now time.Time) *Cluster {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := &Cluster{Taken: now, Nodes: []Node{}, Queue: []Waiting{}, Gangs: []Gang{}, Jobs: []Job{}, Queues: []Queue{},
		Namespaces: []Namespace{}, Warnings: append([]Warning{}, b.warnings...), LeftOut: b.leftOutNow()}
	b.countDevices()
	costs := map[string]price.MicroDollars{}
	workload := &judgments{known: map[string]judgment{}}
	for _, k := range b.kinds {
		workload.Observe(k.RequestKind, k.pods)
	}
	for _, n := range b.nodes {
		if n.node != nil {
			b.addNode(c, n, workload, costs)
		}
	}
	slices.SortFunc(c.Nodes, func(x, y Node) int {
		return cmp.Or(cmp.Compare(x.Rack, y.Rack), cmp.Compare(x.Model, y.Model), compareNames(x.Name, y.Name))
	})
	b.addGangs(c, now)
	b.addQueue(c, now)
	b.addJobs(c, now)
	b.addNamespaces(c, costs)
	return c
}
