package advise

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	schedulernames "k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"

	"berth.dev/berth/pkg/gangview"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/schedulerconfig"
)

// firstNodes is how many nodes are asked at a time for a pod that may move: most pods have two within them.
const firstNodes = 32

// view is the scheduler's own snapshot of one moment with what is computed on it.
type view struct {
	world         *world
	configuration *schedulerconfig.Configuration
	infos         []fwk.NodeInfo
	devices       *devices
	// free are the nodes that have the amounts free, by what is asked for.
	free map[string][]int
	// hosts are two of the nodes that accept a class of pods as they are, or fewer if there are not two.
	hosts map[string][]string
	// spacious says of a unit that each of its pods finds its amounts on another node, movable that filters accept it
	// there, too.
	spacious, movable map[*unit]bool
}

func (w *world) view(configuration *schedulerconfig.Configuration) (*view, error) {
	fw := w.profiles[profileOf(w)] // the snapshot of nodes is the same for all
	snapshot, ok := fw.SnapshotSharedLister().(*internalcache.Snapshot)
	if !ok {
		return nil, fmt.Errorf("the scheduler's snapshot is a %T", fw.SnapshotSharedLister())
	}
	if err := w.sched.Cache.UpdateSnapshot(klog.Background(), snapshot); err != nil {
		return nil, fmt.Errorf("taking the scheduler's snapshot: %w", err)
	}
	infos, err := fw.SnapshotSharedLister().NodeInfos().List()
	if err != nil {
		return nil, fmt.Errorf("listing nodes: %w", err)
	}
	return &view{world: w, configuration: configuration, infos: infos, devices: w.devices(), free: map[string][]int{},
		hosts:    map[string][]string{},
		spacious: map[*unit]bool{}, movable: map[*unit]bool{}}, nil
}

// profileOf is any profile.
func profileOf(w *world) string { return slices.Min(slices.Collect(maps.Keys(w.profiles))) }

// maySpare says whether each pod of a unit finds what it asks for on some other node, by arithmetic alone: what cannot
// be moved for want of resources need not be asked about with filters, which take a thousand times as long.
func (v *view) maySpare(u *unit) bool {
	may, known := v.spacious[u]
	if !known {
		may = !slices.ContainsFunc(u.Pods, func(pod *v1.Pod) bool {
			return !slices.ContainsFunc(v.withAmounts(pod),
				func(i int) bool { return v.infos[i].Node().Name != pod.Spec.NodeName })
		})
		v.spacious[u] = may
	}
	return may
}

// canMove says whether each pod of a unit fits some other node as the cluster is. A unit with a pod that does not is
// not worth a run.
func (v *view) canMove(u *unit) bool {
	can, known := v.movable[u]
	if !known {
		can = v.maySpare(u) && !slices.ContainsFunc(u.Pods, func(pod *v1.Pod) bool {
			return !slices.ContainsFunc(v.accepting(alone(u, pod)), func(name string) bool { return name != pod.Spec.NodeName })
		})
		v.movable[u] = can
	}
	return can
}

// accepting are up to two of the nodes that accept the pod as they are: one may be its own. Pods that are placed alike
// share the answer.
func (v *view) accepting(pod *v1.Pod) []string {
	pod, need := v.devices.withoutClaims(pod)
	class := gangview.Member(pod, gangview.Membership{}, nil, true).Class + need.String()
	found, known := v.hosts[class]
	if known {
		return found
	}
	v.hosts[class] = nil
	ctx, state := context.Background(), framework.NewCycleState()
	fw := v.world.profiles[pod.Spec.SchedulerName]
	left, status, _ := fw.RunPreFilterPlugins(ctx, state, pod)
	if !status.IsSuccess() {
		return nil
	}
	var mu sync.Mutex
	nodes := v.withAmounts(pod)
	for size := firstNodes; len(nodes) > 0 && len(found) < 2; size *= 4 {
		some := nodes[:min(size, len(nodes))]
		nodes = nodes[len(some):]
		fw.Parallelizer().Until(ctx, len(some), func(i int) {
			info := v.infos[some[i]]
			name := info.Node().Name
			if !v.devices.free[name].has(need, 1) {
				return
			}
			if (left.AllNodes() || left.NodeNames.Has(name)) && fw.RunFilterPlugins(ctx, state, pod, info).IsSuccess() {
				mu.Lock()
				defer mu.Unlock()
				found = append(found, name)
			}
		}, "advise")
	}
	v.hosts[class] = found
	return found
}

// withAmounts are the nodes that have free what the pod asks for of each resource that NodeResourcesFit compares.
func (v *view) withAmounts(pod *v1.Pod) []int {
	requests := podview.Amounts(resource.PodRequests(pod, resource.PodResourcesOptions{}))
	maps.DeleteFunc(requests, func(_ v1.ResourceName, n int64) bool { return n == 0 })
	var b strings.Builder
	b.WriteString(pod.Spec.SchedulerName)
	names := slices.Sorted(maps.Keys(requests))
	for _, name := range names {
		fmt.Fprintf(&b, " %s=%d", name, requests[name])
	}
	key := b.String()
	nodes, known := v.free[key]
	if known {
		return nodes
	}
	fw := v.world.profiles[pod.Spec.SchedulerName]
	compared := slices.ContainsFunc(fw.ListPlugins().Filter.Enabled,
		func(p schedulerapi.Plugin) bool { return p.Name == schedulernames.NodeResourcesFit })
	names = slices.DeleteFunc(names, func(name v1.ResourceName) bool {
		// A device class may serve the resource on nodes that have none of it.
		return !compared || !v.configuration.ComparesResource(pod.Spec.SchedulerName, name) ||
			fw.SharedDRAManager().DeviceClassResolver().GetDeviceClass(name) != nil
	})
	nodes = []int{}
	for i, info := range v.infos {
		if !slices.ContainsFunc(names, func(name v1.ResourceName) bool { return requests[name] > unused(info, name) }) {
			nodes = append(nodes, i)
		}
	}
	v.free[key] = nodes
	return nodes
}

// unused is what the pods of a node leave of a resource.
func unused(info fwk.NodeInfo, name v1.ResourceName) int64 {
	all, asked := info.GetAllocatable(), info.GetRequested()
	switch name {
	case v1.ResourceCPU:
		return all.GetMilliCPU() - asked.GetMilliCPU()
	case v1.ResourceMemory:
		return all.GetMemory() - asked.GetMemory()
	case v1.ResourceEphemeralStorage:
		return all.GetEphemeralStorage() - asked.GetEphemeralStorage()
	default:
		return all.GetScalarResources()[name] - asked.GetScalarResources()[name]
	}
}
