package candidates

import (
	"encoding/binary"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/podview"
)

// Parts of a class: the node's taints, its amounts of counted resources, and what each ranker reads. A few varieties of
// each part make many classes.
const (
	taintPart = iota
	countedPart
	firstRanker
)

// placePart stands for where a node is, which is no part of its class.
const placePart = -1

const none = int32(-1)

// index keeps the nodes of a snapshot by class: by all that scores read of a node. Only nodes that changed since the
// last cycle get a new class.
type index struct {
	rankers []Ranker
	// bases are the bases of the rankers when the nodes were classified.
	bases []any
	// slots are the nodes. A node keeps its slot while it exists; freeSlots are not in use.
	slots     []slot
	freeSlots []int32
	byInfo    map[fwk.NodeInfo]int32
	// order is the slots in the order of the snapshot's list, updates how many lists were compared.
	order   []int32
	updates uint64
	parts   []part
	// classes by number; free are the numbers not in use.
	classes []class
	free    []int32
	byKey   map[string]int32
	images  images
	buffers buffers
}

// buffers is memory that the classification of every node reuses.
type buffers struct {
	partKey   Key
	classKey  []byte
	resources []string
	numbers   []int32
}

// slot is a node as it was last seen.
type slot struct {
	// info is the snapshot's own record of the node, which it updates in place.
	info       fwk.NodeInfo
	object     *v1.Node
	generation int64
	update     uint64
	// class is the node's class, at its place among the members.
	class, at int32
}

// class is a set of nodes that all scores by class rate alike.
type class struct {
	key     string
	members []int32
	// parts are the numbers of the variety of each part.
	parts []int32
	// free is an upper bound of what each member has free.
	free amounts
}

// amounts are thousandths of a CPU, and bytes.
type amounts struct{ milliCPU, memory, storage int64 }

// below reports whether more of something is asked for than there is.
func (a amounts) below(asked amounts) bool {
	return asked.milliCPU > max(a.milliCPU, 0) || asked.memory > max(a.memory, 0) || asked.storage > max(a.storage, 0)
}

// part has the varieties of one part of the classes.
type part struct {
	varieties
	// shown is what Ranker.Class returned for each variety, nil for parts that are no ranker's.
	shown []any
	// kinds are what PreScore tells apart, which is coarser, and kind has the kind of each variety.
	kinds varieties
	kind  []int32
}

// varieties numbers different keys.
type varieties struct {
	byKey map[string]int32
	keys  []string
	// users is how many classes have a variety, or how many varieties are of a kind.
	users []int32
	free  []int32
}

func newIndex(rankers []Ranker) *index {
	x := &index{rankers: rankers, bases: make([]any, len(rankers)), byInfo: map[fwk.NodeInfo]int32{},
		byKey: map[string]int32{}, images: newImages(),
		parts:   make([]part, firstRanker+len(rankers)),
		buffers: buffers{numbers: make([]int32, firstRanker+len(rankers))}}
	for i := range x.parts {
		x.parts[i].byKey, x.parts[i].kinds.byKey = map[string]int32{}, map[string]int32{}
	}
	return x
}

// update brings the index up to the snapshot's list of nodes.
func (x *index) update(list []fwk.NodeInfo) {
	for i, ranker := range x.rankers {
		if basis := ranker.Basis(); basis != x.bases[i] {
			x.bases[i] = basis
			for at := range x.slots {
				x.slots[at].generation = 0 // no node has that
			}
		}
	}
	if len(list) != len(x.order) {
		x.relist(list)
		return
	}
	for i, info := range list {
		s := &x.slots[x.order[i]]
		switch {
		case s.info != info:
			x.relist(list)
			return
		case s.generation != info.GetGeneration():
			x.read(x.order[i])
		}
	}
}

// relist takes over a list with other nodes than before, or in another order.
func (x *index) relist(list []fwk.NodeInfo) {
	x.updates++
	x.order = x.order[:0]
	for _, info := range list {
		at, known := x.byInfo[info]
		if !known {
			at = x.newSlot(info)
		}
		x.slots[at].update = x.updates
		x.order = append(x.order, at)
		if x.slots[at].generation != info.GetGeneration() || x.slots[at].class == none {
			x.read(at)
		}
	}
	for i := range x.slots {
		if s := &x.slots[i]; s.info != nil && s.update != x.updates {
			x.leave(int32(i))
			x.images.set(int32(i), nil)
			delete(x.byInfo, s.info)
			*s = slot{class: none}
			x.freeSlots = append(x.freeSlots, int32(i))
		}
	}
}

func (x *index) newSlot(info fwk.NodeInfo) int32 {
	at := int32(len(x.slots))
	if n := len(x.freeSlots); n > 0 {
		at, x.freeSlots = x.freeSlots[n-1], x.freeSlots[:n-1]
	} else {
		x.slots = append(x.slots, slot{})
	}
	x.slots[at] = slot{info: info, class: none}
	x.byInfo[info] = at
	return at
}

// read moves a node to the class of its current state.
func (x *index) read(at int32) {
	s := &x.slots[at]
	s.generation = s.info.GetGeneration()
	if node := s.info.Node(); node != s.object {
		s.object = node
		x.images.set(at, s.info.GetImageStates())
	}
	b := &x.buffers
	key := b.classKey[:0]
	for i := range x.parts {
		var shown any
		b.partKey.Fixed, b.partKey.All = b.partKey.Fixed[:0], b.partKey.All[:0]
		switch i {
		case taintPart:
			b.partKey.All = appendTaints(b.partKey.All, s.info.Node())
		case countedPart:
			b.partKey.All = b.appendCounted(b.partKey.All, s.info)
		default:
			b.partKey, shown = x.rankers[i-firstRanker].Class(b.partKey, s.info)
		}
		b.numbers[i] = x.parts[i].numberOf(&b.partKey, shown)
		key = binary.AppendUvarint(key, uint64(b.numbers[i]))
	}
	key, free := appendAmounts(key, s.info)
	b.classKey = key
	number, known := x.byKey[string(key)]
	if known && number == s.class {
		return
	}
	if !known {
		number = x.newClass(class{key: string(key), parts: slices.Clone(b.numbers), free: free})
	}
	x.leave(at)
	c := &x.classes[number]
	s.class, s.at = number, int32(len(c.members))
	c.members = append(c.members, at)
}

