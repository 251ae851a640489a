package advise

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/kubeview"
)

const (
	// mostUnits is how many units of one node are moved at most: what needs more is hardly a move.
	mostUnits = 6
	// mostSets is how many sets of units of one node and one size are tried with the filters.
	mostSets = 120
	// setsOfNode is how many ways to make room on one node are kept.
	setsOfNode = 2
)

// room is a way to make room on a node: the filters of the profile accept so many pods there once the units are gone. With no
// units it is room that is there.
type room struct {
	node  string
	hosts int
	units []*unit
}

// pods is how many pods have to move for rooms.
func podsOf(rooms []room) int {
	n, seen := 0, map[*unit]bool{}
	for _, r := range rooms {
		for _, u := range r.units {
			if !seen[u] {
				seen[u] = true
				n += len(u.Pods)
			}
		}
	}
	return n
}

// view is the scheduler's own snapshot with what is computed on it.
type view struct {
	fw    framework.Framework
	infos []fwk.NodeInfo
	// elsewhere are the nodes that fit a class of pods as they are.
	elsewhere map[string]sets.Set[string]
}

func (w *world) view(profile string) (*view, error) {
	fw := w.profiles[profile]
	snapshot, ok := fw.SnapshotSharedLister().(*internalcache.Snapshot)
	if !ok {
		return nil, fmt.Errorf("the scheduler's snapshot is a %T", fw.SnapshotSharedLister())
	}
	if err := w.sched.Cache.UpdateSnapshot(klog.Background(), snapshot); err != nil {
		return nil, fmt.Errorf("taking the scheduler's snapshot: %w", err)
	}
	infos, err := fw.SnapshotSharedLister().NodeInfos().List()
	if err != nil {
		return nil, fmt.Errorf("listing nodes: %w", err)
	}
	return &view{fw: fw, infos: infos, elsewhere: map[string]sets.Set[string]{}}, nil
}

// alone is the pod without its gang, as the filters judge a single member.
func alone(u *unit, pod *v1.Pod) *v1.Pod {
	if u.Kind != KindPodGroup {
		return kubeview.Unplaced(pod)
	}
	id, _, _ := kubeview.GangOf(pod)
	return kubeview.WithoutGang(kubeview.Unplaced(pod), id == gang.ID{})
}

// findRooms asks the filters of the unit's profile on which nodes it would fit if some units were gone, fewest pods first.
func (w *world) findRooms(s *search, u *unit) ([]room, error) {
	s.say("looking for nodes that could make room for %s", u)
	pod := alone(u, hardest(&s.keys, u.Pods))
	v, err := w.view(pod.Spec.SchedulerName)
	if err != nil {
		return nil, err
	}
	ctx, state := context.Background(), framework.NewCycleState()
	left, status, _ := v.fw.RunPreFilterPlugins(ctx, state, pod)
	if !status.IsSuccess() {
		return nil, nil
	}
	movable := map[string][]*unit{}
	for name, units := range s.units {
		for _, other := range units {
			if other.Fixed == "" && w.canMove(v, other) {
				movable[name] = append(movable[name], other)
			}
		}
	}
	perNode := make([][]room, len(v.infos))
	v.fw.Parallelizer().Until(ctx, len(v.infos), func(i int) {
		if !s.over() && (left.AllNodes() || left.NodeNames.Has(v.infos[i].Node().Name)) {
			perNode[i] = v.roomsOn(ctx, state, pod, v.infos[i], movable[v.infos[i].Node().Name], u.Needs)
		}
	}, "advise")
	rooms := slices.Concat(perNode...)
	slices.SortStableFunc(rooms, func(a, b room) int {
		pa, pb := podsOf([]room{a}), podsOf([]room{b})
		return cmp.Or(cmp.Compare(pa*b.hosts, pb*a.hosts), cmp.Compare(highest(a), highest(b)), cmp.Compare(a.node, b.node))
	})
	return rooms, nil
}

// hardest is the pod that asks for most GPUs, then CPU.
func hardest(keys *kubeview.GPUKeys, pods []*v1.Pod) *v1.Pod {
	size := func(p *v1.Pod) (milliGPU int, milliCPU int64) {
		r, err := keys.PodGPURequest(p)
		if err == nil {
			milliGPU = r.TotalMilli(0)
		}
		milliCPU, _ = kubeview.PodNeeds(p)
		return milliGPU, milliCPU
	}
	return slices.MaxFunc(pods, func(a, b *v1.Pod) int {
		ga, ca := size(a)
		gb, cb := size(b)
		return cmp.Or(cmp.Compare(ga, gb), cmp.Compare(ca, cb), cmp.Compare(b.Name, a.Name))
	})
}

// highest is the highest priority that has to move.
func highest(r room) int32 {
	var highest int32
	for i, u := range r.units {
		if i == 0 || u.Priority > highest {
			highest = u.Priority
		}
	}
	return highest
}

// roomsOn are the ways to make room for up to so many of the pods on one node.
func (v *view) roomsOn(ctx context.Context, state fwk.CycleState, pod *v1.Pod, info fwk.NodeInfo, movable []*unit, most int) []room {
	name := info.Node().Name
	trial := v.trial(ctx, state, pod, info)
	if trial.status.Code() == fwk.UnschedulableAndUnresolvable || info.Node().Spec.Unschedulable {
		return nil
	}
	if most > 1 {
		return trial.several(name, movable, most)
	}
	if trial.status.IsSuccess() {
		return []room{{node: name, hosts: 1}}
	}
	if len(movable) == 0 || trial.without(movable).fits(1) != 1 {
		return nil
	}
	var rooms []room
	for size := 1; size <= min(mostUnits, len(movable)) && len(rooms) == 0; size++ {
		tried := 0
		eachSet(len(movable), size, func(set []int) bool {
			chosen := pick(movable, set)
			if trial.without(chosen).fits(1) == 1 {
				rooms = append(rooms, room{node: name, hosts: 1, units: chosen})
			}
			tried++
			return tried < mostSets && len(rooms) < setsOfNode
		})
	}
	return rooms
}

