package main

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/wellknown"
	"berth.dev/berth/test/histories/history"
	"berth.dev/berth/test/invariants"
)

// overlooked is the fault of pods that wait although they fit, by an account that shares no code with the scheduler's:
// a fresh scheduler, which has the same faults, would leave them, too.
const overlooked = "what fits waits"

// team is a gang as the objects show it.
type team struct {
	minimum invariants.Minimum
	// oneZone is set if all members have to be in the same zone, and near if it is by an affinity of theirs.
	oneZone, near bool
	// halves is set if it is two groups that are each in one zone.
	halves bool
	// pending are the members that can be placed, and waiting also those for which the account does not know a place.
	pending, waiting, bound []*v1.Pod
	// neighbours are bound pods that have left the gang and that members still have to be near.
	neighbours   []*v1.Pod
	settled      int
	settledRoles map[string]int
	// started is set if the gang has had its minimum, and told if its PodGroup has said so: a scheduler that was
	// restarted before it said so cannot know.
	started, told bool
}

// lacks is how many members have to be placed for the minimum, and how many of each role.
func (t *team) lacks() (total int, roles map[string]int) {
	total, roles = t.minimum.Total-t.settled, map[string]int{}
	sum := 0
	for role, n := range t.minimum.Roles {
		if n > t.settledRoles[role] {
			roles[role] = n - t.settledRoles[role]
			sum += roles[role]
		}
	}
	return max(total, sum), roles
}

// needed are the pending members that a gang which has started may place now: while it lacks members of some roles, and
// any will not do, none of others.
func (t *team) needed() []*v1.Pod {
	total, roles := t.lacks()
	ofRoles := 0
	for _, n := range roles {
		ofRoles += n
	}
	if ofRoles == 0 || total > ofRoles {
		return t.pending
	}
	return slices.DeleteFunc(slices.Clone(t.pending), func(pod *v1.Pod) bool { return roles[invariants.RoleOf(pod)] == 0 })
}

// waits reports whether the gang is complete and has not started, so that something may be kept for it.
func (t *team) waits() bool {
	total, roles := t.lacks()
	for _, pod := range t.waiting {
		roles[invariants.RoleOf(pod)]--
	}
	for _, n := range roles {
		if n > 0 {
			return false
		}
	}
	return !t.started && total > 0 && len(t.waiting) >= total
}

// overlooks returns a fault if a pod, or the minimum of a gang, waits although it fits, or would if less important pods
// made way.
func (w *world) overlooks() *invariants.Fault {
	rooms := w.vacancies(func(*v1.Pod) bool { return false })
	teams, single := w.teams()
	for _, t := range teams {
		if t.started && t.told && !t.oneZone && !t.halves { // else where its siblings are counts
			single = append(single, t.needed()...)
		}
	}
	if fault := w.torn(teams); fault != nil {
		return fault
	}
	waiting := keptFor(teams)
	w.addLabelled(waiting)
	// An eviction whose request is lost may not be tried again.
	evicts := w.weather.lostPercent == 0
	for _, name := range slices.Sorted(maps.Keys(teams)) {
		t := teams[name]
		if !t.waits() || len(t.pending) == 0 || w.excused(waiting, t.pending...) {
			continue
		}
		// Where odd members are near each other by their affinity alone, a plan may be missed: no zone is tried for all
		// of them.
		if (!t.near || !w.odd(t)) && !w.stands(teams, t, rooms) && w.starts(t, rooms) {
			return &invariants.Fault{Kind: overlooked,
				Detail: fmt.Sprintf("gang %s: its minimum has room (%s)", name, w.reason(t.pending[0]))}
		}
		// The account from which the scheduler chooses victims does not know affinity, so it may find room where
		// members cannot be.
		if evicts && !t.near && !rivalled(teams, t, t.priority()) && w.starts(t, w.cleared(teams, t.priority())) {
			return &invariants.Fault{Kind: unhelped,
				Detail: fmt.Sprintf("gang %s: its minimum has room without less important pods (%s)", name, w.reason(t.pending[0]))}
		}
	}
	for _, pod := range single {
		fits := func(rooms []*vacancy) bool {
			return slices.ContainsFunc(rooms, func(v *vacancy) bool { return v.clone().take(pod, w.made[pod.Name], rooms) })
		}
		switch {
		case w.excused(waiting, pod):
		case fits(rooms):
			return &invariants.Fault{Kind: overlooked, Detail: fmt.Sprintf("%s has room (%s)", pod.Name, w.reason(pod))}
		case evicts && !rivalled(teams, nil, *pod.Spec.Priority) && fits(w.cleared(teams, *pod.Spec.Priority)):
			return &invariants.Fault{Kind: unhelped,
				Detail: fmt.Sprintf("%s has room without less important pods (%s)", pod.Name, w.reason(pod))}
		}
	}
	return nil
}

// stands reports whether another gang as important waits for which there is no room: what there is can be kept for
// it.
func (w *world) stands(teams map[string]*team, but *team, rooms []*vacancy) bool {
	for _, t := range teams {
		if t != but && t.waits() && t.priority() >= but.priority() && !w.starts(t, rooms) {
			return true
		}
	}
	return false
}

