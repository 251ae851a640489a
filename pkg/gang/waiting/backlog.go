package waiting

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	apitypes "k8s.io/apimachinery/pkg/types"

	"berth.dev/berth/pkg/capacity"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/members"
	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/minheap"
)

const (
	// leastAtOnce is how many pods are tried at a time at least. Pods that differ may all want the room that one pod has
	// left, and then one of them gets it. So there is one more at a time, up to mostAtOnce, for each that gets a node,
	// and half of them after one that does not.
	leastAtOnce, mostAtOnce = 4, 1024
	// triedFor is how long a pod counts as being tried that neither gets a node nor fails, such as one whose volumes are
	// being made. Others are not tried meanwhile for the room that it may take.
	triedFor = 10 * time.Second
	// mostShapes bounds how many shapes wait: each change of a node is compared for all of them.
	mostShapes = 16_384
)

// Backlog owns the pods for which no node has room and that are tried alone: those in no gang, and members of gangs
// that have started. Next is called by one goroutine, the rest by any.
type Backlog struct {
	capacity *capacity.Index
	members  *members.Directory
	// seen is the last look at gangs that had ended when the scheduling cycle began that runs now.
	seen atomic.Uint64

	mu    sync.RWMutex
	known map[apitypes.UID]state
	// awake counts the pods that wait awake.
	awake int
	// failed and gone are what Next has not seen yet.
	failed []failure
	gone   []apitypes.UID

	// The rest is for Next alone.
	pods   map[apitypes.UID]*waiting
	shapes map[capacity.ShapeKey]*shape
	// preemptors are by priority.
	preemptors map[int32]*preemptors
	// roomy are the shapes for which there may be room.
	roomy map[*shape]bool
	// tried are the pods that were named, the oldest first; some of them are done. trying counts those that are not,
	// and atOnce is how many there may be.
	tried          []*waiting
	trying, atOnce int
	shut           shut
}

// state is what is known of a pod outside of Next.
type state int

const (
	// unseen is a pod that has failed and that Next has not seen yet. Events wake it, as they wake one that is tried.
	unseen state = iota + 1
	waits
	// waitsAwake is a pod that waits and that events wake, too: less important pods could be evicted for it. They wake it
	// once Next has named those that come first.
	waitsAwake
	tried
)

// failure is a pod for which no node was found, its place in the queue, and the last look at gangs that had ended when
// its cycle began.
type failure struct {
	pod  *v1.Pod
	key  gang.Key
	seen uint64
}

// waiting is a pod that waits for room or is tried.
type waiting struct {
	failure
	shape *shape
	// triedAt is when it was named, zero while it waits; done is set once it is owned no more.
	triedAt time.Time
	done    bool
}

// shape is the pods of one shape.
type shape struct {
	key     capacity.ShapeKey
	waiting minheap.Heap[*waiting]
	// owned counts those that wait or are tried, trying those that are tried.
	owned, trying int
}

// NewBacklog returns a backlog without pods. members has the pods as they are now.
func NewBacklog(index *capacity.Index, holds Holds, members *members.Directory) *Backlog {
	return &Backlog{capacity: index, members: members, known: map[apitypes.UID]state{},
		pods: map[apitypes.UID]*waiting{}, shapes: map[capacity.ShapeKey]*shape{}, roomy: map[*shape]bool{},
		preemptors: map[int32]*preemptors{}, atOnce: leastAtOnce, shut: shut{holds: holds}}
}

// Holds reports whether events must not wake the pod. It is called under the lock of kube-scheduler's queue.
func (b *Backlog) Holds(uid apitypes.UID) bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.known[uid] == waits
}

// Count returns how many pods are held, and how many of them wait awake.
func (b *Backlog) Count() (held, awake int) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return len(b.known), b.awake
}

// set changes the state of a pod, zero if it is held no more. The lock is held.
func (b *Backlog) set(uid apitypes.UID, to state) {
	if b.known[uid] == waitsAwake {
		b.awake--
	}
	if to == waitsAwake {
		b.awake++
	}
	if to == 0 {
		delete(b.known, uid)
	} else {
		b.known[uid] = to
	}
}

