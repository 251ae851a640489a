package capacity

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/starts"
	"berth.dev/berth/pkg/podview"
)

// Rooms returns the nodes on which at least one pod of one of the live shapes fits if no pod runs there, with how many
// of each shape fit. Pods for which leaves holds do not count. Nodes in one domain of the labels have the same number
// as Domain; nodes that lack a label are left out. end returns when a bound pod ends, false if that is not known. Both
// must not call the index, and are called for every bound pod with mu held.
//
// With together, the nodes also say what they have free for pods of several shapes at once, and asks is what a pod of
// each shape asks for of that.
func (x *Index) Rooms(keys []ShapeKey, labels []string, together bool,
	leaves func(pod *v1.Pod, priority int32) bool, end func(*BoundPod) (time.Time, bool)) (out []starts.Node,
	asks [][]int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	r := &roomCounter{shapes: make([]*shape, len(keys)), used: make([]int64, len(x.resources.names)),
		pods: make([]int, len(x.resources.names))}
	for k, key := range keys {
		r.shapes[k] = x.shapes.byKey[key]
	}
	if together {
		r.shared = x.amountsOf(keys)
		asks = r.shared.asks
	}
	domains := x.partition(labels)
	for i, n := range x.nodes.existing() {
		if domains.of[i] < 0 {
			continue
		}
		r.read(n, leaves, end)
		if rooms := r.rooms(n); rooms != nil {
			node := starts.Node{Name: n.name, Domain: domains.of[i], Rooms: rooms}
			if together {
				node.Free = [2][]int64{r.shared.free(n.has, r.used), r.shared.free(n.has, nil)}
			}
			node.Ends, node.Stages = r.stages(n)
			out = append(out, node)
		}
	}
	return out, asks
}

// roomCounter counts what one node after the other has for pods of some shapes.
type roomCounter struct {
	shapes []*shape
	// shared is what limits pods of the shapes together, nil if that is not asked.
	shared *amounts
	// used is what the pods of the node use that stay, pods how many of them use each resource, and ending are those
	// whose end is known, the soonest first.
	used   []int64
	pods   []int
	ending []endingPod
}

// endingPod is a pod whose end is known.
type endingPod struct {
	*podEntry
	at time.Time
}

// read reads the pods of the node but for those for which leaves holds.
func (r *roomCounter) read(n *nodeEntry, leaves func(pod *v1.Pod, priority int32) bool,
	end func(*BoundPod) (time.Time, bool)) {
	copy(r.used, n.used)
	clear(r.pods)
	r.ending = r.ending[:0]
	for _, p := range n.pods {
		if leaves(p.Object, p.Priority) {
			p.release(r.used)
			continue
		}
		for _, u := range p.Uses {
			if u.Amount > 0 {
				r.pods[u.Resource]++
			}
		}
		if at, known := end(&p.BoundPod); known && !podview.BelongsToNode(p.Object) {
			r.ending = append(r.ending, endingPod{p, at})
		}
	}
	slices.SortFunc(r.ending, func(a, b endingPod) int { return a.at.Compare(b.at) })
}

// admits reports whether pods of the shape may be on the node, as far as anything bounds their number.
func (r *roomCounter) admits(s *shape, n *nodeEntry) bool {
	return s != nil && len(s.bounds) > 0 && s.admits(n)
}

// rooms counts the pods of each shape that fit on the node; nil if none fits even without other pods.
func (r *roomCounter) rooms(n *nodeEntry) []starts.Room {
	rooms, fits := make([]starts.Room, len(r.shapes)), false
	for k, s := range r.shapes {
		if !r.admits(s, n) {
			continue
		}
		tightest := s.bounds[0].Resource
		room := starts.Room{Now: int(slotsOn(s.bounds, n.has, r.used)), Empty: int(s.slotsOnEmpty(n)),
			Pods: r.pods[tightest]}
		if has := n.has[tightest]; has > 0 {
			room.Free = int(1000 * float64(has-r.used[tightest]) / float64(has))
		}
		rooms[k], fits = room, fits || room.Empty > 0
	}
	if !fits {
		return nil
	}
	return rooms
}

// stages returns the known ends, and what the node has before the first of them and after each.
func (r *roomCounter) stages(n *nodeEntry) (ends []starts.End, stages []starts.Stage) {
	stages = append(stages, r.stage(n))
	for _, p := range r.ending {
		p.release(r.used)
		ends = append(ends, starts.End{At: p.at, Pod: gang.UID(p.Object.UID)})
		stages = append(stages, r.stage(n))
	}
	return ends, stages
}

func (r *roomCounter) stage(n *nodeEntry) starts.Stage {
	stage := starts.Stage{Fits: make([]int, len(r.shapes))}
	for k, s := range r.shapes {
		if r.admits(s, n) {
			stage.Fits[k] = int(slotsOn(s.bounds, n.has, r.used))
		}
	}
	if r.shared != nil {
		stage.Free = r.shared.free(n.has, r.used)
	}
	return stage
}

// release takes what the pod uses off the amounts.
func (p *podEntry) release(used []int64) {
	for _, u := range p.Uses {
		used[u.Resource] -= u.Amount
	}
}

// amounts are the resources that limit how many pods of some shapes share a node.
type amounts struct {
	// resources are their positions, claimed those that device classes hand out where nodes do not offer them.
	resources []int
	claimed   map[int]bool
	// asks is what a pod asks for, by shape and resource.
	asks [][]int64
}

// amountsOf returns what limits pods of these shapes together.
func (x *store) amountsOf(keys []ShapeKey) *amounts {
	a := &amounts{claimed: map[int]bool{}, asks: make([][]int64, len(keys))}
	for _, key := range keys {
		if s := x.shapes.byKey[key]; s != nil {
			for _, b := range s.bounds {
				a.resources = append(a.resources, b.Resource)
				a.claimed[b.Resource] = b.claimed
			}
		}
	}
	slices.Sort(a.resources)
	a.resources = slices.Compact(a.resources)
	for k, key := range keys {
		a.asks[k] = make([]int64, len(a.resources))
		if s := x.shapes.byKey[key]; s != nil {
			for _, b := range s.bounds {
				a.asks[k][slices.Index(a.resources, b.Resource)] = b.Amount
			}
		}
	}
	return a
}

// free is what a node has of the resources besides what is used, if anything.
func (a *amounts) free(has, used []int64) []int64 {
	free := make([]int64, len(a.resources))
	for i, r := range a.resources {
		free[i] = has[r]
		if used != nil {
			free[i] = max(has[r]-used[r], 0)
		}
		if a.claimed[r] && has[r] == 0 {
			free[i] = maxUse
		}
	}
	return free
}
