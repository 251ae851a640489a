package reservation

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/capacity"
	"berth.dev/berth/pkg/dryrun"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gangplan"
	"berth.dev/berth/pkg/profiles"
	"berth.dev/berth/pkg/starttime"
)

// Kind says why capacity is kept to a gang.
type Kind int

const (
	// AfterEviction is what pods were evicted for, until the gang starts.
	AfterEviction Kind = iota
	// ForReturn is what a member held before it was lost, or could not be bound after all, until one takes it or for a
	// short time.
	ForReturn
	// ForRepair is what the replacements of members on failing hardware will need.
	ForRepair
	// forTurn is a reservation: what a gang that has waited long gets as soon as it is free.
	forTurn
)

// Hold is capacity of one node that is kept for a gang against pods of a priority or less: its own, but for a gang in
// the middle of its start.
type Hold struct {
	To       gang.ID
	Kind     Kind
	Priority int32
	Node     string
	// Member is for whom it is, empty if it is for any. info is what such a member asks for.
	Member gang.UID
	Info   fwk.PodInfo
	// Until ends it, unless zero.
	Until time.Time
	// after are pods that something holds: it counts once they have gone, whenever that is.
	after []AwaitedPod
	// start is set for a reservation by time: pods may enter by it. goes are the pods of the node that end before.
	start *starttime.Reservation
	goes  map[gang.UID]bool
	// behind are the gangs that use the node before this one does: against these it does not count.
	behind map[gang.ID]bool
}

// Holds owns what is kept. Cycles read an immutable view of it without a lock.
type Holds struct {
	// GangOf returns the gang of the pod, or the zero ID.
	GangOf func(*v1.Pod) gang.ID
	// AllowsBackfill reports whether the pod may use what is kept for a turn.
	AllowsBackfill func(*v1.Pod) bool
	// Filters returns the filters that decide where the pod may be.
	Filters func(*v1.Pod) *profiles.Traits
	// Forecasts and Entry decide which pods may use what is kept by time.
	Forecasts *Forecasts
	Entry     starttime.Settings
	// Wake is told of pods that were turned away for a hold that has ended, and touch of gangs.
	Wake  func([]gang.Ref)
	Touch func(gang.ID)

	// blocking holds the gangs for whose turn pods of other namespaces were turned away since the last look.
	blocking sync.Map

	mu   sync.Mutex
	kept map[gang.ID][]Hold
	view atomic.Pointer[heldNodes]
	// turnedAway holds the pods to wake, by UID; arrivals numbers them. gangsAway holds the gangs whose members were
	// turned away.
	turnedAway sync.Map
	arrivals   atomic.Int64
	gangsAway  sync.Map
}

// turnedAway is a pod that was kept off capacity that is kept to a gang.
type turnedAway struct {
	ref gang.Ref
	at  int64
}

const (
	// WakeSome is how many of the pods that were turned away are tried when a pod has ended or a reservation has let go
	// of a node: more than can use what is free then, and few enough that a long queue is not tried for each of them.
	WakeSome = 16
	// WakeAll tries them all.
	WakeAll = math.MaxInt
)

// Any reports whether anything is kept.
func (p *Holds) Any() bool { return p.view.Load() != nil }

// Keep makes the holds of one kind to a gang those given.
func (p *Holds) Keep(id gang.ID, kind Kind, kept []Hold) {
	p.change(func() int {
		// What is kept again does not end.
		before := map[string]int{}
		for _, o := range p.kept[id] {
			if o.Kind == kind {
				before[o.Node]++
			}
		}
		for _, o := range kept {
			before[o.Node]--
		}
		wake := 0
		for _, n := range before {
			if n > 0 {
				wake += WakeSome
			}
		}
		if len(kept) == 0 && wake > 0 {
			wake = WakeAll
		}
		p.put(id, append(slices.DeleteFunc(slices.Clone(p.kept[id]), func(o Hold) bool { return o.Kind == kind }), kept...))
		return wake
	})
}

// Add keeps one thing more.
func (p *Holds) Add(more Hold) {
	p.change(func() int {
		p.put(more.To, append(p.kept[more.To], more))
		return 0
	})
}

// Drop ends the holds of a gang for which ends holds.
func (p *Holds) Drop(id gang.ID, ends func(Hold) bool) {
	p.change(func() int {
		had := len(p.kept[id])
		p.put(id, slices.DeleteFunc(p.kept[id], ends))
		return allIf(len(p.kept[id]) < had)
	})
}

