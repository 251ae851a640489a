package coscheduling

import (
	"cmp"
	"container/heap"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

// trial is the seating of one class of members on a board. Nodes are filtered in chunks until enough of them fit to
// choose from, as the scheduler itself does for a pod; a class is short only after every node was looked at.
type trial struct {
	board   *board
	pod     *v1.Pod
	info    *framework.PodInfo
	profile framework.Framework
	state   fwk.CycleState
	// members is how many there are of the class.
	members int
	// eligible holds the indices of the nodes that PreFilter left, next the first that was not looked at yet.
	eligible []int
	next     int
	// candidates is a heap of the nodes that fit, best first.
	candidates candidates
	// seatings counts the members that were seated since the nodes were last looked at from the start.
	seatings int
	reasons  map[string]int
}

// enough is how many nodes that fit are compared with each other: the scheduler's own measure for large clusters.
func (t *trial) enough() int {
	n := len(t.board.nodes)
	if t.board.ranks != nil {
		return n
	}
	const least = 100
	if n < least {
		return n
	}
	percentage := 50 - n/125
	if p := t.profile.PercentageOfNodesToScore(); p != nil && *p > 0 {
		percentage = int(*p)
	}
	return max(n*max(percentage, 5)/100, least)
}

// open runs the PreFilter plugins.
func (t *trial) open() error {
	b := t.board
	t.state = framework.NewCycleState()
	t.state.Write(trialKey, trialMark{})
	result, status, _ := t.profile.RunPreFilterPlugins(b.ctx, t.state, t.pod)
	if !status.IsSuccess() {
		if !status.IsRejected() {
			return status.AsError()
		}
		t.reasons[status.Message()] = 0
		return nil
	}
	for i, n := range b.nodes {
		if result.AllNodes() || result.NodeNames.Has(n.Node().Name) {
			t.eligible = append(t.eligible, i)
		}
	}
	for _, s := range b.removed {
		if status := t.profile.RunPreFilterExtensionRemovePod(b.ctx, t.state, t.pod, s.info, b.copies[s.node]); !status.IsSuccess() {
			return fmt.Errorf("leaving out pod %s: %w", s.info.GetPod().Name, status.AsError())
		}
	}
	for _, s := range b.seated {
		if status := t.profile.RunPreFilterExtensionAddPod(b.ctx, t.state, t.pod, s.info, b.copies[s.node]); !status.IsSuccess() {
			return fmt.Errorf("counting seated pod %s: %w", s.info.GetPod().Name, status.AsError())
		}
	}
	return nil
}

// best returns the best node for one more member of the class.
func (t *trial) best() (string, bool, error) {
	if t.state == nil {
		if err := t.open(); err != nil {
			return "", false, err
		}
	}
	for {
		for len(t.candidates) > 0 {
			top := heap.Pop(&t.candidates).(candidate)
			// Seating others may have changed what fits here, and not only on the nodes where they sit.
			if top.fresh || t.fits(top.node).IsSuccess() {
				name := t.board.nodes[top.node].Node().Name
				t.board.index[name] = top.node
				return name, true, nil
			}
		}
		if t.next == len(t.eligible) {
			if t.seatings == 0 {
				return "", false, nil
			}
			// Where nothing fitted before, something may fit now that siblings are seated elsewhere: spreading works so.
			t.next, t.seatings = 0, 0
			clear(t.reasons)
		}
		if err := t.scan(); err != nil {
			return "", false, err
		}
	}
}

// scan filters further nodes until enough fit or none is left, and scores those that do.
func (t *trial) scan() error {
	var fit []int
	enough := t.enough()
	for len(fit) < enough && t.next < len(t.eligible) {
		chunk := t.eligible[t.next:min(t.next+enough, len(t.eligible))]
		t.next += len(chunk)
		statuses := make([]*fwk.Status, len(chunk))
		t.profile.Parallelizer().Until(t.board.ctx, len(chunk), func(i int) { statuses[i] = t.fits(chunk[i]) }, metrics.Filter)
		t.board.examined += len(chunk)
		for i, status := range statuses {
			switch {
			case status.IsSuccess():
				fit = append(fit, chunk[i])
			case !status.IsRejected():
				return fmt.Errorf("filtering node %s: %w", t.board.nodes[chunk[i]].Node().Name, status.AsError())
			case t.board.copies[t.board.nodes[chunk[i]].Node().Name] != nil:
				// Full with members of the gang itself, which is no reason against the gang.
			default:
				for _, reason := range status.Reasons() {
					t.reasons[reason]++
				}
			}
		}
	}
	if len(fit) == 0 {
		return nil
	}
	return t.score(fit)
}

// score ranks the nodes against each other and makes them the candidates.
func (t *trial) score(fit []int) error {
	if ranks := t.board.ranks; ranks != nil {
		t.candidates = make(candidates, len(fit))
		for i, n := range fit {
			t.candidates[i] = candidate{node: n, fresh: true, scores: fwk.NodePluginScores{TotalScore: ranks[t.board.nodes[n].Node().Name]}}
		}
		heap.Init(&t.candidates)
		return nil
	}
	infos := make([]fwk.NodeInfo, len(fit))
	for i, n := range fit {
		infos[i] = t.board.node(n)
	}
	if status := t.profile.RunPreScorePlugins(t.board.ctx, t.state, t.pod, infos); !status.IsSuccess() {
		return status.AsError()
	}
	scores, status := t.profile.RunScorePlugins(t.board.ctx, t.state, t.pod, infos)
	if !status.IsSuccess() {
		return status.AsError()
	}
	t.candidates = make(candidates, len(fit))
	for i := range fit {
		t.candidates[i] = candidate{node: fit[i], scores: scores[i], fresh: true}
	}
	// The best come to be seated on, and all that are kept are ranked anew with every seat. Those that are let go are
	// found again when the others do not do.
	slices.SortFunc(t.candidates, compareCandidates)
	if keep := max(2*t.members, leastKept); len(t.candidates) > keep {
		t.candidates = slices.Clone(t.candidates[:keep])
	}
	return nil
}

// reconsider filters and scores the node on which a member of the class was just seated, and ranks it anew among the
// candidates.
func (t *trial) reconsider(name string) error {
	t.seatings++
	for i := range t.candidates {
		t.candidates[i].fresh = false
	}
	node, _ := t.board.position(name)
	if !t.fits(node).IsSuccess() {
		return nil
	}
	if ranks := t.board.ranks; ranks != nil {
		heap.Push(&t.candidates, candidate{node: node, fresh: true, scores: fwk.NodePluginScores{Name: name, TotalScore: ranks[name]}})
		return nil
	}
	raw, status := t.profile.RunRawScorePlugins(t.board.ctx, t.state, t.pod, t.board.node(node))
	if !status.IsSuccess() {
		return status.AsError()
	}
	t.candidates = append(t.candidates, candidate{node: node, fresh: true, scores: fwk.NodePluginScores{Name: name, RawScores: raw}})
	scores := make([]fwk.NodePluginScores, len(t.candidates))
	for i := range t.candidates {
		scores[i] = t.candidates[i].scores
	}
	if status := t.profile.NormalizeScores(t.board.ctx, t.state, t.pod, scores); !status.IsSuccess() {
		return status.AsError()
	}
	for i := range scores {
		t.candidates[i].scores = scores[i]
	}
	heap.Init(&t.candidates)
	return nil
}

// fits runs the filters for one more member on the node.
func (t *trial) fits(i int) *fwk.Status {
	b := t.board
	node := b.node(i)
	nominated := b.nominated(t, node.Node().Name)
	if len(nominated) > 0 {
		// As the scheduler does: the pod has to fit with and without the pods that are about to come.
		state, with := t.state.Clone(), node.Snapshot()
		for _, info := range nominated {
			with.AddPodInfo(info)
			if status := t.profile.RunPreFilterExtensionAddPod(b.ctx, state, t.pod, info, with); !status.IsSuccess() {
				return status
			}
		}
		if status := t.profile.RunFilterPlugins(b.ctx, state, t.pod, with); !status.IsSuccess() {
			return status
		}
	}
	return t.profile.RunFilterPlugins(b.ctx, t.state, t.pod, node)
}

// candidate is a node on which one more member fits, as far as is known.
type candidate struct {
	node   int
	scores fwk.NodePluginScores
	// fresh is set while nothing was seated since the node was filtered.
	fresh bool
}

func compareCandidates(a, b candidate) int {
	return cmp.Or(cmp.Compare(b.scores.TotalScore, a.scores.TotalScore), cmp.Compare(a.node, b.node))
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
