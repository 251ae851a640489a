package extender

import (
	"context"
	"errors"
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
// The scheduler chooses the pods by what its own filters say, and it does so on nodes that they refuse, about which
// Filter was never asked: without an answer here it evicts pods from nodes of another GPU model, or for a pod that has
// to wait for its price window. The answer only leaves nodes out. To choose other pods would need the disruption
// budgets.
func (e *Extender) Preempt(
	ctx context.Context, pod *v1.Pod, victims map[string]*extenderv1.MetaVictims,
) (left map[string]*extenderv1.MetaVictims, err error) {
	unknown := 0
	err = e.caughtUp(ctx, pod, func() (behind bool, err error) {
		left, unknown, behind, err = e.judgeEvictions(ctx, pod, victims)
		return behind, err
	})
	unknownNodes.Add(float64(unknown))
	if err != nil {
		return nil, err
	}
	return left, nil
}

// judgeEvictions returns what is left of the nodes, and how many of them are not known. It reports as well that none is
// left and that this may be because the extender is behind the scheduler.
func (e *Extender) judgeEvictions(
	ctx context.Context, pod *v1.Pod, victims map[string]*extenderv1.MetaVictims,
) (left map[string]*extenderv1.MetaVictims, unknown int, behind bool, err error) {
	c, err := e.begin(ctx, pod)
	if err != nil {
		return nil, 0, false, err
	}
	defer c.end()
	left = map[string]*extenderv1.MetaVictims{}
	if c.refused != nil {
		return left, 0, false, nil
	}
	names := slices.Sorted(maps.Keys(victims))
	infos, unknown := c.nodes(names)
	helps, unseen := make([]bool, len(names)), make([]bool, len(names))
	err = c.each(ctx, pod, len(names), func(i int) *fwk.Status {
		if infos[i] == nil {
			unseen[i] = true
			return nil // evicting pods from a node that is not known may not help
		}
		state, after, err := c.without(ctx, pod, infos[i], victims[names[i]].Pods)
		if err != nil {
			var stranger unseenPodError
			unseen[i] = errors.As(err, &stranger) && !c.knows(stranger.uid)
			klog.FromContext(ctx).V(2).Info("Leaving a node out of preemption", "pod", klog.KObj(pod), "node", names[i], "err",
				err)
			return nil
		}
		status := c.filter(ctx, state, pod, after)
		helps[i] = status.IsSuccess()
		unseen[i] = status.Code() == fwk.Unschedulable && lacksRoom(pod, after)
		return status
	})
	if err != nil {
		return nil, unknown, false, err
	}
	for i, name := range names {
		if helps[i] {
			left[name] = victims[name]
		}
	}
	return left, unknown, len(left) == 0 && slices.Contains(unseen, true), nil
}

// unseenPodError is a pod that is not on its node as far as the extender knows.
type unseenPodError struct{ uid, node string }

func (u unseenPodError) Error() string {
	return fmt.Sprintf("pod with UID %q is not known to be on node %s", u.uid, u.node)
}

// knows reports that a pod is on any node. One that would be evicted from a node and is on another belongs to a group
// that has a pod on each.
func (c *cycle) knows(uid string) bool {
	infos, err := c.snapshot.NodeInfos().List()
	return err == nil && slices.ContainsFunc(infos, func(info fwk.NodeInfo) bool { return indexOf(info, uid) >= 0 })
}

// indexOf is where a node has the pod with this UID, and negative if it does not have it.
func indexOf(info fwk.NodeInfo, uid string) int {
	return slices.IndexFunc(info.GetPods(), func(p fwk.PodInfo) bool { return string(p.GetPod().UID) == uid })
}

// without is the node and the state of the cycle as they are once these pods are gone.
func (c *cycle) without(ctx context.Context, pod *v1.Pod, info fwk.NodeInfo,
	victims []*extenderv1.MetaPod) (fwk.CycleState, fwk.NodeInfo, error) {
	if len(victims) == 0 {
		return nil, nil, fmt.Errorf("node %s has no pods to evict", info.Node().Name)
	}
	state, after := c.state.Clone(), info.Snapshot()
	for _, v := range victims {
		at := indexOf(info, v.UID)
		if at < 0 {
			return nil, nil, unseenPodError{v.UID, info.Node().Name}
		}
		victim := info.GetPods()[at]
		if err := after.RemovePod(klog.FromContext(ctx), victim.GetPod()); err != nil {
			return nil, nil, fmt.Errorf("leaving pod %s out of node %s: %w", klog.KObj(victim.GetPod()), info.Node().Name, err)
		}
		if status := c.framework.RunPreFilterExtensionRemovePod(ctx, state, pod, victim, after); !status.IsSuccess() {
			return nil, nil, fmt.Errorf("leaving pod %s out of node %s: %w", klog.KObj(victim.GetPod()), info.Node().Name,
				status.AsError())
		}
	}
	return state, after, nil
}
