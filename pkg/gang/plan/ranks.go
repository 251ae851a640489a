package plan

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/ranks"
	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/gang/read/numbering"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/process"
)

// orderRanks gives members of the plan that are alike their nodes in the order of their ranks, so that those that
// follow each other are near each other. Which nodes the plan uses, and in which order, stays as it is.
func (s *Sources) orderRanks(id gang.ID, levels read.Topology, demand gang.Demand, plan *Plan) {
	if !plan.Feasible() {
		return
	}
	var members []ranks.Member
	var indices []ranks.Index
	add := func(pod *v1.Pod, node string, m ranks.Member) (added bool) {
		if pod == nil {
			return false
		}
		index, numbered := numbering.IndexOf(pod)
		info, err := plan.lister.Get(node)
		if !numbered || err != nil {
			return false
		}
		m.Path = rankPath(s.Networks.Levels(pod.Spec.SchedulerName), levels, info.Node())
		members, indices = append(members, m), append(indices, index)
		return true
	}
	of := make(map[gang.UID]*gang.Member, len(demand.Members))
	for i := range demand.Members {
		of[demand.Members[i].UID] = &demand.Members[i]
	}
	var places []int
	for i, a := range plan.Assignments {
		m, pod := of[a.UID], plan.Pods[a.UID]
		if add(pod, a.Node, ranks.Member{Class: fmt.Sprint(plan.homes.domains[m.UID], "/", m.Class, "/", m.Role),
			Fixed: tiedToNodes(plan.Classes[m.Class], pod)}) {
			places = append(places, i)
		}
	}
	if len(places) < 2 {
		return
	}
	held := s.Ledger.Where(id)
	for _, ref := range s.Ledger.Members(id) {
		if node := held[ref]; node != "" {
			add(s.Members.Pod(ref), node, ranks.Member{Fixed: true})
		}
	}
	for i, rank := range ranks.Number(indices) {
		members[i].Rank = rank
	}
	before := slices.Clone(plan.Assignments)
	for i, place := range ranks.Order(members)[:len(places)] {
		plan.Assignments[places[place]].UID = before[places[i]].UID
	}
}

// tiedToNodes reports whether the member, unlike others of its class, may have a volume or devices already that not all
// nodes reach.
func tiedToNodes(of *Class, pod *v1.Pod) bool {
	if !of.reserves {
		return false
	}
	return process.HasVolumes(pod) || slices.ContainsFunc(pod.Spec.ResourceClaims, func(c v1.PodResourceClaim) bool {
		name, _, err := resourceclaim.Name(pod, &c)
		if err != nil || name == nil {
			return false
		}
		object, err := of.Profile.SharedDRAManager().ResourceClaims().Get(pod.Namespace, *name)
		return err == nil && object.Status.Allocation != nil
	})
}

// rankPath returns the domains of the node by which ranks are ordered: those of the profile's network, if it has any,
// then those of the levels that the gang names, and the node itself.
func rankPath(network *podview.NetworkLevels, levels read.Topology, node *v1.Node) []string {
	var path []string
	if network != nil {
		path = append(path, network.Path(node)...)
	}
	for _, key := range levels.Levels() {
		path = append(path, node.Labels[key])
	}
	return append(path, node.Name)
}
