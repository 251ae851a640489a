package extender

import (
	"context"
	"fmt"
	"math"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

// cycle is one request's view of the cluster. It holds the turn until it ends.
type cycle struct {
	*Extender
	state fwk.CycleState
	// refused is what PreFilter says against the pod, nil for nothing.
	refused *fwk.Status
}

// begin waits for the turn, takes a snapshot and reads the pod. The caller ends the cycle.
func (e *Extender) begin(ctx context.Context, pod *v1.Pod) (_ *cycle, err error) {
	select {
	case e.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for earlier requests: %w", ctx.Err())
	}
	c := &cycle{Extender: e, state: framework.NewCycleState()}
	defer func() {
		if err != nil {
			c.end()
		}
	}()
	if err := e.sched.Cache.UpdateSnapshot(klog.FromContext(ctx), e.snapshot); err != nil {
		return nil, fmt.Errorf("taking a snapshot of the cluster: %w", err)
	}
	_, status, _ := e.framework.RunPreFilterPlugins(ctx, c.state, pod)
	switch {
	case status.IsRejected():
		c.refused = status
	case !status.IsSuccess():
		return nil, fmt.Errorf("reading pod %s/%s: %w", pod.Namespace, pod.Name, status.AsError())
	}
	return c, ctx.Err()
}

func (c *cycle) end() { <-c.turn }

// nodes are those of these names that are known, with one element for each name; nil stands for an unknown node. It
// counts these too.
func (c *cycle) nodes(names []string) (infos []fwk.NodeInfo, unknown int) {
	infos = make([]fwk.NodeInfo, len(names))
	for i, name := range names {
		if info, err := c.snapshot.NodeInfos().Get(name); err == nil {
			infos[i] = info
		} else {
			unknown++
		}
	}
	return infos, unknown
}

// Verdict is what is said about one node.
type Verdict struct {
	// reason is empty where the pod fits.
	reason string
	// final is set where evicting pods would not help.
	final bool
}

func verdictOf(status *fwk.Status) Verdict {
	return Verdict{reason: status.Message(), final: status.Code() == fwk.UnschedulableAndUnresolvable}
}

// unknownNode may be a node that the extender has not seen yet, so the pod is to be tried again.
var unknownNode = Verdict{reason: "node(s) were not known to the extender (yet)"}

// Filter returns a Verdict on each node, in the order of the names.
func (e *Extender) Filter(ctx context.Context, pod *v1.Pod, names []string) (verdicts []Verdict, err error) {
	unknown := 0
	err = e.caughtUp(ctx, pod, func() (behind bool, err error) {
		verdicts, unknown, behind, err = e.judge(ctx, pod, names)
		return behind, err
	})
	unknownNodes.Add(float64(unknown))
	if err != nil {
		return nil, err
	}
	return verdicts, nil
}

// judge returns a Verdict on each node and how many are not known. It reports as well that no node passes and that this
// may be because the extender is behind the scheduler.
func (e *Extender) judge(ctx context.Context, pod *v1.Pod, names []string) (verdicts []Verdict, unknown int,
	behind bool, err error) {
	c, err := e.begin(ctx, pod)
	if err != nil {
		return nil, 0, false, err
	}
	defer c.end()
	verdicts = make([]Verdict, len(names))
	if c.refused != nil {
		for i := range verdicts {
			verdicts[i] = verdictOf(c.refused)
		}
		return verdicts, 0, false, nil
	}
	infos, unknown := c.nodes(names)
	failed := make(chan *fwk.Status, 1)
	c.framework.Parallelizer().Until(ctx, len(infos), func(i int) {
		if infos[i] == nil {
			verdicts[i] = unknownNode
			return
		}
		switch status := c.filter(ctx, pod, infos[i]); {
		case status.IsRejected():
			verdicts[i] = verdictOf(status)
		case !status.IsSuccess():
			select {
			case failed <- status:
			default:
			}
		}
	}, metrics.Filter)
	select {
	case status := <-failed:
		err = fmt.Errorf("filtering nodes for pod %s/%s: %w", pod.Namespace, pod.Name, status.AsError())
	default:
		// A deadline ends the loop early, and nodes that were not looked at must not pass.
		err = ctx.Err()
	}
	if err != nil {
		return nil, unknown, false, err
	}
	for i, v := range verdicts {
		if v.reason == "" {
			return verdicts, unknown, false, nil
		}
		behind = behind || infos[i] == nil || !v.final && lacksRoom(pod, infos[i])
	}
	return verdicts, unknown, behind, nil
}

func (c *cycle) filter(ctx context.Context, pod *v1.Pod, info fwk.NodeInfo) *fwk.Status {
	if status := c.framework.RunFilterPlugins(ctx, c.state, pod, info); !status.IsSuccess() {
		return status
	}
	return c.unassigned.filter(pod, info.Node())
}

// Prioritize returns a priority of 0 to 10 for each node, in the order of the names.
func (e *Extender) Prioritize(ctx context.Context, pod *v1.Pod, names []string) ([]int64, error) {
	c, err := e.begin(ctx, pod)
	if err != nil {
		return nil, err
	}
	defer c.end()
	if c.refused != nil {
		return nil, fmt.Errorf("reading pod %s/%s: %s", pod.Namespace, pod.Name, c.refused.Message())
	}
	known := make([]fwk.NodeInfo, 0, len(names))
	infos, unknown := c.nodes(names)
	unknownNodes.Add(float64(unknown))
	for _, info := range infos {
		if info != nil {
			known = append(known, info)
		}
	}
	if len(known) == 0 {
		return make([]int64, len(names)), nil
	}
	if status := e.framework.RunPreScorePlugins(ctx, c.state, pod, known); !status.IsSuccess() {
		return nil, fmt.Errorf("preparing to score nodes for pod %s/%s: %w", pod.Namespace, pod.Name, status.AsError())
	}
	scores, status := e.framework.RunScorePlugins(ctx, c.state, pod, known)
	if !status.IsSuccess() {
		return nil, fmt.Errorf("scoring nodes for pod %s/%s: %w", pod.Namespace, pod.Name, status.AsError())
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return priorities(names, scores, e.topScore), nil
}

// priorities maps sums of scores to 0–10. Ten steps are coarse, so the best keeps a step of its own: it is rounded up,
// and all others are rounded down and kept below it.
func priorities(names []string, scores []fwk.NodePluginScores, top int64) []int64 {
	best, byName := int64(math.MinInt64), make(map[string]int64, len(scores))
	for _, s := range scores {
		byName[s.Name] = s.TotalScore
		best = max(best, s.TotalScore)
	}
	list := make([]int64, len(names))
	if top <= 0 || best <= 0 {
		return list
	}
	most := (best*extenderv1.MaxExtenderPriority + top - 1) / top
	for i, name := range names {
		switch total, ok := byName[name]; {
		case !ok:
		case total == best:
			list[i] = most
		default:
			list[i] = min(total*extenderv1.MaxExtenderPriority/top, most-1)
		}
	}
	return list
}
