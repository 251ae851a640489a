package capacity

import (
	"maps"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	apitypes "k8s.io/apimachinery/pkg/types"

	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/profiles"
)

// Index is a rough count of the free capacity of every node, fed by informers. For each live shape of pods it knows how
// many fit at most. It is optimistic: a pod that fits a node by the profile's filters fits by this index, but not the
// other way round, because ports, devices, volumes and rules between pods are not in it. A gang that does not fit by
// this index need not be tried.
//
// An event only marks its node. The next question compares the marked nodes with what they were, for all shapes at
// once. Slots are kept in total only. For each node there is a byte for each placement rule, which many shapes share.
//
// Its methods may be called from any goroutine.
type Index struct {
	mu sync.Mutex
	// claimed reports whether a device class hands out a resource. It is called with mu held.
	claimed func(v1.ResourceName) bool
	// filters returns the filters that decide where the pod may be.
	filters func(*v1.Pod) *profiles.Traits

	// resources holds the resources that a node has ever offered; their positions are those of all vectors. What only pods
	// name is not among them, since users may name what they like.
	resources []v1.ResourceName
	index     map[v1.ResourceName]int
	// offered counts the nodes that offer a resource, by position.
	offered []int

	// nodes holds the nodes by slot, nil where a slot is unused.
	nodes  []*nodeEntry
	unused []int
	byName map[string]*nodeEntry
	// present counts the nodes that exist, as opposed to those known only by their pods.
	present int
	// dirty holds the nodes that have changed since the shapes were last brought up to date.
	dirty []*nodeEntry

	pods map[apitypes.UID]*podEntry
	// priorities counts the bound pods that could be evicted, leaving those that terminate.
	priorities, leaving priorityCount

	shapes map[ShapeKey]*shape
	live   []*shape
	rules  map[string]*placementRule
	// stale is set if a live shape is.
	stale bool
	// eased is set if a bound pod went or changed in a way that no shape shows.
	eased bool
	// settled counts how often the shapes were brought up to date.
	settled uint64
	// asked counts how often gangs were looked at, answered is the last time after which those that may fit were in the
	// queue.
	asked, answered uint64
	// domains caches which node lies in which domain, by label keys, until a node changes.
	domains map[string]*partition
	// besides caches what is left besides what is kept, until something changes or gangs are looked at.
	besides []*besides
}

// nodeEntry is a node as it is, and as it was when the shapes were last brought up to date.
type nodeEntry struct {
	name string
	slot int
	// node is nil while only pods of the node are known.
	node *v1.Node
	// has and used are in thousandths of a CPU and in units of everything else.
	has, used []int64
	pods      []*podEntry
	// freed is the look at gangs that sees what last came free here.
	freed uint64

	// dirty is set while the node waits to be compared; the fields below have a meaning only then.
	dirty           bool
	wasHas, wasUsed []int64
	// altered is set if the node itself has changed and not only its pods.
	altered bool
	// place is the position among the altered nodes of one comparison.
	place int
}

// New returns an index without nodes. claimed reports whether a device class hands out a resource, filters returns the
// filters that decide where a pod may be; they must not call the index.
func New(claimed func(v1.ResourceName) bool, filters func(*v1.Pod) *profiles.Traits) *Index {
	x := &Index{
		claimed:    claimed,
		filters:    filters,
		index:      map[v1.ResourceName]int{},
		byName:     map[string]*nodeEntry{},
		pods:       map[apitypes.UID]*podEntry{},
		priorities: priorityCount{}, leaving: priorityCount{},
		shapes:  map[ShapeKey]*shape{},
		rules:   map[string]*placementRule{},
		domains: map[string]*partition{},
	}
	for _, name := range []v1.ResourceName{v1.ResourcePods, v1.ResourceCPU, v1.ResourceMemory,
		v1.ResourceEphemeralStorage} {
		x.position(name)
	}
	return x
}

// SetNode records a node that came or changed.
func (x *Index) SetNode(node *v1.Node) {
	x.mu.Lock()
	defer x.mu.Unlock()
	n := x.at(node.Name)
	old := n.node
	has := x.vector(podview.AllocatableOf(node))
	if old != nil && slices.Equal(has, n.has) && !altered(old, node) {
		// Most updates are heartbeats.
		n.node = node
		return
	}
	x.mark(n)
	n.altered, n.freed = true, x.asked+1
	x.offer(has, 1)
	x.offer(n.has, -1)
	n.node, n.has = node, has
	if old == nil {
		x.present++
	}
}

// altered reports whether a node changed in a way that can matter to a pod, its allocatable resources aside.
func altered(old, node *v1.Node) bool {
	return old.Spec.Unschedulable != node.Spec.Unschedulable ||
		!maps.Equal(old.Labels, node.Labels) ||
		!maps.Equal(old.Annotations, node.Annotations) ||
		!slices.EqualFunc(old.Spec.Taints, node.Spec.Taints, func(a, b v1.Taint) bool {
			return a.Key == b.Key && a.Value == b.Value && a.Effect == b.Effect
		})
}

