package dryrun

import (
	"cmp"
	"container/heap"
	"slices"

	fwk "k8s.io/kube-scheduler/framework"
)

// candidate is a node on which one more member fits, as far as is known.
type candidate struct {
	node int
	// rank is the place of the node's domain in the order in which domains are filled.
	rank   int
	scores fwk.NodePluginScores
	// fresh is set while nothing was placed since the node was filtered.
	fresh bool
}

func compareCandidates(a, b candidate) int {
	return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(b.scores.TotalScore, a.scores.TotalScore),
		cmp.Compare(a.node, b.node))
}

// leastKept is how many candidates are kept even of a class of few members.
const leastKept = 32

// candidates is a heap, best first; equal scores are ranked by position, so that the same input gives the same plan.
type candidates []candidate

var _ heap.Interface = &candidates{}

func (c candidates) Len() int           { return len(c) }
func (c candidates) Less(i, j int) bool { return compareCandidates(c[i], c[j]) < 0 }
func (c candidates) Swap(i, j int)      { c[i], c[j] = c[j], c[i] }

// Push adds a candidate.
func (c *candidates) Push(x any) { *c = append(*c, x.(candidate)) }

// Pop removes the last candidate of the slice.
func (c *candidates) Pop() any {
	old := *c
	last := old[len(old)-1]
	*c = slices.Delete(old, len(old)-1, len(old))
	return last
}

// stale notes that the candidates were filtered before something changed.
func (t *Class) stale() {
	for i := range t.candidates {
		t.candidates[i].fresh = false
	}
}
