package dryrun

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gangview"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/process"
	"berth.dev/berth/pkg/ranks"
)

// orderRanks gives members of the plan that are alike their nodes in the order of their ranks, so that those that
// follow each other are near each other. Which nodes the plan uses, and in which order, stays as it is.
func (s *Sources) orderRanks(id gang.ID, levels gangview.Topology, turn gang.Turn, plan *Plan) {
	if !plan.Feasible() {
		return
	}
	w := rankView{sources: s, levels: levels, plan: plan}
	of := make(map[gang.UID]*gang.Member, len(turn.Members))
	for i := range turn.Members {
		of[turn.Members[i].UID] = &turn.Members[i]
	}
	for i, a := range plan.Assignments {
		w.add(plan.Pods[a.UID], a.Node, of[a.UID], i)
	}
	movable := len(w.members)
	if movable < 2 {
		return
	}
	held := s.Ledger.Where(id)
	for _, ref := range s.Ledger.Members(id) {
		if node := held[ref]; node != "" {
			w.add(s.Pod(ref), node, nil, -1)
		}
	}
	uids := make([]gang.UID, len(plan.Assignments))
	for i, at := range ranks.Order(w.ranked())[:movable] {
		uids[w.places[at]] = plan.Assignments[w.places[i]].UID
	}
	for i, uid := range uids {
		if uid != "" {
			plan.Assignments[i].UID = uid
		}
	}
}

// rankView is the members of a plan that have ranks, with those that hold a place already.
type rankView struct {
	sources *Sources
	levels  gangview.Topology
	plan    *Plan
	members []ranks.Member
	indices []ranks.Index
	// places are the indices of assignments, -1 for members that hold a place.
	places []int
}

// add adds a pod on a node. One without a member stays there.
func (w *rankView) add(pod *v1.Pod, node string, m *gang.Member, place int) {
	if pod == nil {
		return
	}
	index, numbered := gangview.IndexOf(pod)
	info, err := w.plan.lister.Get(node)
	if !numbered || err != nil {
		return
	}
	r := ranks.Member{Path: rankPath(w.sources.Network(pod.Spec.SchedulerName), w.levels, info.Node()), Fixed: m == nil}
	if m != nil {
		r.Class = fmt.Sprint(w.plan.homes.domain(m.UID), "/", m.Class, "/", m.Role)
		r.Fixed = tiedToNodes(w.plan.Classes[m.Class], pod)
	}
	w.members, w.indices, w.places = append(w.members, r), append(w.indices, index), append(w.places, place)
}

func (w *rankView) ranked() []ranks.Member {
	for i, rank := range ranks.Number(w.indices) {
		w.members[i].Rank = rank
	}
	return w.members
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
func rankPath(network *podview.NetworkLevels, levels gangview.Topology, node *v1.Node) []string {
	var path []string
	if network != nil {
		path = append(path, network.Path(node)...)
	}
	for _, key := range levels.Levels() {
		path = append(path, node.Labels[key])
	}
	return append(path, node.Name)
}
