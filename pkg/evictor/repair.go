package evictor

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"

	"berth.dev/berth/pkg/capacity"
	dryrunsets "berth.dev/berth/pkg/dryrun/sets"
	"berth.dev/berth/pkg/eviction"
	"berth.dev/berth/pkg/evictor/budgets"
	"berth.dev/berth/pkg/evictor/notices"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gangview"
	"berth.dev/berth/pkg/gpuview"
	"berth.dev/berth/pkg/plural"
	"berth.dev/berth/pkg/podgroup"
	"berth.dev/berth/pkg/reservation"
)

// mostNamed is how many members and nodes an event names.
const mostNamed = 8

// follow does for one gang what is due.
func (f *Faults) follow(e *Evictor, id gang.ID, r *repair, members []failing, now time.Time) {
	broken := slices.DeleteFunc(slices.Clone(members), func(m failing) bool { return m.along })
	if r.asOne && !slices.ContainsFunc(members, func(m failing) bool { return r.spare[m.uid()] != "" }) {
		f.keep(r, nil, false) // what went is gone, and something fails under what has come back
	}
	r.See(uidsOf(broken), now)
	r.chosen = r.chosen.Intersection(sets.New(uidsOf(members)...))
	if !r.Keeps(f.Limits.Keep, now) {
		if r.spare != nil {
			f.keep(r, nil, false)
			e.Holds.Drop(id, isForRepair)
		}
		return
	}
	if r.Due(now) && !r.asOne {
		kept := f.find(e, id, broken)
		if kept == nil && len(broken) < len(members) {
			kept = f.find(e, id, members) // elsewhere, as all go anyway
		}
		e.Holds.Keep(id, reservation.ForRepair, kept)
		spare := map[gang.UID]string{}
		for _, m := range members {
			if m.along && len(kept) > 0 {
				spare[m.uid()] = m.pod.Spec.NodeName
			}
		}
		for i := range kept {
			spare[kept[i].Member] = kept[i].Node
		}
		f.keep(r, spare, false)
		if e.Notifier.Leads() && r.Tell() {
			f.tell(e, id, members, r.spare)
		}
	}
	if len(r.spare) > 0 && e.Notifier.Leads() {
		f.evict(e, id, r, members, now)
	}
}

func (m *failing) uid() gang.UID { return gang.UID(m.pod.UID) }

func uidsOf(members []failing) []gang.UID {
	uids := make([]gang.UID, len(members))
	for i := range members {
		uids[i] = members[i].uid()
	}
	return uids
}

// find looks for room for the replacements of the members.
func (f *Faults) find(e *Evictor, id gang.ID, members []failing) []reservation.Hold {
	return (&spares{evictor: e, id: id, leaving: f.leaving(members)}).find(members)
}

// isForRepair says what is kept for replacements of members on failing hardware.
func isForRepair(o reservation.Hold) bool { return o.Kind == reservation.ForRepair }

// leaving are the nodes that leave, and those of the members.
func (f *Faults) leaving(members []failing) sets.Set[string] {
	names := sets.New[string]()
	nodes, _ := f.Known.Failing()
	for name := range nodes {
		if fault := nodes[name]; fault.Leaves() {
			names.Insert(name)
		}
	}
	for _, m := range members {
		if !m.along {
			names.Insert(m.pod.Spec.NodeName)
		}
	}
	return names
}

// spares looks for room for the replacements of members of one gang.
type spares struct {
	evictor *Evictor
	id      gang.ID
	// leaving are the nodes that no replacement may be on.
	leaving sets.Set[string]
	kept    []reservation.Hold
}

// find looks for places for the replacements of all members, each in the domain of the others of its group or segment,
// or of the gang. It returns nothing if there are too few.
func (s *spares) find(members []failing) []reservation.Hold {
	e := s.evictor
	levels, err := gangview.TopologyOf(e.Members.Group(s.id), members[0].pod)
	if err != nil {
		return nil
	}
	pods := make([]*v1.Pod, len(members))
	for i := range members {
		pods[i] = members[i].pod
	}
	parts, err := e.sets().Replace(s.id, levels, pods)
	if err != nil {
		return nil
	}
	for i := range parts {
		fits := false
		for near := len(levels.Preferred); near >= 0 && !fits; near-- {
			fits = s.place(&parts[i], slices.Concat(parts[i].Levels, levels.Preferred[:near]))
		}
		if !fits {
			return nil
		}
	}
	return s.kept
}

