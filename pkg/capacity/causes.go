package capacity

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/gang/obstacle"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/spelling"
)

// Causes returns what keeps pods of a shape off nodes, and on how many nodes one fits now. The pods share the values of
// the labels keys. Each node counts for its first cause: the placement rule of the shape, what the node lacks even when
// empty, the cause that refuse returns, what it is short of now, what is kept for others. refuse may be nil; it must
// not call the index.
func (x *Index) Causes(key ShapeKey, keys []string, kept []*Kept,
	refuse func(*v1.Node) obstacle.NodeCause) obstacle.Nodes {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := x.shapes.byKey[key]
	if s == nil {
		return nil
	}
	beside, about := x.beside(kept), causesKey{s, strings.Join(keys, "\x00")}
	causes, known := beside.causes[about]
	if !known || refuse != nil {
		causes = x.causes(s, keys, beside, refuse)
	}
	if refuse == nil {
		beside.causes[about] = causes
	}
	return causes
}

// anySize stands for the most that nodes have of a resource while they are counted.
const anySize = "any"

func (x *store) causes(s *shape, keys []string, beside *besides,
	refuse func(*v1.Node) obstacle.NodeCause) obstacle.Nodes {
	p := x.partition(keys)
	switch {
	case x.nodes.present == 0:
		return obstacle.Nodes{obstacle.OfNodes(obstacle.Text("the cluster has no nodes"))}
	case p.domains == 0:
		return obstacle.Nodes{x.missing(keys)}
	}
	unoffered := x.resources.unoffered(s.asks)
	count, most, fits := map[obstacle.NodeCause]int{}, map[string]int64{}, make([]int, p.domains)
	for i, n := range x.nodes.existing() {
		cause := x.cause(s, n, beside, refuse)
		switch {
		case s.admits(n) && p.of[i] < 0:
			cause = obstacle.NodeCause{Message: "node(s) without the label " + strings.Join(keys, " or "),
				Kind: "node(s) without the label of a level"}
		case s.admits(n) && unoffered != "":
			cause = obstacle.NodeCause{Short: string(unoffered), Most: "0"}
		case cause.Fits:
			fits[p.of[i]]++
		case cause.Most == anySize:
			most[cause.Short] = max(most[cause.Short], n.has[x.resources.index[v1.ResourceName(cause.Short)]])
		}
		count[cause]++
	}
	for cause, n := range maps.Clone(count) {
		delete(count, cause)
		switch {
		case cause.Fits && len(keys) > 0:
			cause.Message = fmt.Sprintf(", at most %d in one %s", slices.Max(fits), keys[len(keys)-1])
		case cause.Most == anySize:
			cause.Most = podview.Quantity(v1.ResourceName(cause.Short), most[cause.Short]).String()
		}
		count[cause] = n
	}
	return obstacle.Count(count)
}

// cause is the first that keeps a pod of the shape off a node, whatever domain that is in.
func (x *store) cause(s *shape, n *nodeEntry, beside *besides,
	refuse func(*v1.Node) obstacle.NodeCause) obstacle.NodeCause {
	switch verdict := s.rule.verdicts[n.slot]; verdict {
	case admitted:
	case refused:
		return obstacle.OfNodes(obstacle.Text(s.rule.against(n.node)))
	default:
		cause := obstacle.OfNodes(stockWords[verdict])
		cause.Own = verdict != cordoned
		return cause
	}
	if cause := x.resources.shortOf(s.bounds, n.has, nil); cause != (obstacle.NodeCause{}) {
		return cause
	}
	if refuse != nil {
		if cause := refuse(n.node); cause != (obstacle.NodeCause{}) {
			return cause
		}
	}
	if cause := x.resources.shortOf(s.bounds, n.has, n.used); cause != (obstacle.NodeCause{}) {
		return cause
	}
	if kept := beside.nodes[n.slot]; kept != nil && slotsOn(s.bounds, n.has, kept.used) == 0 {
		return obstacle.OfNodes(KeptFor(kept.to))
	}
	return obstacle.NodeCause{Fits: true}
}

// shortOf returns the first of the bounds, as a cause, that lets no pod onto the node; none if all let one. If used is
// nil, the node counts as empty.
func (r *resources) shortOf(bounds []bound, has, used []int64) obstacle.NodeCause {
	for k := range bounds {
		if slotsOn(bounds[k:k+1], has, used) > 0 {
			continue
		}
		cause := obstacle.NodeCause{Short: string(r.names[bounds[k].Resource])}
		switch {
		case cause.Short == string(v1.ResourcePods):
			return obstacle.OfNodes(obstacle.Text("Too many pods"))
		case used == nil && has[bounds[k].Resource] == 0:
			cause.Most = "0"
		case used == nil:
			cause.Most = anySize
		}
		return cause
	}
	return obstacle.NodeCause{}
}

// unoffered returns a resource among the asks that no node has and no device class allocates; empty if there is none.
func (r *resources) unoffered(asks []ask) v1.ResourceName {
	for _, a := range asks {
		i, known := r.index[a.name]
		if offered := known && r.offered[i] > 0; !offered && a.name != v1.ResourcePods && !r.profiles.Claimed(a.name) {
			return a.name
		}
	}
	return ""
}

// missing is the cause if no node has all the labels whose values the pods share.
func (x *store) missing(keys []string) obstacle.NodeCause {
	labels := map[string]string{}
	for _, n := range x.nodes.existing() {
		maps.Copy(labels, n.node.Labels)
	}
	says := cmp.Or(spelling.NoLabel("no node", keys, labels), "no node has all labels of "+strings.Join(keys, ", "))
	return obstacle.NodeCause{Message: says, Kind: "no node has the label of a level"}
}

// stockWords are the messages of the scheduler's filters for verdicts.
var stockWords = map[verdict]obstacle.Text{
	cordoned:   "node(s) were unschedulable",
	misnamed:   "node(s) didn't match the requested node name",
	tainted:    "node(s) had untolerated taint(s)",
	unselected: "node(s) didn't match Pod's node affinity/selector",
}
