package coscheduling

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/profiles"
)

// promiseKind says why capacity is promised to a gang.
type promiseKind int

const (
	// afterEviction is what pods were evicted for, until the gang starts.
	afterEviction promiseKind = iota
	// forReturn is what a member held before it was lost, or could not be bound after all, until one takes it or for a short
	// time.
	forReturn
	// forTurn is a reservation: what a gang that has waited long gets as soon as it is free.
	forTurn
)

// promise is capacity of one node that is kept for a gang against pods of a priority or less: its own, but for a gang in the middle of
// its start.
type promise struct {
	to       gang.ID
	kind     promiseKind
	priority int32
	node     string
	// member is for whom it is, empty if it is for any. info is what such a member asks for.
	member gang.UID
	info   fwk.PodInfo
	// until ends it, unless zero.
	until time.Time
	// after are pods that something holds: it counts once they have gone, whenever that is.
	after []awaitedPod
}

// promises owns what is promised. Cycles read an immutable view of it without a lock.
type promises struct {
	members members
	// allowsBackfill reports whether the pod may use what is promised for a turn.
	allowsBackfill func(*v1.Pod) bool
	// filters returns the filters that decide where the pod may be.
	filters func(*v1.Pod) *profiles.Traits
	// wake is told of pods that were turned away for a promise that has ended, and touch of gangs.
	wake  func([]gang.Ref)
	touch func(gang.ID)

	// harmed is set if a pod was turned away from what is promised to a gang of another namespace for its turn.
	harmed atomic.Bool

	mu   sync.Mutex
	kept map[gang.ID][]promise
	view atomic.Pointer[map[string][]promise]
	// turnedAway holds the pods to wake, by UID; arrivals numbers them. gangsAway holds the gangs whose members were turned away.
	turnedAway sync.Map
	arrivals   atomic.Int64
	gangsAway  sync.Map
}

// turnedAway is a pod that was kept off capacity that is promised to a gang.
type turnedAway struct {
	ref gang.Ref
	at  int64
}

const (
	// wakeSome is how many of the pods that were turned away are tried when a pod has ended or a reservation has let go of a
	// node: more than can use what is free then, and few enough that a long queue is not tried for each of them.
	wakeSome = 16
	wakeAll  = math.MaxInt
)

// any reports whether anything is promised.
func (p *promises) any() bool { return p.view.Load() != nil }

// keep makes the promises of one kind to a gang those given.
func (p *promises) keep(id gang.ID, kind promiseKind, kept []promise) {
	p.change(func() int {
		// What is promised again does not end.
		before := map[string]int{}
		for _, o := range p.kept[id] {
			if o.kind == kind {
				before[o.node]++
			}
		}
		for _, o := range kept {
			before[o.node]--
		}
		wake := 0
		for _, n := range before {
			if n > 0 {
				wake += wakeSome
			}
		}
		if len(kept) == 0 && wake > 0 {
			wake = wakeAll
		}
		p.put(id, append(slices.DeleteFunc(slices.Clone(p.kept[id]), func(o promise) bool { return o.kind == kind }), kept...))
		return wake
	})
}

// add promises one thing more.
func (p *promises) add(more promise) {
	p.change(func() int {
		p.put(more.to, append(p.kept[more.to], more))
		return 0
	})
}

// drop ends the promises to a gang for which ends holds.
func (p *promises) drop(id gang.ID, ends func(promise) bool) {
	p.change(func() int {
		had := len(p.kept[id])
		p.put(id, slices.DeleteFunc(p.kept[id], ends))
		return allIf(len(p.kept[id]) < had)
	})
}

