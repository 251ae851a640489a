package advise

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/pkg/eviction"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gangview"
	"berth.dev/berth/pkg/gpuview"
	"berth.dev/berth/pkg/podview"
)

const (
	// mostUnits is how many units of one node are moved at most: what needs more is hardly a move.
	mostUnits = 6
	// mostSets is how many sets of units of one node and one size are tried with the filters.
	mostSets = 120
	// setsOfNode is how many ways to make room on one node are kept.
	setsOfNode = 2
)

// room is a way to make room on a node: the filters of the profile accept a number of pods there once the units are
// gone. With no units it is room that is there.
type room struct {
	node  string
	hosts int
	units []*unit
}

// unitsOf are the units that have to move for rooms, each once.
func unitsOf(rooms []room) []*unit {
	var units []*unit
	for _, r := range rooms {
		for _, u := range r.units {
			if !slices.Contains(units, u) {
				units = append(units, u)
			}
		}
	}
	return units
}

// podsOf is how many pods have to move for rooms.
func podsOf(rooms []room) int {
	n := 0
	for _, u := range unitsOf(rooms) {
		n += len(u.Pods)
	}
	return n
}

// costOf is what the moves for rooms cost.
func costOf(rooms []room) eviction.Cost {
	var cost eviction.Cost
	for _, u := range unitsOf(rooms) {
		cost.Join(u.cost)
	}
	return cost
}

// alone is the pod without its gang, as the filters judge a single member.
func alone(u *unit, pod *v1.Pod) *v1.Pod {
	if u.Kind != KindPodGroup {
		return gpuview.Unplaced(pod)
	}
	id, _, _ := gangview.Of(pod)
	return gangview.WithoutGang(gpuview.Unplaced(pod), id == gang.ID{})
}

// byHardness orders pods by how many GPUs they ask for, then by CPU.
func byHardness(keys *gpuview.Keys, a, b *v1.Pod) int {
	size := func(p *v1.Pod) (milliGPU int, milliCPU int64) {
		r, err := keys.PodGPURequest(p)
		if err == nil {
			milliGPU = r.TotalMilli(0)
		}
		milliCPU, _, _ = podview.PodNeeds(p)
		return milliGPU, milliCPU
	}
	ga, ca := size(a)
	gb, cb := size(b)
	return cmp.Or(cmp.Compare(ga, gb), cmp.Compare(ca, cb), cmp.Compare(b.Name, a.Name))
}

// one are ways to make room for one of the pods by moving a number of units. Those of one unit are asked for first.
func (t *trial) one(movable []*unit, size int) []room {
	if t.fitting || size > len(movable) {
		return nil
	}
	if size == 1 {
		t.hopeless = !t.without(movable).accepts()
	}
	if t.hopeless {
		return nil
	}
	var rooms []room
	tried := 0
	eachSet(len(movable), size, func(set []int) bool {
		chosen := pick(movable, set)
		if t.without(chosen).accepts() {
			rooms = append(rooms, room{node: t.info.Node().Name, hosts: 1, units: chosen})
		}
		tried++
		return tried < mostSets && len(rooms) < setsOfNode
	})
	return rooms
}

// several is the room for as many of the pods as fit, with the room that is there first and then unit after unit.
func (t *trial) several(movable []*unit, most int) []room {
	var rooms []room
	node, free := t.info.Node().Name, t.fits(most)
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

// eachSet calls f with every set of k of n things, until it returns false.
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
	fw    framework.Framework
	ctx   context.Context
	state fwk.CycleState
	pod   *v1.Pod
	info  fwk.NodeInfo
	// claims are the devices that claims of the pod need, free those that the node has free.
	devices      *devices
	claims, free counts
	// fitting says that the node accepts the pod as it is, hopeless that it does not without all that may move either.
	fitting, hopeless bool
}

// newTrial is the node as it is, nil if nothing that moves can help.
func (c *class) newTrial(ctx context.Context, d *devices, info fwk.NodeInfo) *trial {
	status := c.fw.RunFilterPlugins(ctx, c.state, c.pod, info)
	if status.Code() == fwk.UnschedulableAndUnresolvable || info.Node().Spec.Unschedulable {
		return nil
	}
	t := &trial{fw: c.fw, ctx: ctx, state: c.state, pod: c.pod, info: info, devices: d, claims: c.claims,
		free: d.free[info.Node().Name]}
	t.fitting = status.IsSuccess() && t.free.has(t.claims, 1)
	return t
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
		out.fw.RunPreFilterExtensionRemovePod(out.ctx, out.state, out.pod, p, out.info)
	}
	if len(t.claims) > 0 {
		out.free = t.free.with(t.devices.freed(t.info.Node().Name, units))
	}
	return &out
}

// fits is how many of the pods fit, up to a number.
func (t *trial) fits(most int) int {
	n, _ := t.fill(most)
	return n
}

// fill puts pods on the node, up to a number, and returns how many these are, and the node with them.
func (t *trial) fill(most int) (int, fwk.NodeInfo) {
	state, info := t.state, t.info
	for n := range most {
		if !t.free.has(t.claims, n+1) || !t.fw.RunFilterPlugins(t.ctx, state, t.pod, info).IsSuccess() {
			return n, info
		}
		if n == 0 {
			state, info = state.Clone(), info.Snapshot()
		}
		sibling := t.pod.DeepCopy()
		sibling.UID, sibling.Spec.NodeName = types.UID(fmt.Sprint(sibling.UID, "/", n)), info.Node().Name
		added, err := framework.NewPodInfo(sibling)
		if err != nil {
			return n, info
		}
		info.AddPodInfo(added)
		t.fw.RunPreFilterExtensionAddPod(t.ctx, state, t.pod, added, info)
	}
	return most, info
}

// accepts says whether a pod fits.
func (t *trial) accepts() bool {
	return t.free.has(t.claims, 1) && t.fw.RunFilterPlugins(t.ctx, t.state, t.pod, t.info).IsSuccess()
}
