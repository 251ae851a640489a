package advise

import (
	"context"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// tieOrder decides which of the nodes with the highest score the scheduler takes, which is otherwise random.
type tieOrder bool

const (
	firstByName tieOrder = false
	lastByName  tieOrder = true
)

func (o tieOrder) wrap(profiles map[string]framework.Framework) {
	for name, profile := range profiles {
		profiles[name] = tied{profile, o}
	}
}

// tied is a profile in which no two nodes are best.
type tied struct {
	framework.Framework
	order tieOrder
}

// RunScorePlugins gives one of the best nodes one more point. Scores are whole points, so it is the only best one.
func (t tied) RunScorePlugins(ctx context.Context, state fwk.CycleState, pod *v1.Pod,
	nodes []fwk.NodeInfo) ([]fwk.NodePluginScores, *fwk.Status) {
	scores, status := t.Framework.RunScorePlugins(ctx, state, pod, nodes)
	best := 0
	for i := range scores {
		a, b := &scores[i], &scores[best]
		if a.TotalScore > b.TotalScore || a.TotalScore == b.TotalScore && (a.Name > b.Name) == bool(t.order) {
			best = i
		}
	}
	if len(scores) > 0 {
		scores[best].TotalScore++
	}
	return scores, status
}
