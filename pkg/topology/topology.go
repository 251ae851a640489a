package topology

import (
	"cmp"
	"slices"
)

// Node is what is known of one node.
type Node struct {
	// Path holds the domain of the node at each level, the widest level first; empty where the node lies in none. All
	// nodes have the same number of levels. Equal names in different domains of the level above are different domains.
	Path []string
	// Slots bounds from above how many members of each class the node can take if it takes no others, in the order of
	// Demand.Want; nil if the node can take none.
	Slots []int
	// Held is the number of members that the node already has.
	Held int
	// Beside is how many of the wanted members have a rank next to that of a member that the node has. A node has none
	// unless it holds members.
	Beside int
}

// Demand is what is to be placed.
type Demand struct {
	// Want is the number of members of each class, at least one of each. The class that is hardest to place comes
	// first: the fit of a domain is measured by its slots for that class.
	Want []int
	// Need is how many members of all classes together have to be placed at least.
	Need int
}

// Arrangement is a part of the nodes on which to try the group: their indices by domain, in the order in which the
// domains are to be filled. A domain is used when no further member fits in those before it. Domains that share a wider
// domain follow each other.
type Arrangement [][]int

const (
	// mostArrangements is how many arrangements are returned besides whole domains.
	mostArrangements = 16
	// mostScans bounds the nodes in these arrangements together, in multiples of the number of nodes.
	mostScans = 2
)

// Arrange returns the arrangements of a group in the order in which to try them. The first required levels are not
// split: all members share one domain of each. The other levels are preferred: as few of their domains as possible are
// used, first of the widest level, then of the next. Among arrangements that are equal in this, the one that leaves the
// least room over in its narrowest domains comes first, then the one that does so in the next wider ones.
//
// At most 16 such arrangements for all wanted members are returned, with at most about twice as many nodes in them as
// there are. They are followed by whole domains of the narrowest required level (all nodes if no level is required),
// so that the group is tried wherever its minimum may fit although slots are only bounds. Domains that may hold all
// members come first, by best fit; then those that may hold the minimum, largest first. Their sets are ordered in the
// same way and include nodes without slots. If no domain may hold the minimum, only the largest one is returned, to
// tell what is missing. If no node has all required labels, there is no arrangement.
//
// Preferred domains in which members are held already cost nothing and are filled first, those first beside whose
// members most of the wanted ones belong. A required domain in which members are held is the only one that counts; of
// several the one that holds the most members.
//
// A node without the label of a required level is left out. A node without the label of a preferred level is a domain
// of its own at that level and at all narrower ones, and is used only if that makes fewer domains. All such nodes
// within one wider domain are returned as one set, because nothing is known by which to order them.
//
// How exact it is: with one class, the number of domains of the widest preferred level is the least possible, because
// the largest domains cover a demand with the fewest. At each further level it is the least possible within the
// domains that are chosen at the level above. Which of several equally small choices leads to the fewest domains
// below is found by trying them: all if they are few, which is exact, else a bounded number (see choose and search).
// With several classes, the fewest domains are a minimum set cover: exact if the combinations are few, else greedy.
// The time grows with nodes·levels·log(nodes).
func Arrange(nodes []Node, required int, demand Demand) []Arrangement {
	if len(nodes) == 0 {
		return nil
	}
	levels := len(nodes[0].Path)
	roots := pinned(grow(nodes, required, demand.Want).below(required))
	var out []Arrangement
	returned := map[*domain]bool{}
	whole := func(r *domain) {
		if !returned[r] {
			returned[r] = true
			out = append(out, r.fill(nil))
		}
	}
	if levels > required && len(demand.Want) > 0 {
		used := 0
		for _, s := range search(roots, levels-required, demand.Want, len(nodes)) {
			if len(out) == mostArrangements || used > mostScans*len(nodes) {
				break
			}
			sets, n := s.sets()
			used += n
			if n == s.root.usable {
				whole(s.root)
				continue
			}
			out = append(out, sets)
		}
	}
	slices.SortStableFunc(roots, byFit)
	for _, r := range roots {
		if r.size >= demand.Need {
			whole(r)
		}
	}
	if len(out) == 0 && len(roots) > 0 {
		whole(roots[0])
	}
	return out
}

// pinned returns the domain that holds the most members already, or all domains if none holds any.
func pinned(roots []*domain) []*domain {
	most := 0
	for i, r := range roots {
		if r.held > roots[most].held {
			most = i
		}
	}
	if len(roots) > 0 && roots[most].held > 0 {
		return roots[most : most+1]
	}
	return roots
}

// byFit sorts domains that take more of the wanted members first; of those that take equally many the one that leaves
// the least room over, because a large domain is better kept for a group that needs it.
func byFit(a, b *domain) int {
	return cmp.Or(cmp.Compare(b.size, a.size), cmp.Compare(a.first(), b.first()), cmp.Compare(a.name, b.name))
}

// byFilling sorts domains in the order in which they are filled: those beside whose members the most wanted ones
// belong, those that hold the most members, those by fit, and nodes that are on their own.
func byFilling(a, b *domain) int {
	switch {
	case a.beside != b.beside:
		return cmp.Compare(b.beside, a.beside)
	case a.held != b.held:
		return cmp.Compare(b.held, a.held)
	case a.alone != b.alone && b.alone:
		return -1
	case a.alone != b.alone:
		return 1
	}
	return byFit(a, b)
}

func sum(counts []int) int {
	total := 0
	for _, n := range counts {
		total += n
	}
	return total
}