// Begin takes note that a scheduling cycle begins. What comes free from now on its pod may not see.
func (b *Backlog) Begin() { b.seen.Store(b.capacity.Looks.Answered()) }

// FreedUnseen reports whether something has come free on the node for which those that come first may not have been in
// the queue when the scheduling cycle began that runs now. Its pod may be one of them, or one that was ahead of them.
func (b *Backlog) FreedUnseen(node string) bool { return b.capacity.Looks.FreedOn(node, b.seen.Load()) }

// Failed takes note of a pod that is tried alone, about to be back in kube-scheduler's queue, for which no node with
// enough room was found.
func (b *Backlog) Failed(pod *v1.Pod, key gang.Key) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.set(pod.UID, unseen)
	b.failed = append(b.failed, failure{pod, key, b.seen.Load()})
}

// Gone takes note of a pod that has a node or is deleted, once the account of free capacity knows.
func (b *Backlog) Gone(uid apitypes.UID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.known[uid] != 0 {
		b.set(uid, 0)
		b.gone = append(b.gone, uid)
	}
}

// Next returns the pods to try now: those that come first of all for which there may be room, and no more than there is
// room for by the account. gained are the shapes for which there is more room than before.
func (b *Backlog) Next(gained []capacity.ShapeKey, now time.Time) []*v1.Pod {
	b.takeNews(now)
	b.watchPreemptors()
	more := false
	for _, key := range gained {
		if s := b.shapes[key]; s != nil {
			b.roomy[s], more = true, true
		}
	}
	next := b.letIn(more, now)
	if len(b.roomy) == 0 || b.trying >= b.atOnce {
		return next
	}
	heads := minheap.Heap[*shape]{Compare: func(a, b *shape) int { return first(a.waiting.Items[0], b.waiting.Items[0]) }}
	for s := range b.roomy {
		if b.hasRoom(s) {
			heads.Items = append(heads.Items, s)
		}
	}
	heads.Init()
	for b.trying < b.atOnce && heads.Len() > 0 {
		s := heads.Items[0]
		next = append(next, b.try(s.waiting.Pop(), now))
		if b.hasRoom(s) {
			heads.Fix()
		} else {
			heads.Pop()
		}
	}
	return next
}

// LeavesOut reports whether Next left out a pod that comes before the place in the queue, and for which there may be
// room, because others are being tried.
func (b *Backlog) LeavesOut(before gang.Key) bool {
	if b.trying < b.atOnce {
		return false
	}
	for s := range b.roomy {
		if b.hasRoom(s) && s.waiting.Items[0].key.Less(before) {
			return true
		}
	}
	return false
}

// Heads returns the places in the queue of those that come first: of each shape, and of those that may not use what is
// free.
func (b *Backlog) Heads() []gang.Key {
	var heads []gang.Key
	for _, s := range b.shapes {
		if w := s.head(); w != nil {
			heads = append(heads, w.key)
		}
	}
	// Those that are gone are left out when they are next looked at.
	waits := slices.IndexFunc(b.shut.pods, func(w *waiting) bool { return !w.done && w.triedAt.IsZero() })
	if waits >= 0 {
		heads = append(heads, b.shut.pods[waits].key)
	}
	return heads
}

// head is the pod of the shape that comes first, nil if none waits.
func (s *shape) head() *waiting {
	for s.waiting.Len() > 0 {
		if w := s.waiting.Items[0]; !w.done {
			return w
		}
		s.waiting.Pop()
	}
	return nil
}

// hasRoom reports whether there may be room for another pod of the shape, and forgets that there was if there is none.
// Where that is kept from the pod, its try tells so.
func (b *Backlog) hasRoom(s *shape) bool {
	slots, _ := b.capacity.Slots(s.key)
	if s.head() != nil && slots > s.trying {
		return true
	}
	delete(b.roomy, s)
	return false
}

