package hold

import (
	"maps"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/capacity"
	"berth.dev/berth/pkg/gang"
)

// Kind says why capacity is kept for a gang.
type Kind int

const (
	// AfterEviction is what pods were evicted for, until the gang starts.
	AfterEviction Kind = iota
	// ForReturn is what a member held before it was lost, or could not be bound after all, until one takes it or for a
	// short time.
	ForReturn
	// ForRest is what the others need with which a group within a gang begins that has started, for a short time.
	ForRest
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
	// Member is for whom it is, empty if it is for any of the role, or of any role if that is empty, too. Info is what
	// such a member asks for.
	Member gang.UID
	Role   string
	Info   fwk.PodInfo
	// Until ends it, unless zero.
	Until time.Time
	// after are pods that something holds: it counts once they have gone, whenever that is.
	after []*v1.Pod
	// start is when the gang can start by the ends that are known, zero without it. Pods that are gone by then may use
	// what is kept.
	start time.Time
	// backfills is set of a reservation if pods of its gang may backfill themselves. Two such gangs would evict each
	// other in turn without end.
	backfills bool
	// kept is the hold as the account of free capacity knows it.
	kept *capacity.Kept
}

// opensTo reports whether pods of the priority that may backfill can use the reservation, and make way for its gang.
func (o *Hold) opensTo(priority int32) bool {
	return priority < o.Priority || priority == o.Priority && !o.backfills
}

// Holds owns what is kept.
type Holds struct {
	// Gate is what cycles ask.
	Gate Gate

	mu   sync.Mutex
	kept map[gang.ID][]Hold
}

// Keep makes the holds of one kind to a gang those given.
func (p *Holds) Keep(id gang.ID, kind Kind, kept []Hold) {
	p.change(func() int {
		// What is kept again does not end.
		before := map[string]int{}
		var start time.Time
		for _, o := range p.kept[id] {
			if o.Kind == kind {
				before[o.Node]++
				start = o.start
			}
		}
		wake := 0
		for _, o := range kept {
			if before[o.Node]--; o.start.After(start) {
				wake = WakeSome // more of them are gone by then
			}
		}
		wake += wakeFor(before)
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

// Renew keeps something for some members of a gang, in the place of what was kept for them like that.
func (p *Holds) Renew(id gang.ID, kept []Hold) {
	p.change(func() int {
		same := func(o Hold) bool {
			return slices.ContainsFunc(kept, func(k Hold) bool { return k.Kind == o.Kind && k.Member == o.Member })
		}
		p.put(id, append(slices.DeleteFunc(slices.Clone(p.kept[id]), same), kept...))
		return 0
	})
}

// Follow has what is kept for members after evictions be where the plan has them that is carried out: it may send them
// to each other's nodes, and some of them enter later than others.
func (p *Holds) Follow(id gang.ID, plan []gang.Assignment) {
	if !slices.ContainsFunc(p.To(id), func(o Hold) bool { return o.Kind == AfterEviction }) {
		return
	}
	p.change(func() int {
		kept, left := slices.Clone(p.kept[id]), map[string]int{}
		nodes := make(map[gang.UID]string, len(plan))
		for _, a := range plan {
			nodes[a.UID] = a.Node
		}
		for i := range kept {
			o := &kept[i]
			if node, planned := nodes[o.Member]; planned && o.Kind == AfterEviction {
				left[o.Node]++
				left[node]--
				o.Node = node
			}
		}
		p.put(id, kept)
		return wakeFor(left)
	})
}

// wakeFor is how many pods to wake that were turned away; left is by how much less is kept on nodes.
func wakeFor(left map[string]int) (wake int) {
	for _, n := range left {
		if n > 0 {
			wake += WakeSome
		}
	}
	return wake
}

// Drop ends the holds for which ends holds, of some gangs.
func (p *Holds) Drop(ends func(Hold) bool, ids ...gang.ID) {
	p.change(func() int {
		ended := false
		for _, id := range ids {
			rest := slices.DeleteFunc(slices.Clone(p.kept[id]), ends)
			ended = ended || len(rest) < len(p.kept[id])
			p.put(id, rest)
		}
		return allIf(ended)
	})
}

// Take ends a hold that is for no certain member, and that a member without one of its own makes use of, or makes
// needless, by going to the node: one on the node, else any. That of the member itself does not count while it has its
// node, and ends with the start: until then it may give the node back.
func (p *Holds) Take(pod *v1.Pod, node string) {
	if !p.Gate.Any() {
		return
	}
	id, role := p.Gate.Members.ID(pod), p.Gate.role(pod)
	p.change(func() int {
		kept := p.kept[id]
		if slices.ContainsFunc(kept, func(o Hold) bool { return o.Member == gang.UID(pod.UID) }) {
			return 0
		}
		like := func(o Hold) bool { return o.Member == "" && (o.Role == "" || o.Role == role) }
		taken := slices.IndexFunc(kept, func(o Hold) bool { return like(o) && o.Node == node })
		if taken < 0 {
			taken = slices.IndexFunc(kept, like)
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
func (p *Holds) Postpone(id gang.ID, after []*v1.Pod) {
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
	if ids := p.Gangs(); len(ids) > 0 {
		p.Drop(func(o Hold) bool { return !o.Until.IsZero() && now.After(o.Until) }, ids...)
	}
}

// To returns what is kept for the gang.
func (p *Holds) To(id gang.ID) []Hold {
	if view := p.Gate.view.Load(); view != nil {
		return view.byGang[id]
	}
	return nil
}

// ToOthers returns what is kept for others than the gang that are at least as important, but for what has to wait.
func (p *Holds) ToOthers(id gang.ID, priority int32) []Hold {
	var out []Hold
	if view := p.Gate.view.Load(); view != nil {
		for _, o := range view.effective {
			if o.To != id && o.Priority >= priority && !p.Gate.served(o) {
				out = append(out, *o)
			}
		}
	}
	return out
}

// Gangs returns those for which something is kept.
func (p *Holds) Gangs() []gang.ID {
	if view := p.Gate.view.Load(); view != nil {
		return slices.Collect(maps.Keys(view.byGang))
	}
	return nil
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

func (p *Holds) publish() *heldNodes {
	view := &heldNodes{byGang: maps.Clone(p.kept), byNode: map[string][]Hold{}}
	for _, kept := range p.kept {
		for _, o := range kept {
			view.byNode[o.Node] = append(view.byNode[o.Node], o)
		}
	}
	for _, node := range slices.Sorted(maps.Keys(view.byNode)) {
		for i := range view.byNode[node] {
			o := &view.byNode[node][i]
			if o.after != nil {
				continue
			}
			o.kept = &capacity.Kept{Node: node, To: o.To, Pod: o.Info.GetPod()}
			if o.Kind == forTurn {
				o.kept.Leaves = func(pod *v1.Pod) bool { return p.Gate.givesWay(pod, o) }
			}
			view.effective = append(view.effective, o)
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
		p.Gate.view.Store(nil)
	} else {
		p.Gate.view.Store(p.publish())
	}
	p.mu.Unlock()
	if wake == 0 {
		return
	}
	p.Gate.Away.Retry(wake)
	p.Gate.Away.retryGangs()
}
