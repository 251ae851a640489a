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
	// last are the plugins that scored in the last cycle: mostly the same ones score again.
	last  *plugins
	cycle cycle
}

// cycle is what the cycle of the moment has found.
type cycle struct {
	state    fwk.CycleState
	chosenBy string
	nodes    []fwk.NodeInfo
	scores   []fwk.NodePluginScores
}

func newProfile(inner framework.Framework, h *History) *profile {
	p := &profile{Framework: inner, history: h, weights: map[string]int64{}, last: &plugins{}}
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
		p.history.add(p.record(ctx, state, pod, node))
	}
	// What was found is not needed any more, and nodes must not be kept alive.
	p.cycle = cycle{}
	return p.Framework.RunReservePluginsReserve(ctx, state, pod, node)
}

// record writes down why the pod gets the node.
func (p *profile) record(ctx context.Context, state fwk.CycleState, pod *v1.Pod, node string) *record {
	r := &record{at: time.Now(), pod: types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, uid: pod.UID,
		profile: p.ProfileName(), node: node, plugins: p.last}
	if p.cycle.state != state {
		return r
	}
	r.chosenBy, r.compared = p.cycle.chosenBy, len(p.cycle.scores)
	at := slices.IndexFunc(p.cycle.scores, func(s fwk.NodePluginScores) bool { return s.Name == node })
	if at < 0 {
		return r
	}
	kept := p.best(at)
	first := p.cycle.scores[at].Scores
	r.plugins = p.scored(first)
	n := len(first)
	r.scores = make([]int64, 0, 2*n*len(kept))
	for i, k := range kept {
		if k < 0 {
			break
		}
		s := &p.cycle.scores[k]
		r.kept, r.names[i], r.totals[i] = i+1, s.Name, s.TotalScore
		for j := range n {
			r.scores = append(r.scores, s.Scores[j].Score)
		}
		for j := range n {
			raw := s.Scores[j].Score
			if j < len(s.RawScores) {
				raw = s.RawScores[j].Score
			}
			r.scores = append(r.scores, raw)
		}
		// The framework has put the scores in an order of its own.
		of := slices.IndexFunc(p.cycle.nodes, func(n fwk.NodeInfo) bool { return n.Node().Name == s.Name })
		if of >= 0 {
			p.addCosts(ctx, r, i, state, pod, p.cycle.nodes[of])
		}
	}
	return r
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

// scored returns the plugins that scored, shared with the last record if they are the same.
func (p *profile) scored(scores []fwk.PluginScore) *plugins {
	if len(p.last.names) == len(scores) {
		same := true
		for i := range scores {
			same = same && scores[i].Name == p.last.names[i]
		}
		if same {
			return p.last
		}
	}
	p.last = &plugins{names: make([]string, len(scores)), weights: make([]int64, len(scores))}
	for i := range scores {
		p.last.names[i], p.last.weights[i] = scores[i].Name, max(p.weights[scores[i].Name], 1)
	}
	return p.last
}

// addCosts notes what the scores of a node stand for. What a plugin cannot say is left out: it is no reason not to
// schedule.
func (p *profile) addCosts(ctx context.Context, r *record, node int, state fwk.CycleState, pod *v1.Pod,
	info fwk.NodeInfo) {
	skipped := state.GetSkipScorePlugins()
	for _, scorer := range p.scorers {
		if skipped.Has(scorer.Name()) || !slices.Contains(r.plugins.names, scorer.Name()) {
			continue
		}
		if c, err := scorer.Terms(ctx, state, pod, info); err == nil && len(c.Terms) > 0 {
			r.costs = append(r.costs, cost{node: node, plugin: scorer.Name(), Cost: c})
		}
	}
}
