package ranks

import (
	"cmp"
	"slices"
	"strings"
)

// Index is how a controller numbers one member.
type Index struct {
	// First is set for members that come before those of all other sets: masters and launchers.
	First bool
	// Set names what is numbered on its own: a type of replicas, a Job.
	Set string
	// Block numbers the parts of the set that follow each other, such as the Jobs of a JobSet, and Number the members of
	// such a part.
	Block, Number int
}

func compareBlocks(a, b Index) int {
	switch {
	case a.First && !b.First:
		return -1
	case b.First && !a.First:
		return 1
	}
	return cmp.Or(strings.Compare(a.Set, b.Set), cmp.Compare(a.Block, b.Block))
}

// Number returns the ranks of members in their group: sets and blocks follow each other, and a block is as long as its
// highest number requires. A block without a known member counts as long as the block before it.
func Number(indices []Index) []int {
	order := make([]int, len(indices))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return compareBlocks(indices[a], indices[b]) })
	ranks := make([]int, len(indices))
	next, length := 0, 0
	for from := 0; from < len(order); {
		block := indices[order[from]]
		if from > 0 {
			if last := indices[order[from-1]]; last.First == block.First && last.Set == block.Set {
				next += (block.Block - last.Block - 1) * length
			}
		}
		to := from
		length = 0
		for ; to < len(order) && compareBlocks(indices[order[to]], block) == 0; to++ {
			ranks[order[to]] = next + indices[order[to]].Number
			length = max(length, indices[order[to]].Number+1)
		}
		next, from = next+length, to
	}
	return ranks
}
