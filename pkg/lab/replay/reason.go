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
	"berth.dev/berth/pkg/process"
)

// notDecided is the reason of a queued pod for which no cycle has run.
const notDecided = "not tried yet: waits in the queue"

// failures are the reasons of the last failed scheduling cycle of each pod.
type failures struct {
	world *simulation.World
	trees *read.OwnerPolicy
	mu    sync.Mutex // bindings fail concurrently with scheduling cycles
	// main is the most frequent reason of a pod, all has all its reasons, and byGang those of the member tried last.
	main   map[types.UID]string
	all    map[types.UID][]string
	byGang map[gang.ID][]string
}

// recordFailures records every failure from now on. The reasons are not kept by node, which would take memory for each
// pair of a pending pod and a node.
func recordFailures(w *simulation.World, trees *read.OwnerPolicy) *failures {
	f := &failures{world: w, trees: trees, main: map[types.UID]string{}, all: map[types.UID][]string{},
		byGang: map[gang.ID][]string{}}
	handle := w.FailureHandler
	w.FailureHandler = func(ctx context.Context, profile framework.Framework, pod *framework.QueuedPodInfo,
		status *fwk.Status, nominating *fwk.NominatingInfo, start time.Time) {
		all, main := reasonsOf(status)
		f.mu.Lock()
		f.main[pod.Pod.UID], f.all[pod.Pod.UID] = main, all
		if m, err := trees.GangOf(pod.Pod); err == nil && m.ID.Name != "" {
			f.byGang[m.ID] = all
		}
		f.mu.Unlock()
		handle(ctx, profile, pod, status, nominating, start)
	}
	return f
}

// mainReason is why a pending pod has no node: the reason that keeps it out of the queue now, else the most frequent
// one of its last cycle.
func (f *failures) mainReason(pod *v1.Pod) string {
	if status := f.world.PreEnqueue(pod); !status.IsSuccess() {
		_, main := reasonsOf(status)
		return main
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if reason, known := f.main[pod.UID]; known {
		return reason
	}
	return notDecided
}

// reasons are all reasons of the last failed cycle of a pod, or of a member of its gang.
func (f *failures) reasons(pod *v1.Pod) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if all, known := f.all[pod.UID]; known {
		return all
	}
	if m, err := f.trees.GangOf(pod); err == nil && len(f.byGang[m.ID]) > 0 {
		return f.byGang[m.ID]
	}
	return []string{notDecided}
}

// reasonsOf are the reasons in the status, and the most frequent one: first among the nodes that the pod's own
// constraints admit, else among all nodes, and the first alphabetically of equally frequent ones. A node counts for
// each of its reasons.
func reasonsOf(status *fwk.Status) (all []string, most string) {
	nodes, admitted := map[string]int{}, map[string]int{}
	count := func(s *fwk.Status, n int) {
		for reason := range process.Reasons(s) {
			nodes[reason.Kind()] += n
			if !process.Own(s) {
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
