package capacity

import (
	"iter"
	"maps"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	apitypes "k8s.io/apimachinery/pkg/types"

	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/process"
)

// Index is a rough count of the free capacity of every node, fed by the scheduler's cache. For each live shape of pods
// it knows how many fit at most. It is optimistic: a pod that fits a node by the profile's filters fits by this index,
// but not the other way round, because ports, devices, volumes and rules between pods are not in it. A gang that does
// not fit by this index need not be tried.
//
// An event counts what it changes on its node for all shapes. Slots are kept in total only. Each placement rule, which
// many shapes share, has a byte for each node.
//
// Its methods may be called from any goroutine.
type Index struct {
	*store
	Feed    Feed
	Looks   Looks
	Cluster Cluster
}

// Feed is the part of an index that is told which nodes and pods come, change and go.
type Feed struct{ *store }

// store is the state that all parts of an index share.
type store struct {
	mu sync.Mutex
	// profiles have the filters that decide where a pod may be.
	profiles  *process.Profiles
	resources resources
	nodes     nodes
	pods      boundPods
	shapes    shapes
	looks     looks
	memo      memo
}

// nodes holds the nodes by slot, nil where a slot is unused, and by name.
type nodes struct {
	slots  []*nodeEntry
	unused []int
	byName map[string]*nodeEntry
	// present counts the nodes that exist, as opposed to those known only by their pods.
	present int
}

// existing are the nodes that exist, by slot.
func (n *nodes) existing() iter.Seq2[int, *nodeEntry] {
	return func(yield func(int, *nodeEntry) bool) {
		for i, at := range n.slots {
			if at != nil && at.node != nil && !yield(i, at) {
				return
			}
		}
	}
}

// shapes holds the live shapes, and the placement rules that they share.
type shapes struct {
	byKey map[ShapeKey]*shape
	live  []*shape
	rules map[string]*placementRule
	// before has what fitted on a node, by shape, while that node changes.
	before []slots
}

// memo holds answers until something changes.
type memo struct {
	// domains says which node lies in which domain, by label keys, until a node changes.
	domains map[string]*partition
	// besides is what is left besides kept capacity, until something changes or gangs are looked at.
	besides []*besides
}

// nodeEntry is a node with its pods.
type nodeEntry struct {
	name string
	slot int
	// node is nil while only pods of the node are known.
	node *v1.Node
	// has and used are in thousandths of a CPU and in units of everything else.
	has, used []int64
	pods      []*podEntry
	// members is how many of the pods are in a gang.
	members int
	// freed is the number of the look at gangs that sees what last became free here.
	freed uint64
}

// New returns an index without nodes. Plugins that the profiles ask about their traits must not call the index.
func New(profiles *process.Profiles) *Index {
	x := &store{
		profiles:  profiles,
		resources: resources{profiles: profiles, index: map[v1.ResourceName]int{}},
		nodes:     nodes{byName: map[string]*nodeEntry{}},
		pods:      boundPods{byUID: map[apitypes.UID]*podEntry{}, priorities: priorityCount{}, leaving: priorityCount{}},
		shapes:    shapes{byKey: map[ShapeKey]*shape{}, rules: map[string]*placementRule{}},
		memo:      memo{domains: map[string]*partition{}},
	}
	for _, name := range []v1.ResourceName{v1.ResourcePods, v1.ResourceCPU, v1.ResourceMemory,
		v1.ResourceEphemeralStorage} {
		x.position(name)
	}
	return &Index{x, Feed{x}, Looks{x}, Cluster{x}}
}

// SetNode records a node that came or changed.
func (x *Feed) SetNode(node *v1.Node) {
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
	n.freed = x.looks.asked + 1
	x.change(n, true, func() {
		x.offer(has, 1)
		x.offer(n.has, -1)
		n.node, n.has = node, has
		if old == nil {
			x.nodes.present++
		}
	})
}

// altered reports whether a node changed in a way that can matter to a pod, its allocatable resources aside.
func altered(old, node *v1.Node) bool {
	return old.Spec.Unschedulable != node.Spec.Unschedulable ||
		!maps.Equal(old.Labels, node.Labels) ||
		!maps.Equal(old.Annotations, node.Annotations) ||
		podview.FailingHardware(old) != podview.FailingHardware(node) ||
		!slices.EqualFunc(old.Spec.Taints, node.Spec.Taints, func(a, b v1.Taint) bool {
			return a.Key == b.Key && a.Value == b.Value && a.Effect == b.Effect
		})
}

