package coscheduling

import (
	"maps"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	apitypes "k8s.io/apimachinery/pkg/types"

	"berth.dev/berth/pkg/podview"
)

// headroom is a rough account of the free capacity of every node, fed by informers. For each live shape of pods it knows
// how many fit at most. It is optimistic: a pod that fits a node by the profile's filters fits by this account, but not the
// other way round, because ports, devices, volumes and rules between pods are not in it. A gang that does not fit by
// this account need not be tried.
//
// An event only marks its node. The next question compares the marked nodes with what they were, for all shapes at once.
// Slots are kept in total only. For each node there is a byte for each placement rule, which many shapes share.
//
// Its methods may be called from any goroutine.
type headroom struct {
	mu sync.Mutex
	// claimed reports whether a device class hands out a resource. It is called with mu held.
	claimed func(v1.ResourceName) bool
	// filters returns the filters that decide where the pod may be.
	filters func(*v1.Pod) *stockFilters

	// resources holds the resources that a node has ever offered; their positions are those of all vectors. What only pods
	// name is not among them, since users may name what they like.
	resources []v1.ResourceName
	index     map[v1.ResourceName]int
	// offered counts the nodes that offer a resource, by position.
	offered []int

	// nodes holds the nodes by slot, nil where a slot is unused.
	nodes  []*headNode
	unused []int
	byName map[string]*headNode
	// present counts the nodes that exist, as opposed to those of which only pods are known.
	present int
	// dirty holds the nodes that have changed since the shapes were last brought up to date.
	dirty []*headNode

	pods map[apitypes.UID]*headPod
	// priorities counts the bound pods that could be evicted, leaving those that terminate.
	priorities, leaving priorityCount

	shapes map[shapeKey]*shape
	live   []*shape
	rules  map[string]*placementRule
	// stale is set if a live shape is.
	stale bool
	// eased is set if a bound pod went or changed in a way that no shape shows.
	eased bool
	// settled counts how often the shapes were brought up to date.
	settled uint64
	// asked counts how often gangs were looked at, answered is the last time after which those that may fit were in the queue.
	asked, answered uint64
	// domains caches which node lies in which domain, by label keys, until a node changes.
	domains map[string]*partition
}