// DropNode forgets a node. Its pods stay known until they go.
func (x *Index) DropNode(name string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	n := x.byName[name]
	if n == nil || n.node == nil {
		return
	}
	x.mark(n)
	n.altered = true
	x.offer(n.has, -1)
	n.node, n.has = nil, make([]int64, len(x.resources))
	x.present--
}

// at returns what is known of the node, which may come after its pods.
func (x *Index) at(name string) *nodeEntry {
	n := x.byName[name]
	if n != nil {
		return n
	}
	r := len(x.resources)
	n = &nodeEntry{name: name, has: make([]int64, r), used: make([]int64, r), wasHas: make([]int64, r),
		wasUsed: make([]int64, r)}
	if last := len(x.unused) - 1; last >= 0 {
		n.slot, x.unused = x.unused[last], x.unused[:last]
		x.nodes[n.slot] = n
	} else {
		n.slot = len(x.nodes)
		x.nodes = append(x.nodes, n)
		for _, r := range x.rules {
			r.verdicts = append(r.verdicts, absent)
		}
	}
	x.byName[name] = n
	// A node without an object and without pods is forgotten when it is compared.
	x.mark(n)
	return n
}

// mark remembers the node as it is, to be compared with what it becomes.
func (x *Index) mark(n *nodeEntry) {
	x.besides = nil
	if n.dirty {
		return
	}
	n.dirty, n.altered = true, false
	copy(n.wasHas, n.has)
	copy(n.wasUsed, n.used)
	x.dirty = append(x.dirty, n)
}

// position gives a resource that a node offers its place in all vectors.
func (x *Index) position(name v1.ResourceName) {
	if _, known := x.index[name]; known {
		return
	}
	x.besides = nil
	i := len(x.resources)
	x.index[name] = i
	x.resources = append(x.resources, name)
	x.offered = append(x.offered, 0)
	for _, n := range x.byName {
		n.has, n.used = append(n.has, 0), append(n.used, 0)
		n.wasHas, n.wasUsed = append(n.wasHas, 0), append(n.wasUsed, 0)
	}
	for _, p := range x.pods {
		x.uncover(p, name, i)
	}
}

// vector returns the amounts in the order of the resources' positions.
func (x *Index) vector(amounts map[v1.ResourceName]int64) []int64 {
	for _, name := range slices.Sorted(maps.Keys(amounts)) {
		x.position(name)
	}
	v := make([]int64, len(x.resources))
	for name, amount := range amounts {
		v[x.index[name]] = amount
	}
	return v
}

// offer counts a node that offers resources in or out. Shapes that ask for a resource whose first or last node this is
// are counted from the start.
func (x *Index) offer(has []int64, by int) {
	for i, amount := range has {
		if amount == 0 {
			continue
		}
		before := x.offered[i]
		x.offered[i] += by
		if before > 0 && x.offered[i] > 0 {
			continue
		}
		for _, s := range x.live {
			if s.asksFor(x.resources[i]) {
				s.stale, x.stale = true, true
			}
		}
	}
}

// ClassesChanged tells the index that device classes came, changed or went.
func (x *Index) ClassesChanged() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, s := range x.live {
		if !slices.Equal(s.bounds, x.bounds(s.asks)) {
			s.stale, x.stale = true, true
		}
	}
}

// settle brings all shapes up to date with the nodes that have changed.
func (x *Index) settle() {
	if len(x.dirty) == 0 && !x.stale {
		return
	}
	x.settled++
	x.besides = nil
	var changed []*nodeEntry
	for _, n := range x.dirty {
		if n.altered {
			n.place = len(changed)
			changed = append(changed, n)
		}
	}
	if len(changed) > 0 {
		clear(x.domains)
		for _, r := range x.rules {
			r.judgeAgain(changed)
		}
	}
	for _, s := range x.live {
		if s.stale {
			x.recount(s)
			s.stale = false
			continue
		}
		for _, n := range x.dirty {
			s.compare(n, s.bounds)
		}
	}
	for _, n := range x.dirty {
		n.dirty = false
		if n.node == nil && len(n.pods) == 0 {
			delete(x.byName, n.name)
			x.nodes[n.slot] = nil
			x.unused = append(x.unused, n.slot)
		}
	}
	clear(x.dirty)
	x.dirty, x.stale = x.dirty[:0], false
}

// State is another after each change of the cluster that the index sees.
func (x *Index) State() uint64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.settle()
	return x.settled
}

// recount counts a shape on all nodes, because what bounds it may have changed.
func (x *Index) recount(s *shape) {
	before := s.bounds
	s.bounds = x.bounds(s.asks)
	for _, n := range x.nodes {
		if n != nil {
			s.compare(n, before)
		}
	}
}

// Refresh begins a look at gangs. It returns the shapes that gained since it was last called: more of their pods fit on
// some node, or a node on which they fit if it is empty came or changed its labels, annotations, taints or resources.
// eased reports whether a bound pod went or changed otherwise, which may help pods that are blocked for reasons that
// are not in this index.
func (x *Index) Refresh() (gained []ShapeKey, eased bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.asked++
	x.besides = nil
	x.settle()
	for _, s := range x.live {
		if s.gained {
			s.gained = false
			gained = append(gained, s.key)
		}
	}
	eased, x.eased = x.eased, false
	return gained, eased
}
