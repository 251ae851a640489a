package capacity

import (
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
}

// NodeEnds is a node with the pods that have to end there, in the order of their ends.
type NodeEnds struct {
	starttime.Node
	Pods []*v1.Pod
}

// Ends returns the nodes that pods of one of the rows may use, with the ends of their pods and with how many pods of
// each row fit as these come. left forecasts the end of a bound pod. It is called for every bound pod with mu held, and
// must not call the index.
func (x *Index) Ends(rows []Row, left func(*v1.Pod) runtimes.Forecast) []NodeEnds {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.settle()
	shapes, domains := make([]*shape, len(rows)), make([]*partition, len(rows))
	for r := range rows {
		shapes[r] = x.shapes.byKey[rows[r].Shape]
		if len(rows[r].Labels) > 0 {
			domains[r] = x.partition(rows[r].Labels)
		}
	}
	var out []NodeEnds
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
		node := NodeEnds{Node: starttime.Node{Name: n.name, Domains: make([]int, len(rows)), Fits: make([][]int, len(rows))}}
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
				node.Domains[r] = -1
				continue
			case domains[r] != nil:
				node.Domains[r] = domains[r].of[i]
			}
			copy(used, n.used)
			for _, p := range n.pods {
				if rows[r].MakesWay(p.Object, p.Priority) {
					p.release(used)
				}
			}
			node.Fits[r][0] = int(slotsOn(s.bounds, n.has, used))
			for k, at := range order {
				if p := pods[at]; !rows[r].MakesWay(p.Object, p.Priority) {
					p.release(used)
				}
				node.Fits[r][k+1] = int(slotsOn(s.bounds, n.has, used))
			}
			fits = fits || node.Domains[r] >= 0 && node.Fits[r][len(order)] > 0
		}
		if fits {
			out = append(out, node)
		}
	}
	return out
}

// release takes what the pod uses off the amounts.
func (p *podEntry) release(used []int64) {
	for _, u := range p.Uses {
		used[u.Resource] -= u.Amount
	}
}