// headNode is a node as it is, and as it was when the shapes were last brought up to date.
type headNode struct {
	name string
	slot int
	// node is nil while only pods of the node are known.
	node *v1.Node
	// has and used are in thousandths of a CPU and in units of everything else.
	has, used []int64
	pods      []*headPod
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

// newHeadroom returns an account without nodes. claimed reports whether a device class hands out a resource, filters returns the
// filters that decide where a pod may be; they must not call the account.
func newHeadroom(claimed func(v1.ResourceName) bool, filters func(*v1.Pod) *stockFilters) *headroom {
	h := &headroom{
		claimed:    claimed,
		filters:    filters,
		index:      map[v1.ResourceName]int{},
		byName:     map[string]*headNode{},
		pods:       map[apitypes.UID]*headPod{},
		priorities: priorityCount{}, leaving: priorityCount{},
		shapes:  map[shapeKey]*shape{},
		rules:   map[string]*placementRule{},
		domains: map[string]*partition{},
	}
	for _, name := range []v1.ResourceName{v1.ResourcePods, v1.ResourceCPU, v1.ResourceMemory, v1.ResourceEphemeralStorage} {
		h.position(name)
	}
	return h
}

// setNode records a node that came or changed.
func (h *headroom) setNode(node *v1.Node) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := h.at(node.Name)
	old := n.node
	has := h.vector(podview.AllocatableOf(node))
	if old != nil && slices.Equal(has, n.has) && !altered(old, node) {
		// Most updates are heartbeats.
		n.node = node
		return
	}
	h.mark(n)
	n.altered, n.freed = true, h.asked+1
	h.offer(has, 1)
	h.offer(n.has, -1)
	n.node, n.has = node, has
	if old == nil {
		h.present++
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

// dropNode forgets a node. Its pods stay known until they go.
func (h *headroom) dropNode(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := h.byName[name]
	if n == nil || n.node == nil {
		return
	}
	h.mark(n)
	n.altered = true
	h.offer(n.has, -1)
	n.node, n.has = nil, make([]int64, len(h.resources))
	h.present--
}

// at returns the account of the node, which may come after its pods.
func (h *headroom) at(name string) *headNode {
	n := h.byName[name]
	if n != nil {
		return n
	}
	r := len(h.resources)
	n = &headNode{name: name, has: make([]int64, r), used: make([]int64, r), wasHas: make([]int64, r), wasUsed: make([]int64, r)}
	if last := len(h.unused) - 1; last >= 0 {
		n.slot, h.unused = h.unused[last], h.unused[:last]
		h.nodes[n.slot] = n
	} else {
		n.slot = len(h.nodes)
		h.nodes = append(h.nodes, n)
		for _, r := range h.rules {
			r.verdicts = append(r.verdicts, absent)
		}
	}
	h.byName[name] = n
	// A node without an object and without pods is forgotten when it is compared.
	h.mark(n)
	return n
}

// mark remembers the node as it is, to be compared with what it becomes.
func (h *headroom) mark(n *headNode) {
	if n.dirty {
		return
	}
	n.dirty, n.altered = true, false
	copy(n.wasHas, n.has)
	copy(n.wasUsed, n.used)
	h.dirty = append(h.dirty, n)
}

// position gives a resource that a node offers its place in all vectors.
func (h *headroom) position(name v1.ResourceName) {
	if _, known := h.index[name]; known {
		return
	}
	i := len(h.resources)
	h.index[name] = i
	h.resources = append(h.resources, name)
	h.offered = append(h.offered, 0)
	for _, n := range h.byName {
		n.has, n.used = append(n.has, 0), append(n.used, 0)
		n.wasHas, n.wasUsed = append(n.wasHas, 0), append(n.wasUsed, 0)
	}
	for _, p := range h.pods {
		h.uncover(p, name, i)
	}
}

// vector returns the amounts in the order of the resources' positions.
func (h *headroom) vector(amounts map[v1.ResourceName]int64) []int64 {
	for _, name := range slices.Sorted(maps.Keys(amounts)) {
		h.position(name)
	}
	v := make([]int64, len(h.resources))
	for name, amount := range amounts {
		v[h.index[name]] = amount
	}
	return v
}

// offer counts a node that offers resources in or out. Shapes that ask for a resource whose first or last node this is
// are counted from the start.
func (h *headroom) offer(has []int64, by int) {
	for i, amount := range has {
		if amount == 0 {
			continue
		}
		before := h.offered[i]
		h.offered[i] += by
		if before > 0 && h.offered[i] > 0 {
			continue
		}
		for _, s := range h.live {
			if s.asksFor(h.resources[i]) {
				s.stale, h.stale = true, true
			}
		}
	}
}

// classesChanged tells the account that device classes came, changed or went.
func (h *headroom) classesChanged() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.live {
		if !slices.Equal(s.bounds, h.bounds(s.asks)) {
			s.stale, h.stale = true, true
		}
	}
}

// settle brings all shapes up to date with the nodes that have changed.
func (h *headroom) settle() {
	if len(h.dirty) == 0 && !h.stale {
		return
	}
	h.settled++
	var changed []*headNode
	for _, n := range h.dirty {
		if n.altered {
			n.place = len(changed)
			changed = append(changed, n)
		}
	}
	if len(changed) > 0 {
		clear(h.domains)
		for _, r := range h.rules {
			r.judgeAgain(changed)
		}
	}
	for _, s := range h.live {
		if s.stale {
			h.recount(s)
			s.stale = false
			continue
		}
		for _, n := range h.dirty {
			s.compare(n, s.bounds)
		}
	}
	for _, n := range h.dirty {
		n.dirty = false
		if n.node == nil && len(n.pods) == 0 {
			delete(h.byName, n.name)
			h.nodes[n.slot] = nil
			h.unused = append(h.unused, n.slot)
		}
	}
	clear(h.dirty)
	h.dirty, h.stale = h.dirty[:0], false
}

// state is another after each change of the cluster that the account sees.
func (h *headroom) state() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.settle()
	return h.settled
}

// recount counts a shape on all nodes, because what bounds it may have changed.
func (h *headroom) recount(s *shape) {
	before := s.bounds
	s.bounds = h.bounds(s.asks)
	for _, n := range h.nodes {
		if n != nil {
			s.compare(n, before)
		}
	}
}

// refresh begins a look at gangs. It returns the shapes that gained since it was last called: more of their pods fit on some node, or a node on
// which they fit if it is empty came or changed its labels, annotations, taints or resources. eased reports whether a bound
// pod went or changed otherwise, which may help pods that are blocked for reasons that are not in this account.
func (h *headroom) refresh() (gained []shapeKey, eased bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked++
	h.settle()
	for _, s := range h.live {
		if s.gained {
			s.gained = false
			gained = append(gained, s.key)
		}
	}
	eased, h.eased = h.eased, false
	return gained, eased
}
