package coscheduling

import (
	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/gang"
)

// rooms returns the nodes that pods of one of the live shapes may use, with the room that they have for each of them, as if
// the pods for which gone holds were not there. Nodes in one domain of the labels keys have the same number; nodes without
// one are left out. gone must not call the account.
func (h *headroom) rooms(keys []shapeKey, labels []string, gone func(pod *v1.Pod, priority int32) bool) []gang.ReserveNode {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.settle()
	var domains *partition
	if len(labels) > 0 {
		domains = h.partition(labels)
	}
	var out []gang.ReserveNode
	used := make([]int64, len(h.resources))
	for i, n := range h.nodes {
		if n == nil || n.node == nil || (domains != nil && domains.of[i] < 0) {
			continue
		}
		node := gang.ReserveNode{Name: n.name, Rooms: make([]gang.ReserveRoom, len(keys))}
		if domains != nil {
			node.Domain = domains.of[i]
		}
		copy(used, n.used)
		pods := make([]int, len(h.resources))
		for _, p := range n.pods {
			stays := !gone(p.pod, p.priority)
			for _, u := range p.uses {
				if !stays {
					used[u.resource] -= u.amount
				} else if u.amount > 0 {
					pods[u.resource]++
				}
			}
		}
		fits := false
		for k, key := range keys {
			s := h.shapes[key]
			if s == nil || s.rule.verdicts[i] != admitted || len(s.bounds) == 0 {
				continue
			}
			room := gang.ReserveRoom{Now: int(slotsOn(s.bounds, n.has, used)), Empty: int(slotsOnEmpty(s.bounds, n.has))}
			// The first bound is the tightest.
			scarce := s.bounds[0].resource
			room.Pods = pods[scarce]
			if has := n.has[scarce]; has > 0 {
				room.Free = int(1000 * float64(has-used[scarce]) / float64(has))
			}
			node.Rooms[k] = room
			fits = fits || room.Empty > 0
		}
		if fits {
			out = append(out, node)
		}
	}
	return out
}