// DropNode forgets a node. Its pods stay known until they go.
func (x *Feed) DropNode(name string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	n := x.nodes.byName[name]
	if n == nil || n.node == nil {
		return
	}
	x.change(n, true, func() {
		x.offer(n.has, -1)
		n.node, n.has = nil, make([]int64, len(x.resources.names))
		x.nodes.present--
	})
}

// at returns the entry of the node, which may be reported after its pods.
func (x *store) at(name string) *nodeEntry {
	n := x.nodes.byName[name]
	if n != nil {
		return n
	}
	r := len(x.resources.names)
	n = &nodeEntry{name: name, has: make([]int64, r), used: make([]int64, r)}
	if last := len(x.nodes.unused) - 1; last >= 0 {
		n.slot, x.nodes.unused = x.nodes.unused[last], x.nodes.unused[:last]
		x.nodes.slots[n.slot] = n
	} else {
		n.slot = len(x.nodes.slots)
		x.nodes.slots = append(x.nodes.slots, n)
		for _, r := range x.shapes.rules {
			r.verdicts = append(r.verdicts, absent)
		}
	}
	x.nodes.byName[name] = n
	return n
}

// change changes a node, itself if altered is set and else only its pods, and counts the difference for all shapes. A
// node that is left without an object and without pods is forgotten.
func (x *store) change(n *nodeEntry, altered bool, by func()) {
	x.looks.changes++
	x.memo.besides = nil
	x.shapes.before = x.shapes.before[:0]
	for _, s := range x.shapes.live {
		x.shapes.before = append(x.shapes.before, s.slots(n, altered))
	}
	offered := x.resources.changes
	by()
	if altered {
		clear(x.memo.domains)
		for _, r := range x.shapes.rules {
			r.verdicts[n.slot] = r.judge(n.node)
		}
	}
	if x.resources.changes > offered {
		x.rebound(n)
	}
	for i, s := range x.shapes.live {
		after := s.slots(n, altered)
		s.count(x.shapes.before[i], after)
		s.gained = s.gained || after.empty > 0
	}
	if n.node == nil && len(n.pods) == 0 {
		delete(x.nodes.byName, n.name)
		x.nodes.slots[n.slot] = nil
		x.nodes.unused = append(x.nodes.unused, n.slot)
	}
}

// rebound finds the bounds of all shapes again, and counts the difference on all nodes but one.
func (x *store) rebound(but *nodeEntry) {
	for _, s := range x.shapes.live {
		before := &shape{rule: s.rule, bounds: s.bounds}
		if s.bounds = x.resources.bounds(s.asks); slices.Equal(before.bounds, s.bounds) {
			continue
		}
		for _, n := range x.nodes.existing() {
			if n != but {
				s.count(before.slots(n, true), s.slots(n, true))
			}
		}
	}
}

// position gives a resource that a node offers its place in all vectors.
func (x *store) position(name v1.ResourceName) {
	if _, known := x.resources.index[name]; known {
		return
	}
	x.memo.besides = nil
	i := len(x.resources.names)
	x.resources.index[name] = i
	x.resources.names = append(x.resources.names, name)
	x.resources.offered = append(x.resources.offered, 0)
	for _, n := range x.nodes.byName {
		n.has, n.used = append(n.has, 0), append(n.used, 0)
	}
	for _, p := range x.pods.byUID {
		x.uncover(p, name, i)
	}
}

// vector returns the amounts in the order of the resources' positions.
func (x *store) vector(amounts map[v1.ResourceName]int64) []int64 {
	for _, name := range slices.Sorted(maps.Keys(amounts)) {
		x.position(name)
	}
	v := make([]int64, len(x.resources.names))
	for name, amount := range amounts {
		v[x.resources.index[name]] = amount
	}
	return v
}

// offer counts a node in or out that offers resources.
func (x *store) offer(has []int64, by int) {
	for i, amount := range has {
		if amount == 0 {
			continue
		}
		before := x.resources.offered[i]
		x.resources.offered[i] += by
		if before == 0 || x.resources.offered[i] == 0 {
			x.resources.changes++
		}
	}
}

// ClassesChanged tells the index that device classes came, changed or went.
func (x *Feed) ClassesChanged() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.looks.changes++
	x.memo.besides = nil
	x.rebound(nil)
}