// rivalled reports whether another gang waits that is as important. What it may evict others for can be kept for it,
// and other reasons hide that.
func rivalled(teams map[string]*team, but *team, than int32) bool {
	for _, t := range teams {
		if t != but && t.waits() && len(t.waiting) > 0 && t.priority() >= than {
			return true
		}
	}
	return false
}

// cleared is what the nodes would have without less important pods. The account from which the scheduler chooses
// victims does not know who holds which device. Where it is told so by the filters a few times it gives up, so GPUs do
// not count here if they are handed out by number on any node, and claimed devices never do.
func (w *world) cleared(teams map[string]*team, than int32) []*vacancy {
	rooms := w.vacancies(w.weaker(teams, than))
	numbered := slices.ContainsFunc(rooms, func(v *vacancy) bool { return v.gpus != nil })
	for _, v := range rooms {
		v.doubtful, v.claimable = numbered, 0
		v.port, v.apart, v.volumes, v.uneven = true, true, 0, true // which the account does not know either
	}
	return rooms
}

// weaker returns which pods may be evicted for one of that priority: those that are less important and not guarded, and
// of gangs only all members together.
func (w *world) weaker(teams map[string]*team, than int32) func(*v1.Pod) bool {
	weak := func(pod *v1.Pod) bool {
		return pod.Spec.NodeName != "" && *pod.Spec.Priority < than && pod.Labels[history.GuardedLabel] == ""
	}
	return func(pod *v1.Pod) bool {
		t := teams[invariants.GangOf(pod)]
		return weak(pod) && (t == nil || !slices.ContainsFunc(t.bound, func(o *v1.Pod) bool { return !weak(o) }))
	}
}

// odd reports whether the members that wait ask for different things.
func (w *world) odd(t *team) bool {
	return slices.ContainsFunc(t.waiting, func(pod *v1.Pod) bool {
		p, q := w.made[pod.Name], w.made[t.waiting[0].Name]
		return p.MilliCPU != q.MilliCPU || p.MemGiB != q.MemGiB || p.GPUs != q.GPUs || p.MilliGPU != q.MilliGPU ||
			p.ClaimedGPUs != q.ClaimedGPUs ||
			!slices.Equal(p.Models, q.Models)
	})
}

// priority is that of the least important member that waits.
func (t *team) priority() int32 {
	least := *t.waiting[0].Spec.Priority
	for _, pod := range t.waiting {
		least = min(least, *pod.Spec.Priority)
	}
	return least
}

// keptFor returns the gangs for which something may be kept: those that wait, those that lack members while
// others are bound, and those that have started without the knowledge of a restarted scheduler.
func keptFor(teams map[string]*team) map[string]bool {
	gangs := map[string]bool{}
	for name, t := range teams {
		total, _ := t.lacks()
		known := invariants.Known(name)
		gangs[known] = gangs[known] || t.waits() || (t.started || t.settled > 0) && total > 0 || t.started && !t.told &&
			len(t.waiting) > 0
	}
	return gangs
}

// addLabelled adds the gangs without a PodGroup that lack members.
func (w *world) addLabelled(kept map[string]bool) {
	settled := map[string]int{}
	for _, obj := range w.api.List(pods) {
		pod := obj.(*v1.Pod)
		minimum, err := strconv.Atoi(pod.Labels[invariants.MinAvailableLabel])
		if err != nil {
			continue
		}
		gang := invariants.GangOf(pod)
		if pod.Status.Phase == v1.PodSucceeded || pod.Spec.NodeName != "" && !podview.Finished(pod) {
			settled[gang]++
		}
		kept[gang] = settled[gang] < minimum
	}
}

// saysKept finds the gangs for which a pod says that it has to wait.
var saysKept = regexp.MustCompile(kept + " " + history.Namespace + "/((?:job[.])?[a-z0-9]+)")

// excused reports whether one of the pods says that its room is kept for one of the gangs.
func (w *world) excused(gangs map[string]bool, pods ...*v1.Pod) bool {
	return slices.ContainsFunc(pods, func(pod *v1.Pod) bool {
		for _, said := range saysKept.FindAllStringSubmatch(w.reason(pod), -1) {
			if gangs[said[1]] {
				return true
			}
		}
		return false
	})
}

func (w *world) reason(pod *v1.Pod) string {
	return w.checker.Reason(types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name})
}

// groups are the PodGroups, and what Jobs say in their place.
func (w *world) groups() []*unstructured.Unstructured {
	var groups []*unstructured.Unstructured
	for _, obj := range w.api.List(podGroups) {
		groups = append(groups, obj.(*unstructured.Unstructured))
	}
	for _, obj := range w.api.List(jobs) {
		groups = append(groups, invariants.GroupOf(obj.(*batchv1.Job)))
	}
	return groups
}

