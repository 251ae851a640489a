package capacity

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/starts"
	"berth.dev/berth/pkg/podview"
)

// Rooms returns the nodes that pods of one of the live shapes may use, with the room that they have for each of them,
// as if the pods for which gone holds were not there. Nodes in one domain of the labels keys have the same number;
// nodes without one are left out. end says when a bound pod ends, false if that is not known. Both must not call the
// index, and are called for every bound pod with mu held. With together, it is told, too, what nodes have for pods of
// several shapes that share them, and what pods of each shape ask for of that.
func (x *Index) Rooms(keys []ShapeKey, labels []string, together bool,
	gone func(pod *v1.Pod, priority int32) bool, end func(*BoundPod) (time.Time, bool)) (out []starts.Node,
	asks [][]int64) {
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
	all := make([]starts.Room, len(keys)*x.nodes.present)
	used, pods := make([]int64, len(x.resources.names)), make([]int, len(x.resources.names))
	nothing := make([]int64, len(used))
	var ending []endingPod
	admits := func(i int, s *shape) bool {
		return s != nil && len(s.bounds) > 0 && s.rule.verdicts[i] == admitted
	}
	for i, n := range x.nodes.existing() {
		if domains != nil && domains.of[i] < 0 {
			continue
		}
		node := starts.Node{Name: n.name, Rooms: all[:len(keys):len(keys)]}
		if domains != nil {
			node.Domain = domains.of[i]
		}
		copy(used, n.used)
		clear(pods)
		ending = ending[:0]
		for _, p := range n.pods {
			if gone(p.Object, p.Priority) {
				p.release(used)
				continue
			}
			for _, u := range p.Uses {
				if u.Amount > 0 {
					pods[u.Resource]++
				}
			}
			if at, known := end(&p.BoundPod); known && !podview.BelongsToNode(p.Object) {
				ending = append(ending, endingPod{p, at})
			}
		}
		if together {
			node.Free = [2][]int64{shared.free(n.has, used), shared.free(n.has, nothing)}
		}
		fits := false
		for k, s := range shapes {
			if !admits(i, s) {
				continue
			}
			room := starts.Room{Now: int(slotsOn(s.bounds, n.has, used)), Empty: int(slotsOnEmpty(s.bounds, n.has))}
			tightest := s.bounds[0].Resource
			room.Pods = pods[tightest]
			if has := n.has[tightest]; has > 0 {
				room.Free = int(1000 * float64(has-used[tightest]) / float64(has))
			}
			node.Rooms[k] = room
			fits = fits || room.Empty > 0
		}
		if fits {
			slices.SortFunc(ending, func(a, b endingPod) int { return a.at.Compare(b.at) })
			for k := range len(ending) + 1 {
				if k > 0 {
					node.Ends = append(node.Ends, starts.End{At: ending[k-1].at, Pod: gang.UID(ending[k-1].Object.UID)})
					ending[k-1].release(used)
				}
				stage := starts.Stage{Fits: make([]int, len(keys))}
				for s := range shapes {
					if admits(i, shapes[s]) {
						stage.Fits[s] = int(slotsOn(shapes[s].bounds, n.has, used))
					}
				}
				if together {
					stage.Free = shared.free(n.has, used)
				}
				node.Stages = append(node.Stages, stage)
			}
			out, all = append(out, node), all[len(keys):]
		} else {
			clear(node.Rooms)
		}
	}
	return out, shared.asks
}

// endingPod is a pod whose end is known.
type endingPod struct {
	*podEntry
	at time.Time
}

// release takes what the pod uses off the amounts.
func (p *podEntry) release(used []int64) {
	for _, u := range p.Uses {
		used[u.Resource] -= u.Amount
	}
}
