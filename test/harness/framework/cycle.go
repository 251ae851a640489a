package framework

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/test/harness/require"
)

// Outcome is what a cycle up to Score says of a pod.
type Outcome struct {
	State fwk.CycleState
	// Rejected is the status of PreFilter that ended the cycle, nil if it went on.
	Rejected *fwk.Status
	// Refused has the statuses of the nodes on which the pod cannot run, and Scores the points of the others.
	Refused map[string]*fwk.Status
	Scores  []fwk.NodePluginScores
}

// Totals are the points of the nodes on which the pod can run.
func (o *Outcome) Totals() map[string]int64 {
	totals := map[string]int64{}
	for _, n := range o.Scores {
		totals[n.Name] = n.TotalScore
	}
	return totals
}

// Reasons say why the pod cannot run on the other nodes, or under "" why it can run nowhere.
func (o *Outcome) Reasons() map[string]string {
	reasons := map[string]string{}
	if o.Rejected != nil {
		reasons[""] = o.Rejected.Message()
	}
	for node, status := range o.Refused {
		reasons[node] = status.Message()
	}
	return reasons
}

// Best is the first of the nodes with the most points.
func (o *Outcome) Best() string {
	best := o.Scores[0]
	for _, s := range o.Scores[1:] {
		if s.TotalScore > best.TotalScore {
			best = s
		}
	}
	return best.Name
}

// Infos are the nodes as the scheduler knows them now.
func (s *Scheduler) Infos(tb testing.TB) []fwk.NodeInfo {
	tb.Helper()
	require.NoError(tb, s.Cache.UpdateSnapshot(klog.Logger{}, s.Snapshot))
	infos, err := s.Snapshot.NodeInfos().List()
	require.NoError(tb, err)
	return infos
}

// Info is one of the nodes.
func (s *Scheduler) Info(tb testing.TB, node string) fwk.NodeInfo {
	tb.Helper()
	s.Infos(tb)
	info, err := s.Snapshot.NodeInfos().Get(node)
	require.NoError(tb, err)
	return info
}

// Cycle takes a pod through a cycle, from PreFilter to Score.
func (s *Scheduler) Cycle(tb testing.TB, pod *v1.Pod) *Outcome {
	tb.Helper()
	return Cycle(tb, s.Framework, framework.NewCycleState(), pod, s.Infos(tb))
}

// Cycle takes a pod through a cycle, from PreFilter to Score, on these nodes. Plugins that find an error end the test.
func Cycle(tb testing.TB, f framework.Framework, state fwk.CycleState, pod *v1.Pod, infos []fwk.NodeInfo) *Outcome {
	tb.Helper()
	ctx, o := tb.Context(), &Outcome{State: state, Refused: map[string]*fwk.Status{}}
	if _, status, _ := f.RunPreFilterPlugins(ctx, state, pod); !status.IsSuccess() {
		if !status.IsRejected() {
			tb.Fatalf("PreFilter: %v", status)
		}
		o.Rejected = status
		return o
	}
	feasible := make([]fwk.NodeInfo, 0, len(infos))
	for _, info := range infos {
		if status := f.RunFilterPlugins(ctx, state, pod, info); status.IsSuccess() {
			feasible = append(feasible, info)
		} else {
			o.Refused[info.Node().Name] = status
		}
	}
	if len(feasible) == 0 {
		return o
	}
	if status := f.RunPreScorePlugins(ctx, state, pod, feasible); !status.IsSuccess() {
		tb.Fatalf("PreScore: %v", status)
	}
	scores, status := f.RunScorePlugins(ctx, state, pod, feasible)
	if !status.IsSuccess() {
		tb.Fatalf("Score: %v", status)
	}
	o.Scores = scores
	return o
}
