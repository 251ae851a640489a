package starts

import (
	"cmp"
	"slices"

	"berth.dev/berth/pkg/gang/tree"
)

// setReserver keeps room for a group whose members are in sets with domains of their own. A search over the tree finds
// domains in which as few pods as possible have to end on any node.
type setReserver struct {
	*keeping
	stages [][]tree.Node
	// classes are by shape the first class of it, for which room is kept.
	classes []int
}

func chooseBySet(p *Problem) (Choice, bool) {
	s := &setReserver{keeping: keep(p), stages: make([][]tree.Node, len(p.Nodes))}
	for shape := range p.Tree.Asks {
		s.classes = append(s.classes, slices.IndexFunc(p.Classes, func(c Class) bool { return c.Shape == shape }))
	}
	for n := range p.Nodes {
		s.addNode(n)
	}
	answer := s.find(true)
	if answer == nil {
		answer = s.find(false)
	}
	if answer == nil {
		return Choice{}, false
	}
	for _, shapes := range answer.Nodes {
		for shape, nodes := range shapes {
			for _, n := range nodes {
				s.add(n, s.classes[shape])
			}
		}
	}
	if len(s.used) > p.MaxNodes {
		return Choice{}, false
	}
	pods := s.pods()
	if pods > 0 && !p.NoSpare {
		s.spare(answer)
	}
	return s.result(pods), true
}

// addNode adds the stages of a node: what is free now, and everything when its pods have ended. Nodes on which
// something is kept already come before others.
func (s *setReserver) addNode(n int) {
	node := &s.Nodes[n]
	if node.Domain < 0 {
		return
	}
	now, empty, pods := tree.Node{Free: node.Free[0]}, tree.Node{Free: node.Free[1]}, 1
	for r := range node.Rooms {
		room := &node.Rooms[r]
		now.Slots, empty.Slots = append(now.Slots, min(room.Now, room.Empty)), append(empty.Slots, room.Empty)
		pods = max(pods, room.Pods)
	}
	empty.At = int64(2 * pods)
	if !node.Kept {
		now.At++
		empty.At++
	}
	for _, stage := range []tree.Node{now, empty} {
		if slices.Max(stage.Slots) > 0 {
			s.stages[n] = append(s.stages[n], stage)
		}
	}
}

// find looks for domains; with stay, only for those in which something is kept already.
func (s *setReserver) find(stay bool) *tree.Answer {
	stages := slices.Clone(s.stages)
	for _, domains := range s.Tree.Levels {
		kept := map[int]bool{}
		for n, d := range domains {
			kept[d] = kept[d] || s.Nodes[n].Kept
		}
		for n, d := range domains {
			if stay && !kept[d] {
				stages[n] = nil
			}
		}
	}
	_, answer := s.Tree.Soonest(stages)
	return answer
}

// pods is how many have to end on the nodes where more is taken than is free now.
func (s *setReserver) pods() int {
	pods := 0
	for n := range s.used {
		left, fits, most := slices.Clone(s.Nodes[n].Free[0]), true, 1
		for shape, room := range s.Nodes[n].Rooms {
			count := s.counts[[2]int{n, s.classes[shape]}]
			if count > 0 {
				most = max(most, room.Pods)
			}
			fits = fits && count <= room.Now
			for r := range left {
				left[r] -= int64(count) * s.Tree.Asks[shape][r]
			}
		}
		if !fits || slices.ContainsFunc(left, func(free int64) bool { return free < 0 }) {
			pods += most
		}
	}
	return pods
}

// spare takes more room in the domain of each set.
func (s *setReserver) spare(answer *tree.Answer) {
	for set, shapes := range answer.Nodes {
		home := answer.Homes[set]
		var nodes []int
		for n := range s.Nodes {
			if len(s.stages[n]) > 0 && (home.Level == tree.None || s.Tree.Levels[home.Level][n] == home.Domain) {
				nodes = append(nodes, n)
			}
		}
		last := func(n int) int64 { return s.stages[n][len(s.stages[n])-1].At }
		slices.SortStableFunc(nodes, func(a, b int) int { return cmp.Compare(last(a), last(b)) })
		for shape, taken := range shapes {
			left := spareOf(len(taken))
			for _, n := range nodes {
				left -= s.fill(n, s.classes[shape], left)
			}
		}
	}
}
