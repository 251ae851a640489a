package extender

import (
	"context"
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	fwk "k8s.io/kube-scheduler/framework"
)

// Preempt returns those of the nodes that have a place for the pod once these pods of theirs are evicted.
//
// The scheduler chooses the pods by what its own filters say, and it does so on nodes that they refuse, about which Filter
// was never asked: without an answer here it evicts pods from nodes of another GPU model, or for a pod that has to wait for
// its price window. The answer only leaves nodes out. To choose other pods would need the disruption budgets.
func (e *Extender) Preempt(
	ctx context.Context, pod *v1.Pod, victims map[string]*extenderv1.MetaVictims,
) (map[string]*extenderv1.MetaVictims, error) {
	c, err := e.begin(ctx, pod)
	if err != nil {
		return nil, err
	}
	defer c.end()
	left := map[string]*extenderv1.MetaVictims{}
	if c.refused != nil {
		return left, nil
	}
	names := slices.Sorted(maps.Keys(victims))
	infos := c.nodes(names)
	helps := make([]bool, len(names))
	err = c.each(ctx, pod, len(names), func(i int) *fwk.Status {
		if infos[i] == nil {
			return nil // evicting pods from a node that is not known may be in vain
		}
		state, after, err := c.without(ctx, pod, infos[i], victims[names[i]].Pods)
		if err != nil {
			klog.FromContext(ctx).V(2).Info("Leaving a node out of preemption", "pod", klog.KObj(pod), "node", names[i], "err", err)
			return nil
		}
		status := c.filter(ctx, state, pod, after)
		helps[i] = status.IsSuccess()
		return status
	})
	if err != nil {
		return nil, err
	}
	for i, name := range names {
		if helps[i] {
			left[name] = victims[name]
		}
	}
	return left, nil
}

// without is the node and the state of the cycle as they are once these pods are gone.
func (c *cycle) without(ctx context.Context, pod *v1.Pod, info fwk.NodeInfo, victims []*extenderv1.MetaPod) (fwk.CycleState, fwk.NodeInfo, error) {
	if len(victims) == 0 {
		return nil, nil, fmt.Errorf("node %s has no pods to evict", info.Node().Name)
	}
	state, after := c.state.Clone(), info.Snapshot()
	for _, v := range victims {
		at := slices.IndexFunc(info.GetPods(), func(p fwk.PodInfo) bool { return string(p.GetPod().UID) == v.UID })
		if at < 0 {
			// The extender has not seen the pod yet, or it is on another node and shares a group with one of this node.
			return nil, nil, fmt.Errorf("pod with UID %q is not known to be on node %s", v.UID, info.Node().Name)
		}
		victim := info.GetPods()[at]
		if err := after.RemovePod(klog.FromContext(ctx), victim.GetPod()); err != nil {
			return nil, nil, fmt.Errorf("leaving pod %s out of node %s: %w", klog.KObj(victim.GetPod()), info.Node().Name, err)
		}
		if status := c.framework.RunPreFilterExtensionRemovePod(ctx, state, pod, victim, after); !status.IsSuccess() {
			return nil, nil, fmt.Errorf("leaving pod %s out of node %s: %w", klog.KObj(victim.GetPod()), info.Node().Name, status.AsError())
		}
	}
	return state, after, nil
}