// several is the room for as many of the pods as fit, with the room that is there first and then unit after unit.
func (t *trial) several(node string, movable []*unit, most int) []room {
	var rooms []room
	free := t.fits(most)
	if free > 0 {
		rooms = append(rooms, room{node: node, hosts: free})
	}
	for n, hosts := 1, free; n <= min(mostUnits, len(movable)) && hosts < most; n++ {
		if now := t.without(movable[:n]).fits(most); now > hosts {
			// A unit that is of no use is left where it is.
			needed := slices.Clone(movable[:n])
			for i := len(needed) - 2; i >= 0; i-- {
				if less := slices.Delete(slices.Clone(needed), i, i+1); t.without(less).fits(most) == now {
					needed = less
				}
			}
			rooms, hosts = append(rooms, room{node: node, hosts: now, units: needed}), now
		}
	}
	return rooms
}

func pick(units []*unit, set []int) []*unit {
	chosen := make([]*unit, len(set))
	for i, at := range set {
		chosen[i] = units[at]
	}
	return chosen
}

// eachSet calls f with every set of so many of n things, until it returns false.
func eachSet(n, size int, f func(set []int) bool) {
	set := make([]int, size)
	var from func(at, first int) bool
	from = func(at, first int) bool {
		if at == size {
			return f(set)
		}
		for i := first; i <= n-(size-at); i++ {
			set[at] = i
			if !from(at+1, i+1) {
				return false
			}
		}
		return true
	}
	from(0, 0)
}

// trial is a node on which pods are taken away and put.
type trial struct {
	view   *view
	ctx    context.Context
	state  fwk.CycleState
	pod    *v1.Pod
	info   fwk.NodeInfo
	status *fwk.Status
}

func (v *view) trial(ctx context.Context, state fwk.CycleState, pod *v1.Pod, info fwk.NodeInfo) *trial {
	return &trial{view: v, ctx: ctx, state: state, pod: pod, info: info, status: v.fw.RunFilterPlugins(ctx, state, pod, info)}
}

// without is the trial with units taken from the node.
func (t *trial) without(units []*unit) *trial {
	out := *t
	out.state, out.info = t.state.Clone(), t.info.Snapshot()
	leaving := map[key]bool{}
	for _, u := range units {
		for _, name := range u.names() {
			leaving[name] = true
		}
	}
	for _, p := range t.info.GetPods() {
		if !leaving[keyOf(p.GetPod())] {
			continue
		}
		if err := out.info.RemovePod(klog.Logger{}, p.GetPod()); err != nil {
			continue
		}
		out.view.fw.RunPreFilterExtensionRemovePod(out.ctx, out.state, out.pod, p, out.info)
	}
	return &out
}

// fits is how many of the pods fit, up to so many.
func (t *trial) fits(most int) int {
	state, info := t.state, t.info
	for n := range most {
		if !t.view.fw.RunFilterPlugins(t.ctx, state, t.pod, info).IsSuccess() {
			return n
		}
		if n == 0 && most > 1 {
			state, info = state.Clone(), info.Snapshot()
		}
		if most > 1 {
			sibling := t.pod.DeepCopy()
			sibling.UID, sibling.Spec.NodeName = types.UID(fmt.Sprint(sibling.UID, "/", n)), info.Node().Name
			added, err := framework.NewPodInfo(sibling)
			if err != nil {
				return n
			}
			info.AddPodInfo(added)
			t.view.fw.RunPreFilterExtensionAddPod(t.ctx, state, t.pod, added, info)
		}
	}
	return most
}

// canMove says whether each pod of a unit fits some other node as the cluster is. A unit of which one does not is not worth a run.
func (w *world) canMove(v *view, u *unit) bool {
	for _, pod := range u.Pods {
		fit := w.fitting(v, alone(u, pod))
		if fit.Len() == 0 || fit.Len() == 1 && fit.Has(pod.Spec.NodeName) {
			return false
		}
	}
	return true
}

// fitting are the nodes that accept the pod as they are. Pods that are placed alike share the answer.
func (w *world) fitting(v *view, pod *v1.Pod) sets.Set[string] {
	class := kubeview.GangMember(pod, kubeview.Membership{}, nil, true).Class
	if fit, known := v.elsewhere[class]; known {
		return fit
	}
	fit := sets.New[string]()
	v.elsewhere[class] = fit
	ctx, state := context.Background(), framework.NewCycleState()
	fw := w.profiles[pod.Spec.SchedulerName]
	left, status, _ := fw.RunPreFilterPlugins(ctx, state, pod)
	if !status.IsSuccess() {
		return fit
	}
	var mu sync.Mutex
	fw.Parallelizer().Until(ctx, len(v.infos), func(i int) {
		name := v.infos[i].Node().Name
		if (left.AllNodes() || left.NodeNames.Has(name)) && fw.RunFilterPlugins(ctx, state, pod, v.infos[i]).IsSuccess() {
			mu.Lock()
			defer mu.Unlock()
			fit.Insert(name)
		}
	}, "advise")
	return fit
}
