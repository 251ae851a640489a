package replay

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/lab/simulation"
	"berth.dev/berth/pkg/process/cycles"
)

// notDecided is the reason of a pod that is queued and on which the scheduler has not said anything.
const notDecided = "not tried yet: waits in the queue"

// verdicts holds what kept each pod from being scheduled when that was last tried.
type verdicts struct {
	world *simulation.World
	trees *read.Trees
	// Bindings fail beside the scheduling cycles.
	mu     sync.Mutex
	reason map[types.UID]string
	// kinds are all reasons of a pod, and byGang those of the member that was tried last.
	kinds  map[types.UID][]string
	byGang map[gang.ID][]string
}

// listen takes note of every failure from now on. Only the reason that counts is kept: what is said of each node would
// be as much as all nodes for each pod that is pending.
func listen(w *simulation.World, trees *read.Trees) *verdicts {
	v := &verdicts{world: w, trees: trees, reason: map[types.UID]string{}, kinds: map[types.UID][]string{},
		byGang: map[gang.ID][]string{}}
	handle := w.FailureHandler
	w.FailureHandler = func(ctx context.Context, profile framework.Framework, pod *framework.QueuedPodInfo,
		status *fwk.Status, nominating *fwk.NominatingInfo, start time.Time) {
		kinds, reason := reasonsOf(status)
		v.mu.Lock()
		v.reason[pod.Pod.UID], v.kinds[pod.Pod.UID] = reason, kinds
		if m, err := trees.GangOf(pod.Pod); err == nil && m.ID.Name != "" {
			v.byGang[m.ID] = kinds
		}
		v.mu.Unlock()
		handle(ctx, profile, pod, status, nominating, start)
	}
	return v
}

// of returns what keeps a pending pod from nodes: what keeps it out of the queue now, if anything does, and
// else what the last cycle found.
func (v *verdicts) of(pod *v1.Pod) string {
	if held := v.world.HeldBack(pod); !held.IsSuccess() {
		_, reason := reasonsOf(held)
		return reason
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if reason, known := v.reason[pod.UID]; known {
		return reason
	}
	return notDecided
}

// keptFrom are all reasons that kept a pod from nodes when it, or a member of its gang, was last tried.
func (v *verdicts) keptFrom(pod *v1.Pod) []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	if kinds, known := v.kinds[pod.UID]; known {
		return kinds
	}
	if m, err := v.trees.GangOf(pod); err == nil && len(v.byGang[m.ID]) > 0 {
		return v.byGang[m.ID]
	}
	return []string{notDecided}
}

// reasonsOf are the kinds of reasons that the status gives, and the one for the most nodes that the pod's own
// constraints admit, or for the most of all if they admit none; the first by the alphabet where several are as
// frequent. A node counts for each of its reasons.
func reasonsOf(status *fwk.Status) (kinds []string, most string) {
	nodes, admitted := map[string]int{}, map[string]int{}
	count := func(s *fwk.Status, n int) {
		for reason := range cycles.Reasons(s) {
			nodes[reason.Kind()] += n
			if !cycles.Own(s) {
				admitted[reason.Kind()] += n
			}
		}
	}
	var fit *framework.FitError
	if errors.As(status.AsError(), &fit) {
		byNode := fit.Diagnosis.NodeToStatus
		byNode.ForEachExplicitNode(func(_ string, s *fwk.Status) { count(s, 1) })
		if absent := fit.NumAllNodes - byNode.Len(); absent > 0 {
			count(byNode.AbsentNodesStatus(), absent)
		}
	} else {
		count(status, 1)
	}
	if len(admitted) == 0 {
		admitted = nodes
	}
	for kind, n := range admitted {
		if most == "" || n > admitted[most] || n == admitted[most] && kind < most {
			most = kind
		}
	}
	most = cmp.Or(most, status.Message())
	if len(nodes) == 0 {
		return []string{most}, most
	}
	return slices.Sorted(maps.Keys(nodes)), most
}
