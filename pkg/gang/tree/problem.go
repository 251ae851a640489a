package tree

import "slices"

// None is the index of no domain and of no level, and the number that is no bound.
const None = -1

// Node is what is known of one node.
type Node struct {
	// Free is what the node has free, by resource.
	Free []int64
	// Slots bounds by class how many members the node takes if it takes no others. Classes without an entry are bounded
	// by Free.
	Slots []int
	// At is when the node has that. Nodes and domains that are ready sooner come first.
	At int64
}

// Set is a set of members that shares a domain.
type Set struct {
	// Level is the index of the level whose domain all members share, None if they share that of the set around this
	// one. Prefer are levels whose domains are tried first, the narrowest first.
	Level  int
	Prefer []int
	// Need counts by class the members that have to be placed for the set to be whole, More those that may.
	Need, More []int
	// Alone is set if no other such set may have the domain of Level. The roomiest domain is tried first then: no other
	// such set can use what is left of it.
	Alone bool
	// Held is the domain of Level in which members of the set are already, None if there are none.
	Held int
	// Sets are the indices of the sets within, Least is how many of them have to be whole.
	Sets  []int
	Least int
	// Enough is how many placed members make up for sets within that are not whole; None if no number does. One such set
	// may then be placed in part.
	Enough int
}

// Problem is a tree of sets and the nodes on which to place it. The first set holds all others.
type Problem struct {
	Nodes []Node
	// Asks is what a member asks for, by class and resource.
	Asks [][]int64
	// Levels hold the domain of each node at each level, None for a node that is in none.
	Levels [][]int
	// Order holds by level the domains in the order in which to fill them. Other domains come after them, by best fit.
	Order map[int][]int
	Sets  []Set
}

// Home is a domain of a level; the level None has the one domain of all nodes.
type Home struct{ Level, Domain int }

// Answer is what came of a problem.
type Answer struct {
	// Whole is set if all that is needed has a place by the account.
	Whole bool
	// Homes are the domains of the sets, Placed says which of the sets have one.
	Homes  []Home
	Placed []bool
	// Nodes holds by set and class the node of each member that has a place.
	Nodes [][][]int
}

// demand is what a set and those within it need in any case, by class.
func (p *Problem) demand(set int) []int {
	of := &p.Sets[set]
	need := make([]int, len(p.Asks))
	copy(need, of.Need)
	if of.Least < len(of.Sets) {
		return need
	}
	for _, within := range of.Sets {
		for class, n := range p.demand(within) {
			need[class] += n
		}
	}
	return need
}

// Same reports whether two sets need the same of the same levels.
func (p *Problem) Same(a, b int) bool {
	x, y := &p.Sets[a], &p.Sets[b]
	return x.Level == y.Level && x.Alone == y.Alone && x.Held == y.Held && x.Least == y.Least &&
		slices.Equal(x.Need, y.Need) && slices.Equal(x.Prefer, y.Prefer) &&
		slices.EqualFunc(x.Sets, y.Sets, p.Same)
}

// count is how many members have a place.
func (a *Answer) count() int {
	n := 0
	for _, classes := range a.Nodes {
		for _, nodes := range classes {
			n += len(nodes)
		}
	}
	return n
}

// members is how many members of the class may be placed.
func (s *Set) members(class int) int {
	n := 0
	if s.Need != nil {
		n += s.Need[class]
	}
	if s.More != nil {
		n += s.More[class]
	}
	return n
}

// NodesOf returns the nodes of a home, those first that are ready the soonest.
func (p *Problem) NodesOf(home Home) []int {
	of := newParts(p)
	return of.area(home).nodes
}
