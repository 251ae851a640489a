package plan

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/read"
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
func (p *Planner) paths(levels read.Topology, demand gang.Demand, nodes []fwk.NodeInfo) [][]string {
	keys := levels.Levels()
	by := pathsKey{levels: strings.Join(keys, "\x00")}
	if pod := p.Members.Pod(demand.Members[0].Ref); pod != nil && len(demand.Members) > 1 && len(levels.Preferred) == 0 {
		by.network = p.Networks.Levels(pod.Spec.SchedulerName)
	}
	if by == (pathsKey{}) {
		return nil
	}
	table := p.tables[by]
	same := func(a *v1.Node, b fwk.NodeInfo) bool { return a == b.Node() } // informers never change an object
	if table == nil || !slices.EqualFunc(table.nodes, nodes, same) {
		if p.tables == nil || table == nil && len(p.tables) == maxPathTables {
			p.tables = map[pathsKey]*pathTable{}
		}
		table = newPathTable(keys, by.network, nodes)
		p.tables[by] = table
	}
	return table.paths
}

// newPathTable leaves out levels of the network at which all nodes are in the same domain or in none.
func newPathTable(keys []string, network *podview.NetworkLevels, nodes []fwk.NodeInfo) *pathTable {
	t := &pathTable{}
	var all [][]string
	for _, n := range nodes {
		var path []string
		for _, key := range keys {
			path = append(path, n.Node().Labels[key])
		}
		if network != nil {
			path = append(path, network.Path(n.Node())...)
		}
		t.nodes, all = append(t.nodes, n.Node()), append(all, path)
	}
	if kept := dividing(all, len(keys)); len(kept) > 0 {
		t.paths = make([][]string, len(all))
		for i, path := range all {
			for _, level := range kept {
				t.paths[i] = append(t.paths[i], path[level])
			}
		}
	}
	return t
}

// dividing returns the levels, those from one on only where not all nodes are in the same domain or in none.
func dividing(paths [][]string, from int) []int {
	var kept []int
	for level := 0; len(paths) > 0 && level < len(paths[0]); level++ {
		if level < from || slices.ContainsFunc(paths, func(path []string) bool { return path[level] != paths[0][level] }) {
			kept = append(kept, level)
		}
	}
	return kept
}
