package dryrun

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/pkg/gang"
)

// Spent reports whether the plan has to come to an end.
func (d *Run) Spent() bool { return d.work.spent() }

// refresh brings the dry run in line with the cluster as it is in another cycle, and reserves again what was reserved.
// Members whose nodes have changed so that they do not fit there any more have to be placed again.
func (d *Run) refresh(ctx context.Context, reserved []reservedPod, others sets.Set[structured.DeviceID]) error {
	d.ctx, d.open, d.gone = ctx, nil, map[string]bool{}
	asBefore := d.reserveAgain
	if others == nil || !others.Equal(d.devicesOfOthers(reserved)) {
		asBefore, d.group = d.placeAgain, framework.NewCycleState()
	}
	changed := map[string]bool{}
	for _, r := range d.Classes {
		// A state is of the cycle in which it was made.
		r.State, r.full = nil, false
	}
	for _, n := range d.Nodes {
		name := n.Node().Name
		if _, err := d.lister.Get(name); err != nil {
			d.gone[name], changed[name] = true, true
		}
	}
	for name, generation := range d.generations {
		if i, here := d.position(name); !here || d.Nodes[i].GetGeneration() != generation {
			changed[name] = true
		}
	}
	again := map[gang.UID]bool{}
	for _, r := range reserved {
		again[gang.UID(r.pod.UID)], changed[r.node] = true, true
	}
	for name := range changed {
		delete(d.copies, name)
		delete(d.generations, name)
	}
	placed := d.placed
	d.placed = nil
	for _, p := range placed {
		switch uid := gang.UID(p.Info.GetPod().UID); {
		case again[uid]:
		case !changed[p.Node] || d.putBack(p):
			d.placed = append(d.placed, p)
		default:
			d.displaced[uid] = true
		}
	}
	return asBefore(reserved)
}

// devicesOfOthers are the devices that claims hold while nothing is reserved for the gang, or nil if it cannot be told
// by them alone whether what was reserved can be reserved again as it was: a plugin that is not known may keep what it
// likes, and VolumeBinding reserves the volumes that it chose once only, as it changes its own state by that.
func (d *Run) devicesOfOthers(reserved []reservedPod) sets.Set[structured.DeviceID] {
	var profile framework.Framework
	for _, r := range reserved {
		if profile = r.profile; d.classOf(gang.UID(r.pod.UID)).filters.HiddenReserve || !d.storage.Bound(r.pod) {
			return nil
		}
	}
	if profile == nil || profile.SharedDRAManager() == nil {
		return sets.New[structured.DeviceID]()
	}
	devices, err := profile.SharedDRAManager().ResourceClaims().ListAllAllocatedDevices()
	if err != nil {
		return nil
	}
	return devices
}

// putBack places a member again on its node, which has changed, and reports whether there is room for it. What else the
// filters look at is found out when the member comes to take its node.
func (d *Run) putBack(p PlacedPod) bool {
	i, here := d.position(p.Node)
	if !here || d.gone[p.Node] {
		return false
	}
	pod, n := p.Info.GetPod(), d.node(i)
	if !d.classOf(gang.UID(pod.UID)).filters.Fits(pod, n) {
		return false
	}
	d.edit(i).AddPodInfo(p.Info)
	return true
}

// reserveAgain reserves for the members what they had reserved before the pause, where no other pod has taken any of
// it: the filters would allocate the same. That costs a fraction of placing them again, which with many members takes
// longer than the slice.
func (d *Run) reserveAgain(reserved []reservedPod) error {
	for _, r := range reserved {
		info := *d.classOf(gang.UID(r.pod.UID)).info
		info.Pod = r.pod
		p := PlacedPod{Info: &info, Node: r.node}
		if !d.putBack(p) {
			d.displaced[gang.UID(r.pod.UID)] = true
			continue
		}
		if status := r.profile.RunReservePluginsReserve(d.ctx, r.state, r.pod, r.node); !status.IsSuccess() {
			// A volume or its claim may have another version by now. The filters see what that means for the member.
			klog.FromContext(d.ctx).V(4).Info("Placing a member again", "pod", klog.KObj(r.pod), "node", r.node, "reason",
				status.Message())
			r.profile.RunReservePluginsUnreserve(d.ctx, r.state, r.pod, r.node)
			i, _ := d.position(r.node)
			if err := d.edit(i).RemovePod(klog.FromContext(d.ctx), r.pod); err != nil {
				return fmt.Errorf("removing pod %s: %w", r.pod.Name, err)
			}
			d.displaced[gang.UID(r.pod.UID)] = true
			continue
		}
		d.reserved, d.placed = append(d.reserved, r), append(d.placed, p)
	}
	return nil
}

// placeAgain places the members, in the order in which they were placed before the pause, on the same nodes if they
// still fit there.
func (d *Run) placeAgain(reserved []reservedPod) error {
	for _, r := range reserved {
		uid := gang.UID(r.pod.UID)
		t := d.classOf(uid)
		i, here := d.position(r.node)
		if !here || d.gone[r.node] {
			d.displaced[uid] = true
			continue
		}
		if err := t.begin(r.pod); err != nil {
			return err
		}
		if !t.fits(i).IsSuccess() {
			d.displaced[uid] = true
			continue
		}
		taken, err := t.reserve(r.pod, i)
		if err != nil {
			return err
		}
		if !taken {
			d.displaced[uid] = true
			continue
		}
		info := *t.info
		info.Pod = r.pod
		n := d.edit(i)
		n.AddPodInfo(&info)
		p := PlacedPod{Info: &info, Node: r.node}
		d.placed = append(d.placed, p)
		if t.left <= 0 {
			d.shut(t)
		}
		for _, o := range d.open {
			if !o.readsOthers {
				continue
			}
			if status := o.Profile.RunPreFilterExtensionAddPod(d.ctx, o.State, o.Pod, &info, n); !status.IsSuccess() {
				return fmt.Errorf("counting member %s again: %w", r.pod.Name, status.AsError())
			}
		}
	}
	for _, r := range d.Classes {
		r.State = nil
	}
	d.open = nil
	return nil
}
