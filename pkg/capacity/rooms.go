package capacity

import (
	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/reserve"
)

// Rooms returns the nodes that pods of one of the live shapes may use, with the room that they have for each of them,
// as if the pods for which gone holds were not there. Nodes in one domain of the labels keys have the same number;
// nodes without one are left out. What is cordoned only to be emptied for the pods counts as open to them. gone must
// not call the index, and is called for every bound pod with mu held. With together, it is told, too, what nodes have
// for pods of several shapes that share them, and what pods of each shape ask for of that.
func (x *Index) Rooms(keys []ShapeKey, labels []string, emptied map[string]bool, together bool,
	gone func(pod *v1.Pod, priority int32) bool) (out []reserve.Node, asks [][]int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.settle()
	var domains *partition
	if len(labels) > 0 {
		domains = x.partition(labels)
	}
	shapes := make([]*shape, len(keys))
	for k, key := range keys {
		shapes[k] = x.shapes.byKey[key]
	}
	shared := &amounts{}
	if together {
		shared = x.amountsOf(keys)
	}
	all := make([]reserve.Room, len(keys)*x.nodes.present)
	used, pods := make([]int64, len(x.resources.names)), make([]int, len(x.resources.names))
	nothing := make([]int64, len(used))
	scarce := make([]bool, len(x.resources.names))
	for _, s := range shapes {
		if s != nil && len(s.bounds) > 0 {
			// The first bound is the tightest.
			scarce[s.bounds[0].Resource] = true
		}
	}
	for i, n := range x.nodes.existing() {
		if domains != nil && domains.of[i] < 0 {
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
		if together {
			node.Free = [2][]int64{shared.free(n.has, used), shared.free(n.has, nothing)}
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
	return out, shared.asks
}