func (x *index) newClass(c class) int32 {
	for part, variety := range c.parts {
		x.parts[part].users[variety]++
	}
	number := int32(len(x.classes))
	if n := len(x.free); n > 0 {
		number, x.free = x.free[n-1], x.free[:n-1]
		c.members = x.classes[number].members[:0]
		x.classes[number] = c
	} else {
		x.classes = append(x.classes, c)
	}
	x.byKey[c.key] = number
	return number
}

// leave removes a node from its class, and drops a class without members.
func (x *index) leave(at int32) {
	s := &x.slots[at]
	if s.class == none {
		return
	}
	c := &x.classes[s.class]
	last := c.members[len(c.members)-1]
	c.members[s.at] = last
	x.slots[last].at = s.at
	c.members = c.members[:len(c.members)-1]
	if len(c.members) == 0 {
		delete(x.byKey, c.key)
		for i, variety := range c.parts {
			if p := &x.parts[i]; p.release(variety) {
				p.shown[variety] = nil
				p.kinds.release(p.kind[variety])
			}
		}
		*c = class{members: c.members}
		x.free = append(x.free, s.class)
	}
	s.class = none
}

// numberOf returns the number of the variety with the key, and keeps what to show of a new one.
func (p *part) numberOf(key *Key, shown any) int32 {
	kind, _ := p.kinds.number(key.Fixed)
	key.All = binary.AppendUvarint(key.All, uint64(kind))
	number, fresh := p.number(key.All)
	if fresh {
		p.kinds.users[kind]++
		p.kind, p.shown = sized(p.kind, len(p.keys)), sized(p.shown, len(p.keys))
		p.kind[number], p.shown[number] = kind, shown
	}
	return number
}

// number returns the number of a key, and whether it is new. A new one must be given a user.
func (v *varieties) number(key []byte) (number int32, fresh bool) {
	if number, ok := v.byKey[string(key)]; ok {
		return number, false
	}
	if n := len(v.free); n > 0 {
		number, v.free = v.free[n-1], v.free[:n-1]
		v.keys[number] = string(key)
	} else {
		number = int32(len(v.keys))
		v.keys, v.users = append(v.keys, string(key)), append(v.users, 0)
	}
	v.byKey[v.keys[number]] = number
	return number, true
}

// release removes a user of a number, and reports whether it was the last.
func (v *varieties) release(number int32) bool {
	if v.users[number]--; v.users[number] > 0 {
		return false
	}
	delete(v.byKey, v.keys[number])
	v.keys[number] = ""
	v.free = append(v.free, number)
	return true
}

// appendTaints appends the taints of a node, and whether it is unschedulable.
func appendTaints(key []byte, node *v1.Node) []byte {
	if node.Spec.Unschedulable {
		key = append(key, 1)
	}
	for i := range node.Spec.Taints {
		key = append(append(key, node.Spec.Taints[i].ToString()...), 0)
	}
	return key
}

// appendAmounts appends what scores of kube-scheduler read of a node's CPU, memory and disk, and returns an upper bound
// of what is free.
func appendAmounts(key []byte, info fwk.NodeInfo) ([]byte, amounts) {
	allocatable, requested, nonZero := info.GetAllocatable(), info.GetRequested(), info.GetNonZeroRequested()
	memory, storage := podview.CoarseStep(allocatable.GetMemory()), podview.CoarseStep(allocatable.GetEphemeralStorage())
	for _, amount := range [...]int64{
		allocatable.GetMilliCPU(), requested.GetMilliCPU(), nonZero.GetMilliCPU(),
		allocatable.GetMemory() / memory, requested.GetMemory() / memory, nonZero.GetMemory() / memory,
		allocatable.GetEphemeralStorage() / storage, requested.GetEphemeralStorage() / storage,
	} {
		key = binary.AppendVarint(key, amount)
	}
	return key, amounts{
		milliCPU: allocatable.GetMilliCPU() - requested.GetMilliCPU(),
		memory:   (allocatable.GetMemory()/memory+1)*memory - requested.GetMemory()/memory*memory,
		storage:  (allocatable.GetEphemeralStorage()/storage+1)*storage - requested.GetEphemeralStorage()/storage*storage,
	}
}

// appendCounted appends the allocatable and the requested amounts of counted resources of a node, and whether it has
// the most pods that it may have.
func (b *buffers) appendCounted(key []byte, info fwk.NodeInfo) []byte {
	if len(info.GetPods()) >= info.GetAllocatable().GetAllowedPodNumber() {
		key = append(key, 1)
	}
	key = append(key, 0)
	for _, scalars := range [...]map[v1.ResourceName]int64{info.GetAllocatable().GetScalarResources(),
		info.GetRequested().GetScalarResources()} {
		b.resources = b.resources[:0]
		for name := range maps.Keys(scalars) {
			b.resources = append(b.resources, string(name))
		}
		slices.Sort(b.resources)
		for _, name := range b.resources {
			if amount := scalars[v1.ResourceName(name)]; amount != 0 {
				key = binary.AppendVarint(append(append(key, name...), 0), amount)
			}
		}
		key = append(key, 0)
	}
	return key
}