// take ends the promise that a member of the gang makes use of, or makes needless, by going to the node: its own, else one on the
// node, else any.
func (p *promises) take(id gang.ID, uid gang.UID, node string) {
	if !p.any() {
		return
	}
	p.change(func() int {
		kept := p.kept[id]
		taken := -1
		for _, serves := range []func(promise) bool{
			func(o promise) bool { return o.member == uid },
			func(o promise) bool { return o.member == "" && o.node == node },
			func(o promise) bool { return o.member == "" },
		} {
			if taken = slices.IndexFunc(kept, serves); taken >= 0 {
				break
			}
		}
		if taken < 0 {
			return 0
		}
		elsewhere := kept[taken].node != node
		p.put(id, slices.Delete(slices.Clone(kept), taken, taken+1))
		return allIf(elsewhere)
	})
}

// postpone lets what is promised after evictions count only when the pods have gone.
func (p *promises) postpone(id gang.ID, after []awaitedPod) {
	p.change(func() int {
		kept := slices.Clone(p.kept[id])
		for i := range kept {
			if kept[i].kind == afterEviction {
				kept[i].after = after
			}
		}
		p.put(id, kept)
		return allIf(len(kept) > 0)
	})
}

// expire ends the promises whose time is over.
func (p *promises) expire(now time.Time) {
	if !p.any() {
		return
	}
	p.change(func() int {
		ended := false
		for id, kept := range p.kept {
			rest := slices.DeleteFunc(slices.Clone(kept), func(o promise) bool { return !o.until.IsZero() && now.After(o.until) })
			if len(rest) < len(kept) {
				ended = true
				p.put(id, rest)
			}
		}
		return allIf(ended)
	})
}

// to returns what is promised to the gang.
func (p *promises) to(id gang.ID) []promise {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.kept[id])
}

// gangs returns those to which something is promised.
func (p *promises) gangs() []gang.ID {
	p.mu.Lock()
	defer p.mu.Unlock()
	ids := make([]gang.ID, 0, len(p.kept))
	for id := range p.kept {
		ids = append(ids, id)
	}
	return ids
}

func (p *promises) put(id gang.ID, kept []promise) {
	if p.kept == nil {
		p.kept = map[gang.ID][]promise{}
	}
	if len(kept) == 0 {
		delete(p.kept, id)
	} else {
		p.kept[id] = kept
	}
}

func allIf(ended bool) int {
	if ended {
		return wakeAll
	}
	return 0
}

// change publishes what edit makes of the promises, and wakes the number of pods that it returns, of those that were
// turned away.
func (p *promises) change(edit func() (wake int)) {
	p.mu.Lock()
	wake := edit()
	if len(p.kept) == 0 {
		p.view.Store(nil)
	} else {
		view := map[string][]promise{}
		for _, kept := range p.kept {
			for _, o := range kept {
				view[o.node] = append(view[o.node], o)
			}
		}
		p.view.Store(&view)
	}
	p.mu.Unlock()
	if wake == 0 {
		return
	}
	p.retry(wake)
	p.gangsAway.Range(func(id, _ any) bool {
		p.gangsAway.Delete(id)
		p.touch(id.(gang.ID))
		return true
	})
}

// retry wakes the pods that were turned away, up to a number, those first that have not been tried for the longest
// time.
func (p *promises) retry(most int) {
	var waiting []turnedAway
	p.turnedAway.Range(func(_, pod any) bool {
		waiting = append(waiting, pod.(turnedAway))
		return true
	})
	if len(waiting) > most {
		slices.SortFunc(waiting, func(a, b turnedAway) int { return cmp.Compare(a.at, b.at) })
		waiting = waiting[:most]
	}
	refs := make([]gang.Ref, len(waiting))
	for i, pod := range waiting {
		p.turnedAway.Delete(pod.ref.UID)
		refs[i] = pod.ref
	}
	if len(refs) > 0 {
		p.wake(refs)
	}
}

// forget drops a pod that is gone: it would stay until promises are given back, and anybody can make such pods.
func (p *promises) forget(uid gang.UID) { p.turnedAway.Delete(uid) }

// forgetGang drops a gang that does not wait any more.
func (p *promises) forgetGang(id gang.ID) { p.gangsAway.Delete(id) }
