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
	"berth.dev/berth/pkg/faults"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gpu"
)

// Faults owns what is done about hardware that fails under members of gangs: it keeps room for their replacements
// beside the rest of the gang before anything is evicted, tells the gang once, and evicts those members if it is to.
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
	// gone is when they were evicted.
	gone time.Time
}

// failing is a member on hardware that fails.
type failing struct {
	pod *v1.Pod
	why string
}

// Spare returns the node on which room is kept for the replacement of the member, if any is.
func (f *Faults) Spare(id gang.ID, member gang.UID) (node string, kept bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r := f.repairs[id]; r != nil {
		node = r.spare[member]
	}
	return node, node != ""
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
	if !fails && len(f.repairs) == 0 || !changed && now.Sub(f.looked) < lookEvery {
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

// keep notes on which nodes room is kept for the replacements of members.
func (f *Faults) keep(r *repair, spare map[gang.UID]string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r.spare = spare
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
		all[id] = append(all[id], failing{pod, why})
	}
	nodes, pods := f.Known.Failing()
	for name, fault := range nodes {
		for _, m := range e.Capacity.Cluster.MembersOn(name) {
			if why := fault.Under(m.Object, int(e.Sources.Loss.MilliGPUs(m.Object)/gpu.WholeMilli)); why != "" {
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
			add(id, pod, works.Under(pod, 0))
		}
	}
	for id, r := range f.repairs {
		for uid := range r.spare {
			if pod := e.Capacity.Cluster.Pod(types.UID(uid)); pod != nil && pod.DeletionTimestamp != nil {
				add(id, pod, "it terminates")
			}
		}
	}
	for _, members := range all {
		slices.SortFunc(members, func(a, b failing) int { return cmp.Compare(a.pod.Name, b.pod.Name) })
	}
	return all
}
