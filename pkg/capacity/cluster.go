package capacity

import (
	"strings"

	v1 "k8s.io/api/core/v1"
	apitypes "k8s.io/apimachinery/pkg/types"

	"berth.dev/berth/pkg/gang"
)

// Cluster is the part of an index that knows nodes and bound pods, whatever shapes ask for.
type Cluster struct{ *store }

// Size returns the number of nodes.
func (x *Cluster) Size() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.nodes.present
}

// Domain returns the label values of the domain with the most pods; held is the number of pods by node. It is nil if no
// such node exists, or if two domains have equally many.
func (x *Cluster) Domain(held map[string]int, labels []string) []string {
	if len(labels) == 0 {
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	pods := map[string]int{}
	for name, n := range held {
		if node := x.nodes.byName[name]; node != nil && node.node != nil {
			values := make([]string, len(labels))
			for i, label := range labels {
				values[i] = node.node.Labels[label]
			}
			pods[strings.Join(values, "\x00")] += n
		}
	}
	most, largest, tie := "", 0, true
	for path, n := range pods {
		switch {
		case n > largest:
			most, largest, tie = path, n, false
		case n == largest:
			tie = true
		}
	}
	if tie {
		return nil
	}
	return strings.Split(most, "\x00")
}

// PodsBetween returns the bound pods with a priority from least to most for which the condition holds. The condition is
// called with mu held and must not call the index.
func (x *Cluster) PodsBetween(least, most int32, condition func(*BoundPod) bool) []*v1.Pod {
	x.mu.Lock()
	defer x.mu.Unlock()
	var out []*v1.Pod
	for _, n := range x.nodes.slots {
		if n == nil {
			continue
		}
		for _, p := range n.pods {
			if p.Priority >= least && p.Priority <= most && condition(&p.BoundPod) {
				out = append(out, p.Object)
			}
		}
	}
	return out
}

// MembersOn returns the members of gangs that are bound to the node and do not terminate.
func (x *Cluster) MembersOn(node string) []BoundPod {
	x.mu.Lock()
	defer x.mu.Unlock()
	n := x.nodes.byName[node]
	if n == nil || n.members == 0 {
		return nil
	}
	var members []BoundPod
	for _, p := range n.pods {
		if p.Of != (gang.ID{}) && !p.Terminating {
			members = append(members, p.BoundPod)
		}
	}
	return members
}

// Nodes returns the nodes that exist.
func (x *Cluster) Nodes() []*v1.Node {
	x.mu.Lock()
	defer x.mu.Unlock()
	all := make([]*v1.Node, 0, x.nodes.present)
	for _, n := range x.nodes.existing() {
		all = append(all, n.node)
	}
	return all
}

// Node returns the node of the name, nil if it does not exist.
func (x *Cluster) Node(name string) *v1.Node {
	x.mu.Lock()
	defer x.mu.Unlock()
	if n := x.nodes.byName[name]; n != nil {
		return n.node
	}
	return nil
}

// Pod returns the bound pod as it was last seen, or nil.
func (x *Cluster) Pod(uid apitypes.UID) *v1.Pod {
	x.mu.Lock()
	defer x.mu.Unlock()
	if p := x.pods.byUID[uid]; p != nil {
		return p.Object
	}
	return nil
}

// AnyLeaving reports whether a bound pod terminates.
func (x *Cluster) AnyLeaving() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.pods.leaving) > 0
}

// AnyBelow reports whether a bound pod that is not terminating has a lower priority: without one there is no
// pod to evict.
func (x *Cluster) AnyBelow(priority int32) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.pods.priorities.anyBelow(priority)
}

// MakesWay reports whether a bound pod of lower priority could be evicted or terminates.
func (x *Cluster) MakesWay(priority int32) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.pods.priorities.anyBelow(priority) || x.pods.leaving.anyBelow(priority)
}