// place looks for places on nodes that share the levels with the others of the part, and reports whether there are
// enough. Nothing is evicted for them, and what is kept for other gangs is left to these.
func (s *spares) place(of *dryrunsets.Together, levels []string) bool {
	e := s.evictor
	r := &request{name: notices.RepairOf(s.id), id: s.id, of: s.id, priority: math.MinInt32, taken: s.kept,
		demand: demand{need: gang.Minimum{Total: len(of.Pods)}, required: levels, held: of.Others}}
	at, waiting, said := map[capacity.ShapeKey]int{}, map[int][]*v1.Pod{}, findings{}
	for _, member := range of.Pods {
		pod := gpuview.Unplaced(member)
		shape := e.Capacity.ShapeOf(pod)
		i, known := at[shape]
		if !known {
			i = len(r.classes)
			at[shape] = i
			r.classes = append(r.classes, requestClass{class: string(shape), pod: pod})
			for node := range s.leaving {
				said[gang.Refusal{Class: string(shape), Node: node}] = true
			}
		}
		r.classes[i].count++
		waiting[i] = append(waiting[i], member)
	}
	found := e.propose(r, said)
	if found.Outcome != eviction.RoomAlready {
		return false
	}
	v, _ := e.Ledger.View(s.id)
	for _, placed := range found.Placed {
		for _, member := range waiting[placed.Class][:placed.Members] {
			info, err := reservation.InfoOf(gpuview.Unplaced(member))
			if err != nil {
				return false
			}
			s.kept = append(s.kept, reservation.Hold{To: s.id, Kind: reservation.ForRepair, Priority: v.Priority,
				Node: placed.Node, Member: gang.UID(member.UID), Info: info})
		}
		waiting[placed.Class] = waiting[placed.Class][placed.Members:]
	}
	return true
}

// tell tells the gang once which members are on hardware that fails, and whether room is kept for their replacements.
func (f *Faults) tell(e *Evictor, id gang.ID, members []failing, spare map[gang.UID]string) {
	var about runtime.Object = members[0].pod
	if pg := e.Members.Group(id); pg != nil {
		about = podgroup.ReferenceTo(pg)
	}
	names, whys, nodes := sets.New[string](), sets.New[string](), sets.New[string]()
	for _, m := range members {
		if !m.along {
			names.Insert(m.pod.Name)
			whys.Insert(m.why)
		}
	}
	for _, node := range spare {
		nodes.Insert(node)
	}
	room := "there is no room for their replacements beside the rest of the gang"
	if len(spare) > 0 {
		room = fmt.Sprintf("room for their replacements is kept on %s for %s", some(nodes), f.Limits.Keep)
	}
	if more := len(members) - names.Len(); more > 0 {
		room = fmt.Sprintf("with %d more, which all go together (disruptionMode: all); %s", more, room)
	}
	e.Profiles.Any().EventRecorder().Eventf(about, nil, v1.EventTypeWarning, notices.FailingHardware, "Repairing",
		"%s on failing hardware: %s; %s; %s%s", plural.Of(names.Len(), "member"), some(names), some(whys), room,
		f.staying(e, members, spare))
}

// staying says why members for which there is room are not evicted, as the end of a sentence; nothing if they are, or
// if none ever is.
func (f *Faults) staying(e *Evictor, members []failing, spare map[gang.UID]string) string {
	pods := make([]*v1.Pod, len(members))
	for i := range members {
		pods[i] = members[i].pod
	}
	switch most := f.Limits.EvictionsPerHour; {
	case most == 0 || len(spare) == 0:
		return ""
	case len(pods) > most:
		return fmt.Sprintf("; none is evicted, as faults.evictionsPerHour is %d", most)
	case !e.Sources.disruptible(pods):
		return "; none is evicted while PodDisruptionBudgets do not allow it"
	}
	return ""
}

