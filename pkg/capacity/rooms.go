package capacity

import (
	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/reserve"
	"berth.dev/berth/pkg/wellknown"
)

// Rooms returns the nodes that pods of one of the live shapes may use, with the room that they have for each of them,
// as if the pods for which gone holds were not there. Nodes in one domain of the labels keys have the same number;
// nodes without one are left out. What is cordoned only to be emptied for the pods counts as open to them. gone must
// not call the index, and is called for every bound pod with mu held.
func (x *Index) Rooms(keys []ShapeKey, labels []string, emptied map[string]bool,
	gone func(pod *v1.Pod, priority int32) bool) []reserve.Node {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.settle()
	var domains *partition
	if len(labels) > 0 {
		domains = x.partition(labels)
	}
	shapes := make([]*shape, len(keys))
	for k, key := range keys {
		shapes[k] = x.shapes[key]
	}
	var out []reserve.Node
	all := make([]reserve.Room, len(keys)*x.present)
	used, pods := make([]int64, len(x.resources)), make([]int, len(x.resources))
	scarce := make([]bool, len(x.resources))
	for _, s := range shapes {
		if s != nil && len(s.bounds) > 0 {
			// The first bound is the tightest.
			scarce[s.bounds[0].Resource] = true
		}
	}
	for i, n := range x.nodes {
		if n == nil || n.node == nil || (domains != nil && domains.of[i] < 0) {
			continue
		}
		node := reserve.Node{Name: n.name, Rooms: all[:len(keys):len(keys)]}
		if domains != nil {
			node.Domain = domains.of[i]
		}
		copy(used, n.used)
		clear(pods)
		for _, p := range n.pods {
			stays, inTheWay := !gone(p.Object, p.Priority), false
			for _, u := range p.Uses {
				if !stays {
					used[u.Resource] -= u.Amount
				} else if u.Amount > 0 {
					pods[u.Resource]++
					inTheWay = inTheWay || scarce[u.Resource]
				}
			}
			if inTheWay && !podview.BelongsToNode(p.Object) {
				if node.Pods++; node.Pods == 1 || p.seen.Before(node.Oldest) {
					node.Oldest = p.seen
				}
			}
		}
		fits := false
		for k, s := range shapes {
			admits := s != nil && (s.rule.verdicts[i] == admitted || emptied[n.name] && s.rule.verdicts[i] == cordoned)
			if !admits || len(s.bounds) == 0 {
				continue
			}
			room := reserve.Room{Now: int(slotsOn(s.bounds, n.has, used)), Empty: int(slotsOnEmpty(s.bounds, n.has))}
			tightest := s.bounds[0].Resource
			room.Pods = pods[tightest]
			if has := n.has[tightest]; has > 0 {
				room.Free = int(1000 * float64(has-used[tightest]) / float64(has))
			}
			node.Rooms[k] = room
			fits = fits || room.Empty > 0
		}
		if fits {
			out, all = append(out, node), all[len(keys):]
		} else {
			clear(node.Rooms)
		}
	}
	return out
}

// CordonedFor returns the nodes that are being emptied for the gang, nil if there are none.
func (x *Index) CordonedFor(id gang.ID) map[string]bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	value := wellknown.CordonedFor("podgroup", id.Namespace, id.Name)
	var names map[string]bool
	for _, n := range x.nodes {
		if n != nil && n.node != nil && n.node.Annotations[wellknown.CordonedForKey] == value {
			if names == nil {
				names = map[string]bool{}
			}
			names[n.name] = true
		}
	}
	return names
}

// PodsBetween returns the bound pods of these priorities and those between them.
func (x *Index) PodsBetween(least, most int32) []*v1.Pod {
	x.mu.Lock()
	defer x.mu.Unlock()
	var out []*v1.Pod
	for _, n := range x.nodes {
		if n == nil {
			continue
		}
		for _, p := range n.pods {
			if p.Priority >= least && p.Priority <= most {
				out = append(out, p.Object)
			}
		}
	}
	return out
}
