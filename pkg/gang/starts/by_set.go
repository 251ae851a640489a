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
	answer := s.find(s.keptDomains())
	if answer == nil {
		answer = s.find(nil)
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

// addNode has the node come with what is free, and with the rest when its pods have ended. What is kept already comes
// before others.
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
	positive := func(n int) bool { return n > 0 }
	if slices.ContainsFunc(now.Slots, positive) {
		s.stages[n] = append(s.stages[n], now)
	}
	if slices.ContainsFunc(empty.Slots, positive) {
		s.stages[n] = append(s.stages[n], empty)
	}
}

// keptDomains are the nodes in the domains where something is kept already; nil if nothing is. A group stays there.
func (s *setReserver) keptDomains() map[int]bool {
	kept := make([]map[int]bool, len(s.Tree.Levels))
	some := false
	for level, domains := range s.Tree.Levels {
		kept[level] = map[int]bool{}
		for n, d := range domains {
			if s.Nodes[n].Kept {
				kept[level][d], some = true, true
			}
		}
	}
	if !some {
		return nil
	}
	nodes := map[int]bool{}
	for n := range s.Nodes {
		nodes[n] = true
		for level, domains := range s.Tree.Levels {
			nodes[n] = nodes[n] && kept[level][domains[n]]
		}
	}
	return nodes
}

// find looks for domains on some of the nodes, all with nil.
func (s *setReserver) find(among map[int]bool) *tree.Answer {
	stages := slices.Clone(s.stages)
	for n := range stages {
		if among != nil && !among[n] {
			stages[n] = nil
		}
	}
	_, answer := s.Tree.Soonest(stages)
	return answer
}

// isFree reports whether what is taken of the node is free now.
func (s *setReserver) isFree(n int) bool {
	node := &s.Nodes[n]
	left := slices.Clone(node.Free[0])
	for shape := range node.Rooms {
		count := s.counts[[2]int{n, s.classes[shape]}]
		if count > node.Rooms[shape].Now {
			return false
		}
		for r := range left {
			left[r] -= int64(count) * s.Tree.Asks[shape][r]
		}
	}
	return !slices.ContainsFunc(left, func(free int64) bool { return free < 0 })
}

// pods is how many have to end on the nodes that are taken.
func (s *setReserver) pods() int {
	pods := 0
	for n := range s.used {
		if s.isFree(n) {
			continue
		}
		most := 1
		for shape := range s.Nodes[n].Rooms {
			if s.counts[[2]int{n, s.classes[shape]}] > 0 {
				most = max(most, s.Nodes[n].Rooms[shape].Pods)
			}
		}
		pods += most
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
