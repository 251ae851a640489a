package dryrun

import (
	"strings"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gangview"
	"berth.dev/berth/pkg/podview"
)

// pathTable is where all nodes are, for one choice of levels. Gangs ask for few different ones, and the labels of
// thousands of nodes are most of what a plan for a small gang reads.
type pathTable struct {
	nodes []*v1.Node
	paths [][]string
}

// pathsKey is what the paths of nodes depend on, beside the nodes.
type pathsKey struct {
	levels  string
	network *podview.NetworkLevels
}

// maxPathTables bounds how many choices of levels are remembered.
const maxPathTables = 8

// paths returns the domains of each node by which the gang is arranged, the widest level first: of the levels that it
// names and, where it prefers none, of those of its profile's network. It is nil if there are no levels. The caller
// must not change it.
func (p *Planner) paths(levels gangview.Topology, turn gang.Turn, nodes []fwk.NodeInfo) [][]string {
	keys := levels.Levels()
	by := pathsKey{levels: strings.Join(keys, "\x00")}
	if pod := p.Pod(turn.Members[0].Ref); pod != nil && len(turn.Members) > 1 && len(levels.Preferred) == 0 {
		by.network = p.Network(pod.Spec.SchedulerName)
	}
	if by == (pathsKey{}) {
		return nil
	}
	table := p.tables[by]
	if table == nil || !table.holds(nodes) {
		if p.tables == nil || table == nil && len(p.tables) == maxPathTables {
			p.tables = map[pathsKey]*pathTable{}
		}
		table = newPathTable(keys, by.network, nodes)
		p.tables[by] = table
	}
	return table.paths
}

// holds reports whether the table is of these nodes, as they are now: informers never change an object.
func (t *pathTable) holds(nodes []fwk.NodeInfo) bool {
	if len(t.nodes) != len(nodes) {
		return false
	}
	for i, n := range nodes {
		if t.nodes[i] != n.Node() {
			return false
		}
	}
	return true
}

func newPathTable(keys []string, network *podview.NetworkLevels, nodes []fwk.NodeInfo) *pathTable {
	t := &pathTable{nodes: make([]*v1.Node, len(nodes))}
	for i, n := range nodes {
		t.nodes[i] = n.Node()
	}
	within := networkPaths(network, t.nodes)
	if len(keys) == 0 {
		t.paths = within
		return t
	}
	t.paths = make([][]string, len(nodes))
	for i, n := range t.nodes {
		for _, key := range keys {
			t.paths[i] = append(t.paths[i], n.Labels[key])
		}
		if within != nil {
			t.paths[i] = append(t.paths[i], within[i]...)
		}
	}
	return t
}

// networkPaths returns where the nodes are in the network of a profile; nil if the profile does not say, or if all are
// in one place.
func networkPaths(network *podview.NetworkLevels, nodes []*v1.Node) [][]string {
	if network == nil || len(nodes) == 0 {
		return nil
	}
	all := make([][]string, len(nodes))
	for i, n := range nodes {
		all[i] = network.Path(n)
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
