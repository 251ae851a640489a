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

// runCycle decides about a pod on a new snapshot, one request at a time as a scheduler does, because the snapshot and
// the state of some plugins belong to one cycle. refused is the status with which PreFilter rejects the pod, else nil.
func (e *Extender) runCycle(ctx context.Context, pod *v1.Pod,
	decide func(state fwk.CycleState, refused *fwk.Status) error) error {
	if err := e.ready(); err != nil {
		return err
	}
	select {
	case e.cycle <- struct{}{}:
		defer func() { <-e.cycle }()
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
	// A deadline ends loops early. Nodes that were not filtered must not pass.
	return ctx.Err()
}

var (
	// unknownNode may be a node that the extender has not seen yet, so the pod is to be tried again.
	unknownNode = fwk.NewStatus(fwk.Unschedulable, "node(s) were not known to the extender (yet)")
	unassigned  = fwk.NewStatus(fwk.UnschedulableAndUnresolvable,
		"node(s) share their GPUs, whose devices only berth-scheduler assigns")
)

// The scheduler and the extender watch the cluster separately, so that the extender may receive an event a few
// milliseconds later. The scheduler tries a pod right after an event: a pod has ended, a node has come. If the extender
// refuses the pod because it lacks that event, the pod loses its nomination, and is tried again only after another
// event, or after 5 minutes.
const (
	// longestLag is how long an extender that may be behind tries again, with pauses of lagPause.
	longestLag, lagPause = time.Second, 10 * time.Millisecond
	// noWaitFor is how long the extender answers at once after a wait without success: its watch may be stuck, or the
	// scheduler may ignore a resource that the extender counts. The scheduler places no other pod while it waits.
	noWaitFor = 30 * time.Second
)

// filter returns a status for each node, in the order of the names: success where the pod fits.
func (e *Extender) filter(ctx context.Context, pod *v1.Pod, names []string) ([]*fwk.Status, error) {
	started := time.Now()
	for {
		statuses, behind, err := e.judge(ctx, pod, names)
		if err != nil || !behind || started.UnixNano() < e.noWaitUntil.Load() {
			return statuses, err
		}
		if time.Since(started) >= longestLag {
			e.noWaitUntil.Store(time.Now().Add(noWaitFor).UnixNano())
			klog.FromContext(ctx).Info(
				"The scheduler seems to know of changes that the extender does not receive; answering without waiting for a while",
				"pod", klog.KObj(pod), "for", noWaitFor)
			return statuses, nil
		}
		select {
		case <-time.After(lagPause):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// judge returns a status for each node. behind reports that no node passes, and that this may be because the extender
// lacks events: the scheduler asks only about nodes that pass its own filters, so that unknown nodes and nodes that are
// full are a sign of that.
func (e *Extender) judge(ctx context.Context, pod *v1.Pod, names []string) (statuses []*fwk.Status, behind bool,
	err error) {
	statuses = make([]*fwk.Status, len(names))
	lags := make([]bool, len(names))
	err = e.runCycle(ctx, pod, func(state fwk.CycleState, refused *fwk.Status) error {
		e.framework.Parallelizer().Until(ctx, len(names), func(i int) {
			info, err := e.snapshot.NodeInfos().Get(names[i])
			switch {
			case refused != nil:
				statuses[i] = refused
			case err != nil:
				statuses[i], lags[i] = unknownNode, true
			default:
				statuses[i] = e.framework.RunFilterPlugins(ctx, state, pod, info)
				lags[i] = statuses[i].Code() == fwk.Unschedulable && lacksResources(pod, info)
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

// lacksResources reports that a pod does not fit by resources that the scheduler counts, too. Resources that the node
// does not offer do not count: a scheduler that asks all the same ignores them, or allocates devices for them.
func lacksResources(pod *v1.Pod, info fwk.NodeInfo) bool {
	for _, short := range noderesources.Fits(pod, info, nil,
		noderesources.ResourceRequestsOptions{EnablePodLevelResources: true}) {
		if short.Capacity > 0 {
			return true
		}
	}
	return false
}

// needsAssignment reports that the node shares its GPUs: then devices have to be assigned to the pod when it is bound,
// which the stock scheduler does not do.
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
	err = e.runCycle(ctx, pod, func(state fwk.CycleState, refused *fwk.Status) error {
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