// some names the first of them.
func some(names sets.Set[string]) string {
	sorted := sets.List(names)
	if more := len(sorted) - mostNamed; more > 0 {
		sorted = append(sorted[:mostNamed], fmt.Sprintf("%d more", more))
	}
	return strings.Join(sorted, ", ")
}

// evict evicts the members together once all have a spare, have had their notice, and the budgets allow it.
func (f *Faults) evict(e *Evictor, id gang.ID, r *repair, members []failing, now time.Time) {
	var pods []*v1.Pod
	fresh := 0
	for _, m := range members {
		if m.pod.DeletionTimestamp != nil {
			continue
		}
		pods = append(pods, m.pod)
		if !r.chosen.Has(gang.UID(m.pod.UID)) {
			fresh++
		}
	}
	if len(pods) == 0 {
		return
	}
	if fresh > 0 {
		if !e.Sources.disruptible(pods) || !f.evicted.Take(fresh, f.Limits.EvictionsPerHour, now) {
			return
		}
		for _, pod := range pods {
			r.chosen.Insert(gang.UID(pod.UID))
		}
		r.gone = time.Time{}
	}
	if !r.gone.IsZero() && now.Sub(r.gone) < eviction.Grace {
		return
	}
	name := notices.RepairOf(id)
	if ends := e.Notifier.End(name, pods, r.warned, now); ends.After(now) {
		if r.warned.IsZero() || fresh > 0 {
			r.warned = now
			e.Notifier.Tell(name, pods, now)
		}
		return
	}
	if !f.goAsOne(e, id, r, members, now) {
		return // one of them is on its way to a node
	}
	r.gone = now
	whys, moment := map[gang.UID]string{}, e.Sources.Loss.At(now)
	for _, m := range members {
		uid := gang.UID(m.pod.UID)
		whys[uid] = fmt.Sprintf("%s; room for its replacement is kept on %s", m.why, r.spare[uid])
	}
	profile := e.Profiles.Any()
	e.Notifier.Write(pods, "Evicting a pod from failing hardware failed", func(ctx context.Context, pod *v1.Pod) error {
		if gone, err := notices.Remove(ctx, profile, pod, name); gone || err != nil {
			return err
		}
		profile.EventRecorder().WithLogger(klog.FromContext(ctx)).Eventf(pod, nil, v1.EventTypeNormal, "Evicted", "Repairing",
			"%s%s", whys[gang.UID(pod.UID)], losing(pod, moment))
		return nil
	})
}

// goAsOne keeps what all members will need that go together. If they are all of the gang, its pending members wait
// until they have gone. It reports false if the gang is not as it was.
func (f *Faults) goAsOne(e *Evictor, id gang.ID, r *repair, members []failing, now time.Time) bool {
	if r.asOne || !slices.ContainsFunc(members, func(m failing) bool { return m.along }) {
		return true
	}
	v, _ := e.Ledger.View(id)
	impact := gang.EvictionImpact{Group: id, Whole: len(members) >= v.Count[gang.Bound], Bound: len(members),
		Pods: uidsOf(members)}
	if impact.Whole && !e.Ledger.Evictions.Evict([]gang.EvictionImpact{impact}, now.Add(eviction.Grace), now) {
		return false
	}
	e.Holds.Drop(id, isForRepair)
	for _, m := range members {
		if info, err := reservation.InfoOf(gpuview.Unplaced(m.pod)); err == nil {
			e.Holds.Add(reservation.Hold{To: id, Kind: reservation.ForRestart, Priority: v.Priority, Node: r.spare[m.uid()],
				Info: info, Until: now.Add(f.Limits.Keep)})
		}
	}
	f.keep(r, r.spare, true)
	return true
}

// disruptible reports whether the PodDisruptionBudgets allow that the pods go together.
func (s Sources) disruptible(pods []*v1.Pod) bool {
	all, err := s.Budgets.List(labels.Everything())
	return err == nil && budgets.Read(all).Spend(pods)
}
