package coscheduling

import (
	"context"
	"fmt"

	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeports"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources"

	"berth.dev/berth/pkg/gang"
)

// Spent reports whether the plan has to come to an end.
func (d *dryRun) Spent() bool { return d.work.spent() }

// refresh brings the dry run in line with the cluster as it is in another cycle, and reserves again what was reserved. Members whose
// nodes have changed so that they do not fit there any more have to be placed again.
func (d *dryRun) refresh(ctx context.Context, reserved []reservedPod) error {
	d.ctx, d.group, d.open, d.gone = ctx, framework.NewCycleState(), nil, map[string]bool{}
	changed := map[string]bool{}
	for _, r := range d.classes {
		// A state is of the cycle in which it was made.
		r.state, r.full = nil, false
	}
	for _, n := range d.nodes {
		name := n.Node().Name
		if _, err := d.lister.Get(name); err != nil {
			d.gone[name], changed[name] = true, true
		}
	}
	for name, generation := range d.generations {
		if i, here := d.position(name); !here || d.nodes[i].GetGeneration() != generation {
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
		switch uid := gang.UID(p.info.GetPod().UID); {
		case again[uid]:
		case !changed[p.node] || d.putBack(p):
			d.placed = append(d.placed, p)
		default:
			d.displaced[uid] = true
		}
	}
	return d.reserveAgain(reserved)
}

// putBack places a member again on its node, which has changed, and reports whether there is room for it. What else the filters look at
// is found out when the member comes to take its node.
func (d *dryRun) putBack(p placedPod) bool {
	i, here := d.position(p.node)
	if !here || d.gone[p.node] {
		return false
	}
	pod, n := p.info.GetPod(), d.node(i)
	profile := d.classOf(gang.UID(pod.UID)).profile
	if len(noderesources.Fits(pod, n, profile.SharedDRAManager(), noderesources.ResourceRequestsOptions{EnablePodLevelResources: true})) > 0 ||
		!nodeports.Fits(pod, n) {
		return false
	}
	d.edit(i).AddPodInfo(p.info)
	return true
}

// reserveAgain reserves for the members, in the order in which they were placed, what they had reserved before the pause.
func (d *dryRun) reserveAgain(reserved []reservedPod) error {
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
		p := placedPod{info: &info, node: r.node}
		d.placed = append(d.placed, p)
		for _, o := range d.open {
			if status := o.profile.RunPreFilterExtensionAddPod(d.ctx, o.state, o.pod, &info, n); !status.IsSuccess() {
				return fmt.Errorf("counting member %s again: %w", r.pod.Name, status.AsError())
			}
		}
	}
	for _, r := range d.classes {
		r.state = nil
	}
	d.open = nil
	return nil
}

func (d *dryRun) classOf(uid gang.UID) *classRun { return d.classes[d.classNames[uid]] }
