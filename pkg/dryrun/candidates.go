package dryrun

import (
	"cmp"

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

// stale notes that the candidates were filtered before something changed.
func (t *Class) stale() {
	for i := range t.candidates.Items {
		t.candidates.Items[i].fresh = false
	}
}
