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

	"berth.dev/berth/pkg/cycles"
)

// Wrap lets the history hear what the profiles decide. Plugins keep the handle that they were made with, so that what
// they try out is no decision.
func Wrap(profiles map[string]framework.Framework, h *History) {
	for name, inner := range profiles {
		profiles[name] = newProfile(inner, h)
	}
}

// profile hears the scheduling cycles of a profile. Like the framework that it embeds, it serves one cycle at a time.
type profile struct {
	framework.Framework
	history *History
	weights map[string]int64
	// scorers are the plugins that can say what their scores stand for.
	scorers []cycles.Scorer
	cycle   cycle
}

// cycle is what the cycle of the moment has found.
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
		if scorer, ok := plugin.(cycles.Scorer); ok {
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
		p.cycle.chosenBy = chooser(by)
	}
	return result, status, by
}

// chooser names the plugins, mostly one.
func chooser(by sets.Set[string]) string {
	if by.Len() == 1 {
		for name := range by {
			return name
		}
	}
	return strings.Join(sets.List(by), ", ")
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
	// What was found is not needed any more, and nodes must not be kept alive.
	p.cycle = cycle{}
	return p.Framework.RunReservePluginsReserve(ctx, state, pod, node)
}

// mostNodes is how many nodes of a decision are kept: the chosen one and the best others.
const mostNodes = 3

// decision writes down why the pod gets the node.
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
	for _, k := range p.best(at) {
		if k < 0 {
			break
		}
		s := &p.cycle.scores[k]
		c := Candidate{Name: s.Name, Total: s.TotalScore, Scores: make([]Score, len(s.Scores))}
		for i, of := range s.Scores {
			c.Scores[i] = Score{Plugin: of.Name, Raw: of.Score, Weight: max(p.weights[of.Name], 1), Weighted: of.Score}
			if i < len(s.RawScores) {
				c.Scores[i].Raw = s.RawScores[i].Score
			}
		}
		// The framework has put the scores in an order of its own.
		of := slices.IndexFunc(p.cycle.nodes, func(n fwk.NodeInfo) bool { return n.Node().Name == s.Name })
		if of >= 0 {
			p.addTerms(ctx, c.Scores, state, pod, p.cycle.nodes[of])
		}
		d.Nodes = append(d.Nodes, c)
	}
	return d
}

// best returns the chosen node and the best of the others, those with the same score left out as long as there are
// others; -1 stands for none.
func (p *profile) best(chosen int) [mostNodes]int {
	best := [mostNodes]int{chosen, -1, -1}
	scores := p.cycle.scores
	before := func(a, b int) bool {
		if b < 0 {
			return true
		}
		tiedA, tiedB := scores[a].TotalScore == scores[chosen].TotalScore, scores[b].TotalScore == scores[chosen].TotalScore
		if tiedA != tiedB {
			return tiedB
		}
		return scores[a].TotalScore > scores[b].TotalScore
	}
	for i := range scores {
		switch {
		case i == chosen:
		case before(i, best[1]):
			best[1], best[2] = i, best[1]
		case before(i, best[2]):
			best[2] = i
		}
	}
	return best
}

// addTerms notes what the scores of a node stand for. What a plugin cannot say is left out: it is no reason not to
// schedule.
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
			scores[i].Terms = append(scores[i].Terms, Term{Term: t, For: t.For})
		}
	}
}