// first orders pods as they are tried.
func first(a, b *waiting) int {
	switch {
	case a.key.Less(b.key):
		return -1
	case b.key.Less(a.key):
		return 1
	}
	return cmp.Compare(a.pod.UID, b.pod.UID)
}

// try notes that the pod is tried.
func (b *Backlog) try(w *waiting, now time.Time) *v1.Pod {
	w.triedAt = now
	w.shape.trying++
	b.trying++
	b.tried = append(b.tried, w)
	b.mark(w.pod.UID, tried)
	return w.pod
}

// mark changes the state of a pod that is not gone.
func (b *Backlog) mark(uid apitypes.UID, to state) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.known[uid] != 0 {
		b.set(uid, to)
	}
}

// takeNews learns what came of pods that were tried, and takes in those for which there is no room.
func (b *Backlog) takeNews(now time.Time) {
	b.mu.Lock()
	failed, gone := b.failed, b.gone
	b.failed, b.gone = nil, nil
	b.mu.Unlock()
	for _, f := range failed {
		if w := b.pods[f.pod.UID]; w != nil {
			if !w.triedAt.IsZero() {
				b.atOnce = max(leastAtOnce, b.atOnce/2)
			}
			b.end(w)
		}
		if !b.takeIn(f) {
			b.forget(f.pod.UID)
		}
	}
	for _, uid := range gone {
		if w := b.pods[uid]; w != nil {
			if !w.triedAt.IsZero() {
				b.atOnce = min(mostAtOnce, b.atOnce+1)
			}
			b.end(w)
		}
	}
	for len(b.tried) > 0 && (b.tried[0].done || now.Sub(b.tried[0].triedAt) >= triedFor) {
		if w := b.tried[0]; !w.done {
			b.end(w)
			b.forget(w.pod.UID)
		}
		b.tried[0] = nil
		b.tried = b.tried[1:]
	}
}

// takeIn has a pod wait for which no node has room, and reports whether it is such a pod. One for which room came free
// since its cycle began waits, too, to be tried by its place in the queue.
func (b *Backlog) takeIn(f failure) bool {
	if pod := b.members.Pod(read.RefOf(f.pod)); pod == nil || pod.Spec.NodeName != "" {
		return false
	}
	key := b.capacity.Acquire(f.pod)
	s := b.shapes[key]
	slots, _ := b.capacity.Slots(key)
	free := slots > 0 && b.slotsFor(key, f.pod) > 0
	if free && !b.capacity.Looks.FreedFor(key, f.seen) || s == nil && len(b.shapes) >= mostShapes {
		b.capacity.Release(key)
		return false
	}
	if s != nil {
		b.capacity.Release(key) // it is held once for all
	} else {
		s = &shape{key: key, waiting: minheap.Heap[*waiting]{Compare: first}}
		b.shapes[key] = s
	}
	s.owned++
	w := &waiting{failure: f, shape: s}
	if slots > 0 && !free {
		b.shutOut(w)
	} else {
		s.waiting.Push(w)
		if free {
			b.roomy[s] = true
		}
	}
	b.pods[f.pod.UID] = w
	b.mark(f.pod.UID, b.countPreemptor(w))
	return true
}

// end owns the pod no more.
func (b *Backlog) end(w *waiting) {
	s := w.shape
	w.done = true
	delete(b.pods, w.pod.UID)
	if p := b.preemptors[w.priority()]; p != nil && w.preempts() {
		if p.pods--; p.pods == 0 {
			delete(b.preemptors, w.priority())
		}
	}
	s.owned--
	if !w.triedAt.IsZero() {
		s.trying--
		b.trying--
		b.roomy[s] = true
	}
	if s.owned == 0 {
		delete(b.shapes, s.key)
		delete(b.roomy, s)
		b.capacity.Release(s.key)
	}
}

// forget leaves a pod to kube-scheduler's queue, unless it has failed again meanwhile.
func (b *Backlog) forget(uid apitypes.UID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !slices.ContainsFunc(b.failed, func(f failure) bool { return f.pod.UID == uid }) {
		b.set(uid, 0)
	}
}
