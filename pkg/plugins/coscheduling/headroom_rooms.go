package coscheduling

import (
	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/wellknown"
)

// rooms returns the nodes that pods of one of the live shapes may use, with the room that they have for each of them, as if
// the pods for which gone holds were not there. Nodes in one domain of the labels keys have the same number; nodes without
// one are left out. What is cordoned only to be emptied for the pods counts as open to them. gone must not call the account, and is called for every bound pod with mu held.
func (h *headroom) rooms(keys []shapeKey, labels []string, emptied map[string]bool, gone func(pod *v1.Pod, priority int32) bool) []gang.ReserveNode {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.settle()
	var domains *partition
	if len(labels) > 0 {
		domains = h.partition(labels)
	}
	shapes := make([]*shape, len(keys))
	for k, key := range keys {
		shapes[k] = h.shapes[key]
	}
	var out []gang.ReserveNode
	all := make([]gang.ReserveRoom, len(keys)*h.present)
	used, pods := make([]int64, len(h.resources)), make([]int, len(h.resources))
	scarce := make([]bool, len(h.resources))
	for _, s := range shapes {
		if s != nil && len(s.bounds) > 0 {
			// The first bound is the tightest.
			scarce[s.bounds[0].resource] = true
		}
	}
	for i, n := range h.nodes {
		if n == nil || n.node == nil || (domains != nil && domains.of[i] < 0) {
			continue
		}
		node := gang.ReserveNode{Name: n.name, Rooms: all[:len(keys):len(keys)]}
		if domains != nil {
			node.Domain = domains.of[i]
		}
		copy(used, n.used)
		clear(pods)
		for _, p := range n.pods {
			stays, inTheWay := !gone(p.pod, p.priority), false
			for _, u := range p.uses {
				if !stays {
					used[u.resource] -= u.amount
				} else if u.amount > 0 {
					pods[u.resource]++
					inTheWay = inTheWay || scarce[u.resource]
				}
			}
			if inTheWay && !podview.BelongsToNode(p.pod) {
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
			room := gang.ReserveRoom{Now: int(slotsOn(s.bounds, n.has, used)), Empty: int(slotsOnEmpty(s.bounds, n.has))}
			tightest := s.bounds[0].resource
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

// cordonedFor returns the nodes that are being emptied for the gang, nil if there are none.
func (h *headroom) cordonedFor(id gang.ID) map[string]bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	value := wellknown.CordonedFor("podgroup", id.Namespace, id.Name)
	var names map[string]bool
	for _, n := range h.nodes {
		if n != nil && n.node != nil && n.node.Annotations[wellknown.CordonedForKey] == value {
			if names == nil {
				names = map[string]bool{}
			}
			names[n.name] = true
		}
	}
	return names
}

// podsBetween returns the bound pods of these priorities and those between them.
func (h *headroom) podsBetween(least, most int32) []*v1.Pod {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []*v1.Pod
	for _, n := range h.nodes {
		if n == nil {
			continue
		}
		for _, p := range n.pods {
			if p.priority >= least && p.priority <= most {
				out = append(out, p.pod)
			}
		}
	}
	return out
}