// Take ends the hold that a member of the gang makes use of, or makes needless, by going to the node: its own, else one
// on the node, else any.
func (p *Holds) Take(id gang.ID, uid gang.UID, node string) {
	if !p.Any() {
		return
	}
	p.change(func() int {
		kept := p.kept[id]
		taken := -1
		for _, serves := range []func(Hold) bool{
			func(o Hold) bool { return o.Member == uid },
			func(o Hold) bool { return o.Member == "" && o.Node == node },
			func(o Hold) bool { return o.Member == "" },
		} {
			if taken = slices.IndexFunc(kept, serves); taken >= 0 {
				break
			}
		}
		if taken < 0 {
			return 0
		}
		elsewhere := kept[taken].Node != node
		p.put(id, slices.Delete(slices.Clone(kept), taken, taken+1))
		return allIf(elsewhere)
	})
}

// Postpone lets what is kept after evictions count only when the pods have gone.
func (p *Holds) Postpone(id gang.ID, after []AwaitedPod) {
	p.change(func() int {
		kept := slices.Clone(p.kept[id])
		for i := range kept {
			if kept[i].Kind == AfterEviction {
				kept[i].after = after
			}
		}
		p.put(id, kept)
		return allIf(len(kept) > 0)
	})
}

// Expire ends the holds whose time is over.
func (p *Holds) Expire(now time.Time) {
	if !p.Any() {
		return
	}
	p.change(func() int {
		ended := false
		for id, kept := range p.kept {
			rest := slices.DeleteFunc(slices.Clone(kept), func(o Hold) bool { return !o.Until.IsZero() && now.After(o.Until) })
			if len(rest) < len(kept) {
				ended = true
				p.put(id, rest)
			}
		}
		return allIf(ended)
	})
}

// To returns what is kept to the gang.
func (p *Holds) To(id gang.ID) []Hold {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.kept[id])
}

// Gangs returns those to which something is kept.
func (p *Holds) Gangs() []gang.ID {
	p.mu.Lock()
	defer p.mu.Unlock()
	ids := make([]gang.ID, 0, len(p.kept))
	for id := range p.kept {
		ids = append(ids, id)
	}
	return ids
}

func (p *Holds) put(id gang.ID, kept []Hold) {
	if p.kept == nil {
		p.kept = map[gang.ID][]Hold{}
	}
	if len(kept) == 0 {
		delete(p.kept, id)
	} else {
		p.kept[id] = kept
	}
}

func allIf(ended bool) int {
	if ended {
		return WakeAll
	}
	return 0
}

// heldNodes is what is kept, as cycles and the loop read it.
type heldNodes struct {
	byNode map[string][]Hold
	// effective are the holds that wait for no pod to go, in the order of the nodes.
	effective []effectiveHold
}

// effectiveHold is a hold as the account of free capacity knows it.
type effectiveHold struct {
	hold *Hold
	kept *capacity.Kept
}

func (p *Holds) publish() *heldNodes {
	view := &heldNodes{byNode: map[string][]Hold{}}
	for _, kept := range p.kept {
		for _, o := range kept {
			view.byNode[o.Node] = append(view.byNode[o.Node], o)
		}
	}
	causes := map[gang.ID]gangplan.NodeCause{}
	for _, node := range slices.Sorted(maps.Keys(view.byNode)) {
		for i := range view.byNode[node] {
			o := &view.byNode[node][i]
			if o.after != nil {
				continue
			}
			if _, known := causes[o.To]; !known {
				causes[o.To] = dryrun.PromisedTo(o.To).Cause()
			}
			kept := &capacity.Kept{Node: node, To: o.To, Pod: o.Info.GetPod(), Why: causes[o.To]}
			if o.Kind == forTurn {
				kept.Leaves = func(pod *v1.Pod) bool { return p.givesWay(pod, o) }
			}
			view.effective = append(view.effective, effectiveHold{o, kept})
		}
	}
	return view
}

// change publishes what edit makes of the holds, and wakes the number of pods that it says, of those that were turned
// away.
func (p *Holds) change(edit func() (wake int)) {
	p.mu.Lock()
	wake := edit()
	if len(p.kept) == 0 {
		p.view.Store(nil)
	} else {
		p.view.Store(p.publish())
	}
	p.mu.Unlock()
	if wake == 0 {
		return
	}
	p.Retry(wake)
	p.gangsAway.Range(func(id, _ any) bool {
		p.gangsAway.Delete(id)
		p.Touch(id.(gang.ID))
		return true
	})
}

// Retry wakes the pods that were turned away, at most that number and those first that have not been tried for the
// longest time.
func (p *Holds) Retry(most int) {
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
		p.Wake(refs)
	}
}

// Forget drops a pod that is gone: it would stay until something is let go, and any user can make such pods.
func (p *Holds) Forget(uid gang.UID) { p.turnedAway.Delete(uid) }

// ForgetGang drops a gang that does not wait any more.
func (p *Holds) ForgetGang(id gang.ID) { p.gangsAway.Delete(id) }
