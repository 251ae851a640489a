package evictor

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"berth.dev/berth/pkg/eviction"
	"berth.dev/berth/pkg/evictor/waiting"
	"berth.dev/berth/pkg/faults"
	"berth.dev/berth/pkg/gang"
)

// Faults owns what is done about hardware that fails under members of gangs: it keeps room for their replacements
// beside the rest of the gang before anything is evicted, tells the gang once, and evicts those members if it is to.
// Members that may be disrupted as a whole only go together, though the hardware of most of them works.
type Faults struct {
	Limits RepairLimits

	// Known is what fails.
	Known faults.Book

	// The loop of gangs alone changes the rest, under the lock what Spare reads: cycles must not wait while it looks for
	// room.
	mu      sync.Mutex
	looked  time.Time
	repairs map[gang.ID]*repair
	evicted eviction.Hourly
}

// RepairLimits bound what is done about hardware that fails.
type RepairLimits struct {
	// Keep is how long room is kept; with 0 nothing is done.
	Keep time.Duration
	// EvictionsPerHour is how many members are evicted in any hour; 0 for none.
	EvictionsPerHour int
}

// repair is what is done for the members of one gang.
type repair struct {
	eviction.Repair
	// spare is the node on which room is kept for the replacement of each member.
	spare map[gang.UID]string
	// chosen are the members that are evicted, or will be after their notice, and warned is when they were told, the zero
	// time if they were not.
	chosen sets.Set[gang.UID]
	warned time.Time
	// gone is when they were evicted. asOne is set if members went along with them since: what all of them will need is
	// kept apart from the repair, which ends with the last of them.
	gone  time.Time
	asOne bool
}

// failing is a member on hardware that fails, or one that goes along with those that are: the hardware of that works.
type failing struct {
	pod   *v1.Pod
	why   string
	along bool
}

// Spare returns the node on which room is kept for the replacement of the member, empty for none. AsOne is set if it
// was evicted together with others, for which all is kept that they will need.
func (f *Faults) Spare(id gang.ID, member gang.UID) (node string, asOne bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r := f.repairs[id]; r != nil {
		node, asOne = r.spare[member], r.asOne
	}
	return node, asOne && node != ""
}

// moving are the members that are evicted from hardware that fails, or will be after their notice.
func (f *Faults) moving() sets.Set[gang.UID] {
	all := sets.New[gang.UID]()
	for _, r := range f.repairs {
		all = all.Union(r.chosen)
	}
	return all
}

// review brings what is done in line with what fails now.
func (f *Faults) review(e *Evictor, now time.Time) {
	changed, fails := f.Known.Changed()
	if !fails && len(f.repairs) == 0 || !changed && now.Sub(f.looked) < waiting.LookEvery {
		return
	}
	f.looked = now
	f.Known.DropGone(func(node string) bool { return len(e.Capacity.Cluster.MembersOn(node)) > 0 })
	if f.Limits.Keep == 0 {
		return
	}
	all := f.failing(e)
	for id := range f.repairs {
		if all[id] == nil {
			e.Holds.Drop(id, isForRepair)
			f.mu.Lock()
			delete(f.repairs, id)
			f.mu.Unlock()
		}
	}
	for _, id := range slices.SortedFunc(maps.Keys(all), gang.ID.Compare) {
		f.follow(e, id, f.repairOf(id), all[id], now)
	}
}

// repairOf returns what is done for the gang.
func (f *Faults) repairOf(id gang.ID) *repair {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.repairs == nil {
		f.repairs = map[gang.ID]*repair{}
	}
	if f.repairs[id] == nil {
		f.repairs[id] = &repair{chosen: sets.New[gang.UID]()}
	}
	return f.repairs[id]
}

// keep notes on which nodes room is kept for the replacements of members, and whether these have gone as one.
func (f *Faults) keep(r *repair, spare map[gang.UID]string, asOne bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r.spare, r.asOne = spare, asOne
}

// failing returns the members of started gangs on hardware that fails, in the order of their names. Those for which
// room is kept are among them until they are gone.
func (f *Faults) failing(e *Evictor) map[gang.ID][]failing {
	all, seen := map[gang.ID][]failing{}, map[gang.UID]bool{}
	add := func(id gang.ID, pod *v1.Pod, why string) {
		if v, known := e.Ledger.View(id); !known || !v.Started || seen[gang.UID(pod.UID)] {
			return
		}
		seen[gang.UID(pod.UID)] = true
		all[id] = append(all[id], failing{pod: pod, why: why})
	}
	nodes, pods := f.Known.Failing()
	for name, fault := range nodes {
		for _, m := range e.Capacity.Cluster.MembersOn(name) {
			if why := fault.Under(m.Object); why != "" {
				add(m.Of, m.Object, why)
			}
		}
	}
	for _, uid := range pods {
		pod := e.Capacity.Cluster.Pod(types.UID(uid))
		if pod == nil || pod.DeletionTimestamp != nil {
			continue
		}
		if id := e.Members.ID(pod); id != (gang.ID{}) {
			works := faults.OnNode(pod.Spec.NodeName)
			add(id, pod, works.Under(pod))
		}
	}
	for id, r := range f.repairs {
		for uid := range r.spare {
			switch pod := e.Capacity.Cluster.Pod(types.UID(uid)); {
			case pod == nil:
			case pod.DeletionTimestamp != nil:
				add(id, pod, "it terminates")
			case r.asOne && r.chosen.Has(uid):
				add(id, pod, "the others that it goes with are gone") // its eviction has failed
			}
		}
	}
	for id := range all {
		all[id] = e.addAlong(id, all[id])
		slices.SortFunc(all[id], func(a, b failing) int { return cmp.Compare(a.pod.Name, b.pod.Name) })
	}
	return all
}

// addAlong adds the members of the gang that can only be evicted with those given.
func (e *Evictor) addAlong(id gang.ID, members []failing) []failing {
	units, known := sets.New[string](), sets.New[types.UID]()
	for _, m := range members {
		known.Insert(m.pod.UID)
		if with, _ := e.Sources.Together(m.pod); with != "" {
			units.Insert(with)
		}
	}
	if units.Len() == 0 {
		return members
	}
	for ref := range e.Ledger.Where(id) {
		pod := e.Members.Pod(ref)
		if pod == nil || pod.Spec.NodeName == "" || pod.DeletionTimestamp != nil || known.Has(pod.UID) {
			continue
		}
		if with, _ := e.Sources.Together(pod); units.Has(with) {
			members = append(members, failing{pod: pod, why: "it goes together with members of " + with + " on failing hardware",
				along: true})
		}
	}
	return members
}
