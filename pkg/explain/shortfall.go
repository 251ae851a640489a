package explain

import (
	"cmp"
	"context"
	"slices"

	v1 "k8s.io/api/core/v1"
	podresource "k8s.io/component-helpers/resource"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"

	"berth.dev/berth/pkg/plugins/gpuaware"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/spelling"
)

// closestNodes is how many of the rejected nodes are told with what they lack.
const closestNodes = 3

// lack is what one node is short of, and the part of the request that is missing.
type lack struct {
	Shortfall
	info    fwk.NodeInfo
	missing float64
}

// closest returns the nodes that come nearest to what the pod asks for, of those that would accept it if no pod was on
// them: of each the resource that it lacks most of. What is larger than any node is told of the nearest in any case.
func (w *world) closest(ctx context.Context, state fwk.CycleState, pod *v1.Pod, infos []fwk.NodeInfo,
	statuses []*fwk.Status) []Shortfall {
	requests := podresource.PodRequests(pod, podresource.PodResourcesOptions{})
	var lacks []lack
	for i, info := range infos {
		if by := statuses[i].Plugin(); by != names.NodeResourcesFit && by != gpuaware.Name {
			continue
		}
		if l, ok := worst(requests, info, statuses[i]); ok {
			lacks = append(lacks, l)
		}
	}
	slices.SortStableFunc(lacks, func(a, b lack) int {
		return cmp.Or(cmp.Compare(a.missing, b.missing), cmp.Compare(a.info.Node().Name, b.info.Node().Name))
	})
	var out []Shortfall
	for _, l := range lacks {
		l.Largest = largest(requests, v1.ResourceName(l.Resource), infos)
		if l.Largest == "0" {
			l.Like = spelling.Closest(l.Resource, offered(infos))
		}
		if l.Largest != "" {
			return []Shortfall{l.Shortfall}
		}
		if !w.acceptsEmpty(ctx, state, pod, l.info) {
			continue
		}
		if out = append(out, l.Shortfall); len(out) == closestNodes {
			break
		}
	}
	return out
}

// acceptsEmpty says whether the filters would let the pod onto the node if no other was there: plugins that come before
// NodeResourcesFit reject nodes that taints or affinity would keep the pod from, too.
func (w *world) acceptsEmpty(ctx context.Context, state fwk.CycleState, pod *v1.Pod, info fwk.NodeInfo) bool {
	state, empty := state.Clone(), info.Snapshot()
	for _, on := range info.GetPods() {
		if err := empty.RemovePod(klog.Logger{}, on.GetPod()); err != nil {
			return false
		}
		if status := w.fw.RunPreFilterExtensionRemovePod(ctx, state, pod, on, empty); !status.IsSuccess() {
			return false
		}
	}
	return w.fw.RunFilterPlugins(ctx, state, pod, empty).IsSuccess()
}

// largest is how much of the resource a node has at most, pods left out; empty if that is enough.
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

func worst(requests v1.ResourceList, info fwk.NodeInfo, status *fwk.Status) (lack, bool) {
	var found lack
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
		found = lack{Shortfall: Shortfall{Node: info.Node().Name, Resource: string(name), Needs: wanted.String(),
			Free: podview.Quantity(name, free).String()}, info: info, missing: missing}
	}
	return found, found.Node != ""
}
