package extender

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources"
	"k8s.io/kubernetes/pkg/scheduler/metrics"

	"berth.dev/berth/pkg/gpu"
)

// inTurn decides about a pod on a new snapshot, one request at a time, as a scheduler does: the snapshot and some
// plugins' state belong to the cycle. Refused is what PreFilter says against the pod, nil for nothing.
func (e *Extender) inTurn(ctx context.Context, pod *v1.Pod,
	decide func(state fwk.CycleState, refused *fwk.Status) error) error {
	if err := e.ready(); err != nil {
		return err
	}
	select {
	case e.turn <- struct{}{}:
		defer func() { <-e.turn }()
	case <-ctx.Done():
		return fmt.Errorf("waiting for earlier requests: %w", ctx.Err())
	}
	if err := e.sched.Cache.UpdateSnapshot(klog.FromContext(ctx), e.snapshot); err != nil {
		return fmt.Errorf("taking a snapshot of the cluster: %w", err)
	}
	state := framework.NewCycleState()
	_, status, _ := e.framework.RunPreFilterPlugins(ctx, state, pod)
	if !status.IsSuccess() && !status.IsRejected() {
		return fmt.Errorf("reading pod %s/%s: %w", pod.Namespace, pod.Name, status.AsError())
	}
	if !status.IsRejected() {
		status = nil
	}
	if err := decide(state, status); err != nil {
		return err
	}
	// A deadline ends loops early, and nodes that were not looked at must not pass.
	return ctx.Err()
}

var (
	// unknownNode may be a node that the extender has not seen yet, so the pod is to be tried again.
	unknownNode = fwk.NewStatus(fwk.Unschedulable, "node(s) were not known to the extender (yet)")
	unassigned  = fwk.NewStatus(fwk.UnschedulableAndUnresolvable,
		"node(s) share their GPUs, whose devices only berth-scheduler assigns")
)

// The scheduler and the extender watch the cluster separately, so the extender may hear of a change a few milliseconds
// later. The scheduler tries a pod at the very moment it hears of one: a pod has ended, a node has come. An extender
// that refuses the pod then, for what it has not seen yet, costs the pod its nomination, and the next try comes only
// with another event in the cluster. In a quiet one that is after 5 minutes.
const (
	// longestLag is how long an extender that is behind looks again, with pauses of lagPause.
	longestLag, lagPause = time.Second, 10 * time.Millisecond
	// hurried is how long the extender answers at once after a wait without success: its watch may be stuck, or the
	// scheduler may ignore a resource that it counts, and the scheduler places no other pod while it waits for an answer.
	hurried = 30 * time.Second
)

// filter returns a status for each node, in the order of the names: success where the pod fits.
func (e *Extender) filter(ctx context.Context, pod *v1.Pod, names []string) ([]*fwk.Status, error) {
	started := time.Now()
	for {
		statuses, behind, err := e.judge(ctx, pod, names)
		if err != nil || !behind || started.UnixNano() < e.hurriedUntil.Load() {
			return statuses, err
		}
		if time.Since(started) >= longestLag {
			e.hurriedUntil.Store(time.Now().Add(hurried).UnixNano())
			klog.FromContext(ctx).Info(
				"The scheduler knows of changes that the extender does not hear of; answering without waiting for a while",
				"pod", klog.KObj(pod), "for", hurried)
			return statuses, nil
		}
		select {
		case <-time.After(lagPause):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// judge returns a status for each node. It reports as well that no node passes and that this may be because the
// extender is behind the scheduler. The question itself shows that in part: the scheduler asks about a node only where
// its own filters let the pod pass.
func (e *Extender) judge(ctx context.Context, pod *v1.Pod, names []string) (statuses []*fwk.Status, behind bool,
	err error) {
	statuses = make([]*fwk.Status, len(names))
	lags := make([]bool, len(names))
	err = e.inTurn(ctx, pod, func(state fwk.CycleState, refused *fwk.Status) error {
		e.framework.Parallelizer().Until(ctx, len(names), func(i int) {
			info, err := e.snapshot.NodeInfos().Get(names[i])
			switch {
			case refused != nil:
				statuses[i] = refused
			case err != nil:
				statuses[i], lags[i] = unknownNode, true
			default:
				statuses[i] = e.framework.RunFilterPlugins(ctx, state, pod, info)
				lags[i] = statuses[i].Code() == fwk.Unschedulable && lacksRoom(pod, info)
				if statuses[i].IsSuccess() && e.needsAssignment(pod, info.Node()) {
					statuses[i] = unassigned
				}
			}
		}, metrics.Filter)
		return nil
	})
	if err != nil {
		return nil, false, err
	}
	for _, status := range statuses {
		if !status.IsSuccess() && !status.IsRejected() {
			return nil, false, fmt.Errorf("filtering nodes for pod %s/%s: %w", pod.Namespace, pod.Name, status.AsError())
		}
	}
	return statuses, slices.Contains(lags, true) && !slices.ContainsFunc(statuses, (*fwk.Status).IsSuccess), nil
}

// lacksRoom reports that a pod does not fit by what the scheduler counts as well. Of resources that the node does not
// offer it says nothing: a scheduler that asks all the same ignores them, or allocates devices for them.
func lacksRoom(pod *v1.Pod, info fwk.NodeInfo) bool {
	for _, short := range noderesources.Fits(pod, info, nil,
		noderesources.ResourceRequestsOptions{EnablePodLevelResources: true}) {
		if short.Capacity > 0 {
			return true
		}
	}
	return false
}

// needsAssignment reports that devices of the node have to be chosen for the pod when it is bound, which the stock
// scheduler does not do: the node shares its GPUs.
func (e *Extender) needsAssignment(pod *v1.Pod, node *v1.Node) bool {
	if e.gpus == nil {
		return false
	}
	request, err := e.gpus.PodGPURequest(pod)
	if err != nil || request.Count == 0 {
		return false // what cannot be read is refused by the plugin
	}
	read, _ := e.gpus.ReadGPUNode(node)
	return read.For(&request.Request).Empty().Mode == gpu.ModeShared
}

// prioritize returns a priority of 0 to 10 for each node, in the order of the names; 0 for unknown nodes.
func (e *Extender) prioritize(ctx context.Context, pod *v1.Pod, names []string) (list []int64, err error) {
	err = e.inTurn(ctx, pod, func(state fwk.CycleState, refused *fwk.Status) error {
		if refused != nil {
			return fmt.Errorf("reading pod %s/%s: %s", pod.Namespace, pod.Name, refused.Message())
		}
		var known []fwk.NodeInfo
		for _, name := range names {
			if info, err := e.snapshot.NodeInfos().Get(name); err == nil {
				known = append(known, info)
			}
		}
		if len(known) == 0 {
			list = make([]int64, len(names))
			return nil
		}
		if status := e.framework.RunPreScorePlugins(ctx, state, pod, known); !status.IsSuccess() {
			return fmt.Errorf("preparing to score nodes for pod %s/%s: %w", pod.Namespace, pod.Name, status.AsError())
		}
		scores, status := e.framework.RunScorePlugins(ctx, state, pod, known)
		if !status.IsSuccess() {
			return fmt.Errorf("scoring nodes for pod %s/%s: %w", pod.Namespace, pod.Name, status.AsError())
		}
		list = priorities(names, scores, e.topScore)
		return nil
	})
	return list, err
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