// teams returns the gangs that have a PodGroup or a Job, and the pods without a gang that wait.
func (w *world) teams() (map[string]*team, []*v1.Pod) {
	teams, begun := map[string]*team{}, w.checker.Started()
	for _, group := range w.groups() {
		told, started := begun[group.GetName()]
		teams[group.GetName()] = &team{minimum: invariants.MinimumOf(group),
			oneZone:      group.GetAnnotations()[wellknown.TopologyRequiredKey] != "",
			halves:       group.GetAnnotations()[wellknown.GroupsKey] != "",
			settledRoles: map[string]int{}, started: started, told: told}
	}
	var single []*v1.Pod
	for _, obj := range w.api.List(pods) {
		pod := obj.(*v1.Pod)
		gang := invariants.GangOf(pod)
		if former := teams[pod.Labels[history.NearLabel]]; former != nil && pod.Labels[history.NearLabel] != gang &&
			pod.Spec.NodeName != "" && !podview.Finished(pod) {
			former.neighbours = append(former.neighbours, pod)
		}
		t := teams[gang]
		switch {
		case t != nil && (pod.Status.Phase == v1.PodSucceeded || pod.Spec.NodeName != "" && !podview.Finished(pod)):
			t.settled++
			t.settledRoles[invariants.RoleOf(pod)]++
			if !podview.Finished(pod) {
				t.bound = append(t.bound, pod)
			}
		case w.made[pod.Name] == nil || pod.Spec.NodeName != "" || podview.Finished(pod) || len(pod.Spec.SchedulingGates) > 0:
		case gang == "" && w.placeable(pod):
			single = append(single, pod)
		case t != nil:
			t.waiting = append(t.waiting, pod)
			t.near = t.near || w.made[pod.Name].Near
			t.oneZone = t.oneZone || t.near
			if w.placeable(pod) {
				t.pending = append(t.pending, pod)
			}
		}
	}
	return teams, single
}

// placeable reports whether the account knows where the pod can go. Devices and volumes that it has already say where
// it has to, and so does the gang that it wants to be near if it has left that.
func (w *world) placeable(pod *v1.Pod) bool {
	p := w.made[pod.Name]
	if p.Near && pod.Labels[history.NearLabel] != invariants.GangOf(pod) {
		return false
	}
	if p.LocalVolume {
		volume, ok := w.api.Get(volumeClaims,
			types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}).(*v1.PersistentVolumeClaim)
		if !ok || volume.Spec.VolumeName != "" {
			return false
		}
	}
	claim, ok := w.api.Get(claims, claimOf(pod)).(*resourcev1.ResourceClaim)
	return (!ok || claim.Status.Allocation == nil) && (ok || len(pod.Spec.ResourceClaims) == 0)
}

// starts reports whether the minimum of the gang fits. It puts one member after the other on the first node that takes
// it, the small ones first, so it does not find every arrangement.
func (w *world) starts(t *team, rooms []*vacancy) bool {
	if !t.oneZone && !t.halves {
		return w.startsIn(t, rooms, nil)
	}
	zones := map[string]bool{}
	zoneOf := map[string]string{}
	for _, v := range rooms {
		zone := v.node.Labels[v1.LabelTopologyZone]
		zones[zone], zoneOf[v.node.Name] = true, zone
	}
	if t.halves {
		return w.halvesStart(t, rooms, zones, zoneOf)
	}
	settled := t.bound
	if t.near {
		settled = slices.Concat(t.bound, t.neighbours)
	}
	for zone := range zones {
		elsewhere := slices.ContainsFunc(settled, func(pod *v1.Pod) bool { return zoneOf[pod.Spec.NodeName] != zone })
		if !elsewhere && w.startsIn(t, rooms, func(*v1.Pod) string { return zone }) {
			return true
		}
	}
	return false
}

// startsIn has each member in the zone that zone says, or any if it is nil.
func (w *world) startsIn(t *team, rooms []*vacancy, zone func(*v1.Pod) string) bool {
	left := make([]*vacancy, len(rooms))
	for i, v := range rooms {
		left[i] = v.clone()
	}
	takes := func(pod *v1.Pod) func(v *vacancy) bool {
		return func(v *vacancy) bool {
			return (zone == nil || zone(pod) == v.node.Labels[v1.LabelTopologyZone]) && v.take(pod, w.made[pod.Name], left)
		}
	}
	members := slices.Clone(t.pending)
	slices.SortStableFunc(members, func(a, b *v1.Pod) int {
		p, q := w.made[a.Name], w.made[b.Name]
		return cmp.Or(cmp.Compare(p.GPUs, q.GPUs), cmp.Compare(p.MilliGPU, q.MilliGPU), cmp.Compare(p.MilliCPU, q.MilliCPU),
			cmp.Compare(p.MemGiB, q.MemGiB))
	})
	total, roles := t.lacks()
	placed := map[types.UID]bool{}
	for _, ofRole := range []bool{true, false} {
		for before := -1; before != len(placed); { // what is uneven for one member may be even after another
			before = len(placed)
			for _, pod := range members {
				role := invariants.RoleOf(pod)
				if total > 0 && !placed[pod.UID] && ofRole == (roles[role] > 0) && slices.ContainsFunc(left, takes(pod)) {
					placed[pod.UID] = true
					total--
					roles[role]--
				}
			}
		}
		for _, n := range roles {
			if n > 0 {
				return false
			}
		}
	}
	return total == 0
}
