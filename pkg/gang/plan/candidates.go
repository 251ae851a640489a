package plan

import (
	"cmp"
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

// mostKept is how many candidates are kept: all that are kept are ranked again with every placement. spare is how many
// are kept of them besides one for each member that is left: some turn out not to fit any more.
const (
	mostKept = 128
	spare    = 32
)

// ranking is the nodes that fit, ranked against each other.
type ranking struct {
	// candidates are the nodes that fit, best first; equal scores are ranked by position, so that the same input gives
	// the same plan.
	candidates []candidate
	// scored holds the nodes that were scored first, when no member had been placed on them.
	scored []candidate
	// scoring is the state in which the candidates were scored.
	scoring fwk.CycleState
}

// score ranks the nodes against each other and makes them the candidates.
func (t *Class) score(fit []int) error {
	infos := make([]fwk.NodeInfo, len(fit))
	for i, n := range fit {
		infos[i] = t.run.node(n)
	}
	t.scoring = t.State
	if len(fit) == 1 && t.run.work.many && t.left == 1 {
		// Nothing is compared with it, now or when it is placed.
		t.candidates = []candidate{{node: fit[0], rank: t.run.rank(fit[0]), fresh: true}}
		return nil
	}
	t.run.work.spend(len(fit))
	if status := t.Profile.RunPreScorePlugins(t.run.ctx, t.State, t.Pod, infos); !status.IsSuccess() {
		return status.AsError()
	}
	scores, status := t.Profile.RunScorePlugins(t.run.ctx, t.State, t.Pod, infos)
	if !status.IsSuccess() {
		return status.AsError()
	}
	ranked := make([]candidate, len(fit))
	for i := range fit {
		ranked[i] = candidate{node: fit[i], rank: t.run.rank(fit[i]), scores: scores[i], fresh: true}
	}
	slices.SortFunc(ranked, compareCandidates)
	if t.scored == nil {
		t.scored = slices.Clone(ranked)
	}
	t.candidates = ranked
	t.keepBest()
	return nil
}

// keepBest lets go of the candidates that the members that are left will not come to soon. They are found again if the
// others do not do.
func (t *Class) keepBest() {
	if keep := min(max(t.left, 0)+spare, mostKept); len(t.candidates) > keep {
		t.candidates = slices.Clone(t.candidates[:keep])
	}
}

// reconsider filters and scores the node on which a member of the class was just placed, and ranks it again among the
// candidates.
func (t *Class) reconsider(i int) error {
	t.stale()
	if t.reserves && t.members == 1 || !t.reserves && !t.fits(i).IsSuccess() {
		return nil
	}
	t.run.work.spend(2 + len(t.candidates)/candidatesPerVisit)
	name := t.run.Nodes[i].Node().Name
	raw, status := t.Profile.RunRawScorePlugins(t.run.ctx, t.scoring, t.Pod, t.run.node(i))
	if !status.IsSuccess() {
		return status.AsError()
	}
	// With reservations the node is filtered for the next member, by a state of its own.
	t.candidates = append(t.candidates,
		candidate{node: i, rank: t.run.rank(i), fresh: !t.reserves, scores: fwk.NodePluginScores{Name: name, RawScores: raw}})
	kept := t.candidates
	scores := make([]fwk.NodePluginScores, len(kept))
	for i := range kept {
		scores[i] = kept[i].scores
	}
	if status := t.Profile.NormalizeScores(t.run.ctx, t.scoring, t.Pod, scores); !status.IsSuccess() {
		return status.AsError()
	}
	for i := range scores {
		kept[i].scores = scores[i]
	}
	slices.SortFunc(kept, compareCandidates)
	t.keepBest()
	return nil
}

// stale notes that the candidates were filtered before something changed.
func (t *Class) stale() {
	for i := range t.candidates {
		t.candidates[i].fresh = false
	}
}
