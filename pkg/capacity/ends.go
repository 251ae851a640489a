package capacity

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/runtimes"
	"berth.dev/berth/pkg/starttime"
)

// Row asks how many pods of a live shape fit on each node as its pods end.
type Row struct {
	Shape ShapeKey
	// Labels are those whose values all pods must share.
	Labels []string
	// Emptied are cordoned nodes that are open to these pods.
	Emptied map[string]bool
	// MakesWay reports whether a bound pod leaves as soon as these pods can start. It must not call the index.
	MakesWay func(pod *v1.Pod, priority int32) bool
	// Together are the shapes of pods that share nodes, if it is to be told how much the nodes have for them, too.
	Together []ShapeKey
}

// NodeEnds is a node with the pods that have to end there, in the order of their ends.
type NodeEnds struct {
	starttime.Node
	Pods   []*v1.Pod
	Object *v1.Node
}

// Ends returns the nodes that pods of one of the rows may use, with the ends of their pods and with how many pods of
// each row fit as these come. asks holds, by row, what a pod of each of the shapes that go together asks for. left
// forecasts the end of a bound pod. It is called for every bound pod with mu held, and must not call the index.
func (x *Index) Ends(rows []Row, left func(*v1.Pod) runtimes.Forecast) (out []NodeEnds, asks [][][]int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.settle()
	shapes, domains := make([]*shape, len(rows)), make([]*partition, len(rows))
	together := make([]*amounts, len(rows))
	for r := range rows {
		shapes[r] = x.shapes.byKey[rows[r].Shape]
		if len(rows[r].Labels) > 0 {
			domains[r] = x.partition(rows[r].Labels)
		}
		asks = append(asks, nil)
		if len(rows[r].Together) > 0 {
			together[r] = x.amountsOf(rows[r].Together)
			asks[r] = together[r].asks
		}
	}
	var ends []runtimes.Forecast
	var pods []*podEntry
	used := make([]int64, len(x.resources.names))
	for i, n := range x.nodes.existing() {
		ends, pods = ends[:0], pods[:0]
		for _, p := range n.pods {
			if podview.BelongsToNode(p.Object) {
				continue
			}
			if f := left(p.Object); f.Ends() {
				ends, pods = append(ends, f), append(pods, p)
			}
		}
		node := NodeEnds{Node: starttime.Node{Name: n.name, Domains: make([]int, len(rows)),
			Fits: make([][]int, len(rows))}, Object: n.node}
		if slices.ContainsFunc(together, func(a *amounts) bool { return a != nil }) {
			node.Free = make([][][]int64, len(rows))
		}
		order := starttime.Order(ends)
		for _, at := range order {
			node.Ends, node.Pods = append(node.Ends, ends[at]), append(node.Pods, pods[at].Object)
		}
		fits := false
		for r := range rows {
			s := shapes[r]
			node.Fits[r] = make([]int, len(order)+1)
			switch {
			case s == nil || len(s.bounds) == 0,
				s.rule.verdicts[i] != admitted && (s.rule.verdicts[i] != cordoned || !rows[r].Emptied[n.name]):
				if node.Domains[r] = -1; together[r] == nil {
					continue
				}
			case domains[r] != nil:
				node.Domains[r] = domains[r].of[i]
			}
			copy(used, n.used)
			for _, p := range n.pods {
				if rows[r].MakesWay(p.Object, p.Priority) {
					p.release(used)
				}
			}
			fit := func(gone int) {
				if node.Domains[r] >= 0 {
					node.Fits[r][gone] = int(slotsOn(s.bounds, n.has, used))
				}
				if together[r] != nil {
					node.Free[r] = append(node.Free[r], together[r].free(n.has, used))
				}
			}
			fit(0)
			for k, at := range order {
				if p := pods[at]; !rows[r].MakesWay(p.Object, p.Priority) {
					p.release(used)
				}
				fit(k + 1)
			}
			fits = fits || node.Domains[r] >= 0 && node.Fits[r][len(order)] > 0
		}
		if fits {
			out = append(out, node)
		}
	}
	return out, asks
}

// release takes what the pod uses off the amounts.
func (p *podEntry) release(used []int64) {
	for _, u := range p.Uses {
		used[u.Resource] -= u.Amount
	}
}
