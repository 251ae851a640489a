package candidates

import (
	"encoding/binary"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/podview"
)

// Parts of a class: what a node's taints say, what it has left of things that are counted, and what each ranker reads.
// Few varieties of a part make many classes.
const (
	doorPart = iota
	countedPart
	firstRanker
)

// placePart is no part: what nodes of one class differ in.
const placePart = -1

const none = int32(-1)

// index keeps the nodes of a snapshot by class: by all that scores read of a node. Only nodes that changed since the
// last cycle get a new class.
type index struct {
	rankers []Ranker
	// bases are those of the rankers when the nodes were classified.
	bases []any
	// slots are the nodes. A slot is a node's own while it exists; freeSlots were given up.
	slots     []slot
	freeSlots []int32
	byInfo    map[fwk.NodeInfo]int32
	// order is the slots in the order of the snapshot's list, updates how many lists were compared.
	order   []int32
	updates uint64
	parts   []varieties
	// kinds are what PreScore of each ranker tells apart: coarser than the varieties of its part.
	kinds []varieties
	// classes by number; free are the numbers not in use.
	classes []class
	free    []int32
	byKey   map[string]int32
	images  images

	partKey   Key
	classKey  []byte
	resources []string
	numbers   []int32
}

// slot is a node in the state in which it was last seen.
type slot struct {
	// info is the snapshot's own record of the node, which it updates in place.
	info       fwk.NodeInfo
	object     *v1.Node
	generation int64
	update     uint64
	// class is the node's class, at its place among the members.
	class, at int32
}

// class is a set of nodes between which no score decides.
type class struct {
	key     string
	members []int32
	// parts are the numbers of the variety of each part.
	parts []int32
	// free is at most what members have left.
	free amounts
}

// amounts are thousandths of a CPU, and bytes.
type amounts struct{ milliCPU, memory, storage int64 }

// below says whether more of something is asked for than there is.
func (a amounts) below(asked amounts) bool {
	return asked.milliCPU > max(a.milliCPU, 0) || asked.memory > max(a.memory, 0) || asked.storage > max(a.storage, 0)
}

// varieties number the different contents of one part of the classes.
type varieties struct {
	byKey map[string]int32
	keys  []string
	// shown is what the ranker wants to be shown of a variety, nil for parts that are no ranker's.
	shown []any
	// kind is the number of the kind of a variety.
	kind []int32
	// users is how many classes, or for a kind how many varieties, there are of each.
	users []int32
	free  []int32
}

func newIndex(rankers []Ranker) *index {
	x := &index{rankers: rankers, bases: make([]any, len(rankers)), byInfo: map[fwk.NodeInfo]int32{},
		byKey: map[string]int32{}, images: newImages(),
		parts: make([]varieties, firstRanker+len(rankers)), kinds: make([]varieties, firstRanker+len(rankers)),
		numbers: make([]int32, firstRanker+len(rankers))}
	for i := range x.parts {
		x.parts[i].byKey, x.kinds[i].byKey = map[string]int32{}, map[string]int32{}
	}
	return x
}

// update brings the index up to the snapshot's list of nodes.
func (x *index) update(list []fwk.NodeInfo) {
	for i, ranker := range x.rankers {
		if basis := ranker.Basis(); basis != x.bases[i] {
			x.bases[i] = basis
			for at := range x.slots {
				x.slots[at].generation = 0 // no state of a node has that
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

// read puts a node into the class of its present state.
func (x *index) read(at int32) {
	s := &x.slots[at]
	s.generation = s.info.GetGeneration()
	if node := s.info.Node(); node != s.object {
		s.object = node
		x.images.set(at, s.info.GetImageStates())
	}
	key := x.classKey[:0]
	for part := range x.parts {
		var shown any
		x.partKey.Fixed, x.partKey.All = x.partKey.Fixed[:0], x.partKey.All[:0]
		switch part {
		case doorPart:
			x.partKey.All = appendDoor(x.partKey.All, s.info.Node())
		case countedPart:
			x.partKey.All = x.appendCounted(x.partKey.All, s.info)
		default:
			x.partKey, shown = x.rankers[part-firstRanker].Class(x.partKey, s.info)
		}
		kind, _ := x.kinds[part].number(x.partKey.Fixed)
		x.partKey.All = binary.AppendUvarint(x.partKey.All, uint64(kind))
		number, fresh := x.parts[part].number(x.partKey.All)
		if fresh {
			x.kinds[part].users[kind]++
			x.parts[part].kind[number], x.parts[part].shown[number] = kind, shown
		}
		x.numbers[part] = number
		key = binary.AppendUvarint(key, uint64(number))
	}
	key, free := appendAmounts(key, s.info)
	x.classKey = key
	number, known := x.byKey[string(key)]
	if known && number == s.class {
		return
	}
	if !known {
		number = x.newClass(class{key: string(key), parts: slices.Clone(x.numbers), free: free})
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

// leave takes a node out of its class, and drops a class that it leaves empty.
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
		for part, variety := range c.parts {
			if kind := x.parts[part].kind[variety]; x.parts[part].release(variety) {
				x.kinds[part].release(kind)
			}
		}
		*c = class{members: c.members}
		x.free = append(x.free, s.class)
	}
	s.class = none
}

// number returns that of a variety, and whether it is new. A new one must be given a user.
func (v *varieties) number(key []byte) (number int32, fresh bool) {
	if number, ok := v.byKey[string(key)]; ok {
		return number, false
	}
	if n := len(v.free); n > 0 {
		number, v.free = v.free[n-1], v.free[:n-1]
		v.keys[number] = string(key)
	} else {
		number = int32(len(v.keys))
		v.keys, v.shown = append(v.keys, string(key)), append(v.shown, nil)
		v.kind, v.users = append(v.kind, none), append(v.users, 0)
	}
	v.byKey[v.keys[number]] = number
	return number, true
}

// release takes a user from a variety and reports whether it was the last.
func (v *varieties) release(number int32) bool {
	if v.users[number]--; v.users[number] > 0 {
		return false
	}
	delete(v.byKey, v.keys[number])
	v.keys[number], v.shown[number] = "", nil
	v.free = append(v.free, number)
	return true
}

// appendDoor appends what keeps pods off a node that do not tolerate it.
func appendDoor(key []byte, node *v1.Node) []byte {
	if node.Spec.Unschedulable {
		key = append(key, 1)
	}
	for i := range node.Spec.Taints {
		key = append(append(key, node.Spec.Taints[i].ToString()...), 0)
	}
	return key
}

// appendAmounts appends what stock scores read of a node's CPU, memory and disk, and returns what is free at most.
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

// appendCounted appends what a node has and what is taken of the resources that are counted one by one, and whether it
// holds as many pods as it may.
func (x *index) appendCounted(key []byte, info fwk.NodeInfo) []byte {
	if len(info.GetPods()) >= info.GetAllocatable().GetAllowedPodNumber() {
		key = append(key, 1)
	}
	key = append(key, 0)
	for _, scalars := range [...]map[v1.ResourceName]int64{info.GetAllocatable().GetScalarResources(),
		info.GetRequested().GetScalarResources()} {
		x.resources = x.resources[:0]
		for name := range maps.Keys(scalars) {
			x.resources = append(x.resources, string(name))
		}
		slices.Sort(x.resources)
		for _, name := range x.resources {
			if amount := scalars[v1.ResourceName(name)]; amount != 0 {
				key = binary.AppendVarint(append(append(key, name...), 0), amount)
			}
		}
		key = append(key, 0)
	}
	return key
}
