package decisions

import (
	"context"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/pkg/process"
)

// Wrap replaces the profiles by ones that add their decisions to the history. Plugins keep the handle that they were
// made with, so that their dry runs are no decisions.
func Wrap(profiles map[string]framework.Framework, h *History) {
	for name, inner := range profiles {
		profiles[name] = newProfile(inner, h)
	}
}

// profile records the decisions of a profile. Like the framework that it embeds, it serves one cycle at a time.
type profile struct {
	framework.Framework
	history *History
	weights map[string]int64
	// scorers are the plugins that know the terms of their scores.
	scorers []process.Scorer
	cycle   cycle
}

// cycle is what the current cycle has found.
type cycle struct {
	state    fwk.CycleState
	chosenBy string
	nodes    []fwk.NodeInfo
	scores   []fwk.NodePluginScores
}

func newProfile(inner framework.Framework, h *History) *profile {
	p := &profile{Framework: inner, history: h, weights: map[string]int64{}}
	for _, s := range inner.ListPlugins().Score.Enabled {
		p.weights[s.Name] = max(int64(s.Weight), 1)
	}
	// The framework lists no instances but those that wait for events.
	for _, plugin := range inner.EnqueueExtensions() {
		if scorer, ok := plugin.(process.Scorer); ok {
			p.scorers = append(p.scorers, scorer)
		}
	}
	return p
}

// RunPreFilterPlugins notes which plugins left one node.
func (p *profile) RunPreFilterPlugins(ctx context.Context, state fwk.CycleState, pod *v1.Pod) (*fwk.PreFilterResult,
	*fwk.Status, sets.Set[string]) {
	result, status, by := p.Framework.RunPreFilterPlugins(ctx, state, pod)
	p.cycle = cycle{state: state}
	if status.IsSuccess() && !result.AllNodes() && result.NodeNames.Len() == 1 && by.Len() > 0 {
		p.cycle.chosenBy = strings.Join(sets.List(by), ", ")
	}
	return result, status, by
}

// GetNodeHint notes a node that is taken over from an equal pod.
func (p *profile) GetNodeHint(ctx context.Context, pod *v1.Pod, signature fwk.PodSignature, state fwk.CycleState,
	count int64) string {
	hint := p.Framework.GetNodeHint(ctx, pod, signature, state, count)
	if hint != "" {
		p.cycle = cycle{state: state, chosenBy: Batch}
	}
	return hint
}

// RunScorePlugins notes the scores.
func (p *profile) RunScorePlugins(ctx context.Context, state fwk.CycleState, pod *v1.Pod,
	nodes []fwk.NodeInfo) ([]fwk.NodePluginScores, *fwk.Status) {
	scores, status := p.Framework.RunScorePlugins(ctx, state, pod, nodes)
	if status.IsSuccess() {
		p.cycle = cycle{state: state, nodes: nodes, scores: scores}
	}
	return scores, status
}

// RunReservePluginsReserve remembers the decision: the node has been chosen.
func (p *profile) RunReservePluginsReserve(ctx context.Context, state fwk.CycleState, pod *v1.Pod,
	node string) *fwk.Status {
	if !state.IsPodGroupSchedulingCycle() {
		p.history.add(p.decision(ctx, state, pod, node))
	}
	// Nodes must not be kept in memory.
	p.cycle = cycle{}
	return p.Framework.RunReservePluginsReserve(ctx, state, pod, node)
}

// decision returns why the pod gets the node.
func (p *profile) decision(ctx context.Context, state fwk.CycleState, pod *v1.Pod, node string) *Decision {
	d := &Decision{Time: time.Now(), Pod: types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, UID: pod.UID,
		Profile: p.ProfileName(), Node: node, Nodes: []Candidate{}}
	if p.cycle.state != state {
		return d
	}
	d.ChosenBy, d.Compared = p.cycle.chosenBy, len(p.cycle.scores)
	at := slices.IndexFunc(p.cycle.scores, func(s fwk.NodePluginScores) bool { return s.Name == node })
	if at < 0 {
		return d
	}
	d.Nodes = append(d.Nodes, p.candidate(ctx, state, pod, &p.cycle.scores[at]))
	if next := p.next(at); next >= 0 {
		d.Nodes = append(d.Nodes, p.candidate(ctx, state, pod, &p.cycle.scores[next]))
	}
	return d
}

// next returns the best of the nodes that were not chosen, one with the same score only if there is no other; -1 stands
// for none.
func (p *profile) next(chosen int) int {
	next, scores := -1, p.cycle.scores
	tied := func(i int) bool { return scores[i].TotalScore == scores[chosen].TotalScore }
	for i := range scores {
		switch {
		case i == chosen:
		case next < 0, tied(next) && !tied(i), tied(next) == tied(i) && scores[i].TotalScore > scores[next].TotalScore:
			next = i
		}
	}
	return next
}

// candidate returns the scores of a node.
func (p *profile) candidate(ctx context.Context, state fwk.CycleState, pod *v1.Pod,
	s *fwk.NodePluginScores) Candidate {
	c := Candidate{Name: s.Name, Total: s.TotalScore, Scores: make([]Score, len(s.Scores))}
	for i, of := range s.Scores {
		c.Scores[i] = Score{Plugin: of.Name, Raw: of.Score, Weight: max(p.weights[of.Name], 1), Weighted: of.Score}
		if i < len(s.RawScores) {
			c.Scores[i].Raw = s.RawScores[i].Score
		}
	}
	// The framework has put the scores in an order of its own.
	at := slices.IndexFunc(p.cycle.nodes, func(n fwk.NodeInfo) bool { return n.Node().Name == s.Name })
	if at >= 0 {
		p.addTerms(ctx, c.Scores, state, pod, p.cycle.nodes[at])
	}
	return c
}

// addTerms adds the terms of the scores of a node. An error leaves them out: the pod is scheduled all the same.
func (p *profile) addTerms(ctx context.Context, scores []Score, state fwk.CycleState, pod *v1.Pod, info fwk.NodeInfo) {
	skipped := state.GetSkipScorePlugins()
	for _, scorer := range p.scorers {
		i := slices.IndexFunc(scores, func(s Score) bool { return s.Plugin == scorer.Name() })
		if i < 0 || skipped.Has(scorer.Name()) {
			continue
		}
		c, err := scorer.Terms(ctx, state, pod, info)
		if err != nil || len(c.Terms) == 0 {
			continue
		}
		scores[i].Unit = c.Unit
		for _, t := range c.Terms {
			scores[i].Terms = append(scores[i].Terms, Term(t))
		}
	}
}
