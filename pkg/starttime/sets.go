package starttime

import (
	"slices"

	"berth.dev/berth/pkg/runtimes"
	"berth.dev/berth/pkg/tree"
)

// setPlanner finds places for a gang whose members are in sets with domains of their own. Which domain is the best for
// a set depends on those of the others, so a search over the tree is asked from when on all of them fit.
type setPlanner struct {
	*planner
	gang *Gang
	// stages are what each node has for the gang, and from when on; has says the same in the terms of the planner.
	stages [][]tree.Stage
	has    [][]entry
}

func (p *planner) bySet(g *Gang) *setPlanner {
	s := &setPlanner{planner: p, gang: g, stages: make([][]tree.Stage, len(p.nodes)), has: make([][]entry, len(p.nodes))}
	for n := range p.nodes {
		s.addNode(n)
	}
	return s
}

// addNode finds out what the node has for the gang as its pods end, and when the gangs before have ended.
func (s *setPlanner) addNode(n int) {
	node, taken := &s.nodes[n], &s.taken[n]
	last := 0
	for gone := range len(node.Ends) + 1 {
		if gone > 0 && !node.Ends[gone-1].Ends() {
			break
		}
		last = gone
		if stage := s.stage(n, gone, 1-taken.share); s.more(n, stage) {
			at := runtimes.LastAt(node.Ends[:gone], s.ready)
			s.add(n, stage, entry{node: int32(n), gone: int32(gone), at: at})
		}
	}
	if taken.share == 0 || !taken.until.Ends() {
		return
	}
	if stage := s.stage(n, last, 1); s.more(n, stage) {
		at := max(runtimes.LastAt(node.Ends[:last], s.ready), taken.until.At(s.ready))
		s.add(n, stage, entry{node: int32(n), gone: int32(last), after: true, at: at})
	}
}

// stage is a part of what the node has when its first pods have gone.
func (s *setPlanner) stage(n, gone int, share float64) tree.Stage {
	node := &s.nodes[n]
	part := func(of int64) int64 { return int64(float64(of)*share + 1e-6) }
	stage := tree.Stage{Slots: make([]int, len(s.gang.Members))}
	for class, m := range s.gang.Members {
		if node.domain(m.Shape) >= 0 {
			stage.Slots[class] = int(part(int64(node.Fits[m.Shape][gone])))
		}
	}
	if len(s.gang.Members) > 1 {
		for _, free := range node.Free[s.gang.Members[0].Shape][gone] {
			stage.Free = append(stage.Free, part(free))
		}
	}
	return stage
}

// more reports whether the node has more for the gang than in its last stage.
func (s *setPlanner) more(n int, stage tree.Stage) bool {
	if !slices.ContainsFunc(stage.Slots, func(slots int) bool { return slots > 0 }) {
		return false
	}
	before := s.stages[n]
	return len(before) == 0 || !slices.Equal(before[len(before)-1].Slots, stage.Slots) ||
		!slices.Equal(before[len(before)-1].Free, stage.Free)
}

func (s *setPlanner) add(n int, stage tree.Stage, has entry) {
	stage.At = int64(has.at)
	s.stages[n], s.has[n] = append(s.stages[n], stage), append(s.has[n], has)
}

// choose returns the places with which the gang starts the soonest, on nodes that may be used.
func (s *setPlanner) choose(may func(node int) bool) (choice, bool) {
	stages := make([][]tree.Stage, len(s.stages))
	for n := range stages {
		if may(n) {
			stages[n] = s.stages[n]
		}
	}
	_, answer := s.gang.Tree.Soonest(stages)
	if answer == nil {
		return choice{}, false
	}
	members := make(map[int][]int, len(s.nodes))
	var nodes []int
	for _, classes := range answer.Nodes {
		for class, on := range classes {
			for _, n := range on {
				if members[n] == nil {
					nodes, members[n] = append(nodes, n), make([]int, len(s.gang.Members))
				}
				members[n][class]++
			}
		}
	}
	if len(nodes) > s.gang.MaxNodes {
		return choice{}, false
	}
	var c choice
	for _, n := range nodes {
		has := s.has[n][slices.IndexFunc(s.stages[n], func(stage tree.Stage) bool { return s.holds(&stage, members[n]) })]
		for class, count := range members[n] {
			if count == 0 {
				continue
			}
			c.places = append(c.places, Place{Node: n, Members: class, Count: count, Gone: int(has.gone), Ready: has.at})
			c.after = append(c.after, has.after)
			c.at = max(c.at, has.at)
		}
	}
	return c, true
}

// holds reports whether members, counted by class, fit into the stage.
func (s *setPlanner) holds(stage *tree.Stage, members []int) bool {
	for class, count := range members {
		if stage.Slots[class] < count {
			return false
		}
	}
	for r, free := range stage.Free {
		for class, count := range members {
			free -= int64(count) * s.gang.Tree.Asks[class][r]
		}
		if free < 0 {
			return false
		}
	}
	return true
}
