package coscheduling

import (
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/kubeview"
)

// lack says of which resources in the gang's minResources the cluster has too little free, or nothing if there is enough.
// What the gang's own members hold counts as free, and so do the pods that are gone.
func (p *Plugin) lack(id gang.ID, nodes []fwk.NodeInfo, gone []seatedPod) string {
	wanted := kubeview.MinResources(p.shared.podGroup(id))
	if len(wanted) == 0 {
		return ""
	}
	own := p.shared.own(id, nodes)
	amounts := make([]gang.Amount, 0, len(wanted))
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if claimed(p.framework, name) {
			continue
		}
		a := gang.Amount{Resource: string(name), Wanted: wanted[name], Free: kubeview.FreeOn(nodes, name)}
		for _, pod := range own {
			a.Free += kubeview.RequestedBy(pod, name)
		}
		for _, s := range gone {
			a.Free += kubeview.RequestedBy(s.info, name)
		}
		amounts = append(amounts, a)
	}
	short := gang.Lacking(amounts)
	if len(short) == 0 {
		return ""
	}
	return gang.ExplainLack(id, short, kubeview.DescribeAmount)
}

// own returns the members of the gang that the nodes hold already.
func (c *coordinator) own(id gang.ID, nodes []fwk.NodeInfo) []fwk.PodInfo {
	held := c.ledger.Nodes(id)
	if len(held) == 0 {
		return nil
	}
	var own []fwk.PodInfo
	for _, n := range nodes {
		if held[n.Node().Name] == 0 {
			continue
		}
		for _, info := range n.GetPods() {
			if of, _, err := kubeview.GangOf(info.GetPod()); err == nil && of == id {
				own = append(own, info)
			}
		}
	}
	return own
}

// claimed reports whether a device class hands the resource out, so that what nodes offer of it is not all there is.
func claimed(profile framework.Framework, name v1.ResourceName) bool {
	dra := profile.SharedDRAManager()
	if dra == nil {
		return false
	}
	resolver := dra.DeviceClassResolver()
	return resolver != nil && resolver.GetDeviceClass(name) != nil
}

// lack reports whether the gang's minResources would still not be free with the units gone.
func (w *wave) lack(units []gang.Unit) bool {
	gone := slices.Clone(w.going)
	for i := range units {
		for _, v := range units[i].Victims {
			gone = append(gone, w.pods[v.UID])
		}
	}
	return w.p.lack(w.id, w.nodes, gone) != ""
}
