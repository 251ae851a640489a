package explain

import (
	"cmp"
	"context"
	"slices"

	v1 "k8s.io/api/core/v1"
	podresource "k8s.io/component-helpers/resource"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"

	"berth.dev/berth/pkg/lab/simulation"
	"berth.dev/berth/pkg/plugins/costoptimized"
	"berth.dev/berth/pkg/plugins/gpuaware"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/spelling"
)

// closestNodes is how many of the rejected nodes are shown with their shortfall.
const closestNodes = 3

// measured is the shortfall of a node with the part of the request that is missing, from 0 to 1.
type measured struct {
	Shortfall
	missing float64
}

// closest returns the nodes with the smallest shortfall, among those that would accept the pod if their pods ended. The
// shortfall is that of the resource with the largest missing part. If there are no such nodes, closest returns a
// request that is larger than any node. Hopeless are the nodes that would reject the pod even without other pods, and
// why.
func (w *world) closest(ctx context.Context, state fwk.CycleState, pod *v1.Pod,
	statuses []*fwk.Status) (closest []Shortfall, hopeless []Node) {
	requests := podresource.PodRequests(pod, podresource.PodResourcesOptions{})
	var shortfalls, others []measured
	canEnd := func(on *v1.Pod) bool { return !podview.BelongsToNode(on) }
	for i, info := range w.infos {
		empty := statuses[i]
		if !ruledOut(empty) {
			empty = simulation.FilterWithout(ctx, w.fw, state, pod, info, canEnd)
		}
		l, short := worst(requests, info, statuses[i])
		switch {
		case ruledOut(empty):
			hopeless = append(hopeless, rejectedNode(info, empty))
			fallthrough
		case !empty.IsSuccess():
			if short {
				others = append(others, l)
			}
		case short:
			shortfalls = append(shortfalls, l)
		}
	}
	for _, of := range [][]measured{shortfalls, others} {
		slices.SortStableFunc(of, func(a, b measured) int {
			return cmp.Or(cmp.Compare(a.missing, b.missing), cmp.Compare(a.Node, b.Node))
		})
	}
	for _, l := range shortfalls[:min(len(shortfalls), closestNodes)] {
		closest = append(closest, l.Shortfall)
	}
	if len(closest) > 0 {
		return closest, hopeless
	}
	for _, l := range others {
		if l.Largest = largest(requests, v1.ResourceName(l.Resource), w.infos); l.Largest == "" {
			continue
		}
		if l.Largest == "0" {
			l.Like = spelling.Closest(l.Resource, offered(w.infos))
		}
		return []Shortfall{l.Shortfall}, hopeless
	}
	return nil, hopeless
}

// byNode are the plugins whose final rejections depend only on the pod and the node. Those of other plugins, for
// example of claims and addresses, also depend on pods on other nodes.
var byNode = []string{names.NodeName, names.NodeUnschedulable, names.TaintToleration, names.NodeAffinity,
	names.NodeResourcesFit, gpuaware.Name, costoptimized.Name}

// ruledOut reports whether a node would reject the pod even without other pods.
func ruledOut(status *fwk.Status) bool {
	return status.Code() == fwk.UnschedulableAndUnresolvable && slices.Contains(byNode, status.Plugin())
}

// largest is the largest allocatable amount of the resource on a node; empty if that is enough.
func largest(requests v1.ResourceList, name v1.ResourceName, infos []fwk.NodeInfo) string {
	var most int64
	for _, info := range infos {
		most = max(most, podview.AmountIn(info.GetAllocatable(), name))
	}
	if most >= podview.Amount(name, requests[name]) {
		return ""
	}
	return podview.Quantity(name, most).String()
}

// offered are the resources that some node has.
func offered(infos []fwk.NodeInfo) map[string]bool {
	names := map[string]bool{string(v1.ResourceCPU): true, string(v1.ResourceMemory): true,
		string(v1.ResourceEphemeralStorage): true}
	for _, info := range infos {
		for name, n := range info.GetAllocatable().GetScalarResources() {
			if n > 0 {
				names[string(name)] = true
			}
		}
	}
	return names
}

// worst is the resource with the largest missing part, and whether a shortfall is why the node was rejected.
func worst(requests v1.ResourceList, info fwk.NodeInfo, status *fwk.Status) (measured, bool) {
	var found measured
	if by := status.Plugin(); by != names.NodeResourcesFit && by != gpuaware.Name {
		return found, false
	}
	for name, wanted := range requests {
		if status.Plugin() == names.NodeResourcesFit && !slices.Contains(status.Reasons(), "Insufficient "+string(name)) {
			// A resource that the configuration ignores.
			continue
		}
		need := podview.Amount(name, wanted)
		free := max(podview.Free(info, name), 0)
		if need <= free {
			continue
		}
		missing := float64(need-free) / float64(need)
		if missing < found.missing || missing == found.missing && string(name) > found.Resource {
			continue
		}
		found = measured{Shortfall: Shortfall{Node: info.Node().Name, Resource: string(name), Needs: wanted.String(),
			Free: podview.Quantity(name, free).String()}, missing: missing}
	}
	return found, found.Node != ""
}
