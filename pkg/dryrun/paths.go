package dryrun

import (
	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/dryrun/network"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gangview"
	"berth.dev/berth/pkg/topology"
)

// paths returns the domains of each node by which the gang is arranged, the widest level first: of the levels that it
// names and, where it prefers none, of those of its profile's network. It is nil if there are no levels.
func (s *Sources) paths(levels gangview.Topology, turn gang.Turn, nodes []fwk.NodeInfo) [][]string {
	keys := levels.Levels()
	var network [][]string
	if pod := s.Pod(turn.Members[0].Ref); pod != nil && len(turn.Members) > 1 && len(levels.Preferred) == 0 {
		network = networkPaths(s.Network(pod.Spec.SchedulerName), nodes)
	}
	if len(keys) == 0 {
		return network
	}
	paths := make([][]string, len(nodes))
	for i, n := range nodes {
		for _, key := range keys {
			paths[i] = append(paths[i], n.Node().Labels[key])
		}
		if network != nil {
			paths[i] = append(paths[i], network[i]...)
		}
	}
	return paths
}

// networkPaths returns where the nodes are in the network of a profile; nil if the profile does not say, or if all are
// in one place.
func networkPaths(places *network.Places, nodes []fwk.NodeInfo) [][]string {
	if places == nil || len(nodes) == 0 {
		return nil
	}
	all := make([][]string, len(nodes))
	for i, n := range nodes {
		all[i] = places.Path(n.Node())
	}
	return dividing(all)
}

// dividing leaves out the levels at which all nodes are in the same domain or in none; nil if no level is left.
func dividing(all [][]string) [][]string {
	var kept []int
	for level, name := range all[0] {
		for _, path := range all {
			if path[level] != name {
				kept = append(kept, level)
				break
			}
		}
	}
	switch len(kept) {
	case 0:
		return nil
	case len(all[0]):
		return all
	}
	out, names := make([][]string, len(all)), make([]string, 0, len(all)*len(kept))
	for i, path := range all {
		from := len(names)
		for _, level := range kept {
			names = append(names, path[level])
		}
		out[i] = names[from:len(names):len(names)]
	}
	return out
}

// setFar notes how far each node is from what the members talk to outside the gang. Among domains in which the gang
// fits equally well, it begins in the nearest. Members holds one of each class, counts how many there are of it.
func setFar(places *network.Places, tree []topology.Node, nodes []fwk.NodeInfo, members []*v1.Pod, counts []int) {
	if places == nil {
		return
	}
	if far := places.Far(members, counts); far != nil {
		for i, n := range nodes {
			tree[i].Far = far(n.Node())
		}
	}
}
