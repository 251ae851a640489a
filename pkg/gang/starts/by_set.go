package starts

import (
	"cmp"
	"math"
	"slices"

	"berth.dev/berth/pkg/gang/tree"
)

// setReserver keeps room for a group whose members are in sets with domains of their own. A search over the tree finds
// domains in which as few pods as possible have to end on any node.
type setReserver struct {
	*Problem
	stages [][]tree.Node
	// used is how much of a node is taken, members counts them by node and shape.
	used    map[int]float64
	members map[[2]int]int
}

func chooseBySet(p *Problem) (Choice, bool) {
	s := &setReserver{Problem: p, stages: make([][]tree.Node, len(p.Nodes)), used: map[int]float64{},
		members: map[[2]int]int{}}
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
				s.take(n, shape)
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

// take keeps room for one member.
func (s *setReserver) take(n, shape int) {
	s.used[n] += 1 / float64(max(s.Nodes[n].Rooms[shape].Empty, 1))
	s.members[[2]int{n, shape}]++
}

// isFree reports whether what is taken of the node is free now.
func (s *setReserver) isFree(n int) bool {
	node := &s.Nodes[n]
	left := slices.Clone(node.Free[0])
	for shape := range node.Rooms {
		count := s.members[[2]int{n, shape}]
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
			if s.members[[2]int{n, shape}] > 0 {
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
			left := int(math.Ceil(spareShare * float64(len(taken))))
			for _, n := range nodes {
				empty := s.Nodes[n].Rooms[shape].Empty
				for left > 0 && empty > 0 && s.used[n]+1/float64(empty) <= 1.0001 {
					if s.used[n] == 0 && len(s.used) >= s.MaxNodes {
						break
					}
					s.take(n, shape)
					left--
				}
			}
		}
	}
}

// result names a class of each shape for its members.
func (s *setReserver) result(pods int) Choice {
	out := Choice{Pods: pods, Ready: pods == 0}
	for n := range s.Nodes {
		for shape := range s.Nodes[n].Rooms {
			if count := s.members[[2]int{n, shape}]; count > 0 {
				class := slices.IndexFunc(s.Classes, func(c Class) bool { return c.Shape == shape })
				out.Places = append(out.Places, Place{Node: s.Nodes[n].Name, Class: class, Count: count})
			}
		}
	}
	return out
}
