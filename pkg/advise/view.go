package advise

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"
	fwk "k8s.io/kube-scheduler/framework"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	schedulernames "k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/pkg/lab/simulation"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/schedulerconfig"
)

// survey finds pods that no other node accepts, and nodes that might be given back. Pending pods are left out, so that
// nothing is reserved for them.
func (s *search) survey() error {
	return s.try(s.settled, func(w *world) error {
		v, err := w.view(s.configuration)
		if err != nil {
			return err
		}
		for name, pod := range s.running {
			if now := w.pod(name); now != nil && pod.fixed == "" {
				pod.stuck = !v.fitsElsewhere(now)
			}
		}
		if s.Target == (Unit{}) {
			s.findSpares(w, v)
		}
		return nil
	})
}

// view is the scheduler's snapshot of one moment with cached results.
type view struct {
	world         *world
	configuration *schedulerconfig.Configuration
	infos         []fwk.NodeInfo
	// free are the nodes with enough free resources, by request.
	free map[string][]fwk.NodeInfo
	// hosts are up to two of the nodes that accept a class of pods.
	hosts map[string][]string
}

func (w *world) view(configuration *schedulerconfig.Configuration) (*view, error) {
	infos, err := w.Nodes()
	if err != nil {
		return nil, err
	}
	return &view{world: w, configuration: configuration, infos: infos, free: map[string][]fwk.NodeInfo{},
		hosts: map[string][]string{}}, nil
}

// alone is a pod without its gang and its node, for which filters judge a single member.
func alone(pod *v1.Pod) *v1.Pod {
	id, _, _ := read.Of(pod)
	return read.WithoutGang(gpuview.Unplaced(pod), id == gang.ID{})
}

// class stands for pods that are placed alike. fw is nil if PreFilter rejects them.
type class struct {
	name  string
	pod   *v1.Pod
	fw    framework.Framework
	state fwk.CycleState
	left  *fwk.PreFilterResult
}

// class runs PreFilter for a pod that is alone.
func (v *view) class(pod *v1.Pod) *class {
	c := &class{name: read.Member(pod, read.Membership{}, nil, true).Class, pod: pod,
		state: framework.NewCycleState()}
	fw := v.world.AllNodes[pod.Spec.SchedulerName]
	left, status, _ := fw.RunPreFilterPlugins(context.Background(), c.state, pod)
	if status.IsSuccess() {
		c.fw, c.left = fw, left
	}
	return c
}

// accepted reports whether a node accepts a pod of the class without some of the node's pods.
func (c *class) accepted(info fwk.NodeInfo, leaving []*runningPod) bool {
	if c.fw == nil || !c.left.AllNodes() && !c.left.NodeNames.Has(info.Node().Name) {
		return false
	}
	leaves := func(pod *v1.Pod) bool {
		return slices.ContainsFunc(leaving, func(p *runningPod) bool { return keyOf(p.Pod) == keyOf(pod) })
	}
	return simulation.FilterWithout(context.Background(), c.fw, c.state, c.pod, info, leaves).IsSuccess()
}

// fitsElsewhere reports whether another node accepts a pod now. Pods of a class share the answer.
func (v *view) fitsElsewhere(pod *v1.Pod) bool {
	nodes := v.withAmounts(pod)
	other := func(name string) bool { return name != pod.Spec.NodeName }
	if !slices.ContainsFunc(nodes, func(info fwk.NodeInfo) bool { return other(info.Node().Name) }) {
		return false // arithmetic is a thousand times faster than filters
	}
	c := v.class(alone(pod))
	found, known := v.hosts[c.name]
	if !known {
		for _, info := range nodes {
			if len(found) < 2 && c.accepted(info, nil) {
				found = append(found, info.Node().Name)
			}
		}
		v.hosts[c.name] = found
	}
	return slices.ContainsFunc(found, other)
}

// withAmounts are the nodes with enough of each resource that NodeResourcesFit compares.
func (v *view) withAmounts(pod *v1.Pod) []fwk.NodeInfo {
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
	fw := v.world.AllNodes[pod.Spec.SchedulerName]
	compared := slices.ContainsFunc(fw.ListPlugins().Filter.Enabled,
		func(p schedulerapi.Plugin) bool { return p.Name == schedulernames.NodeResourcesFit })
	names = slices.DeleteFunc(names, func(name v1.ResourceName) bool {
		// A device class may serve the resource on nodes that have none of it.
		return !compared || !v.configuration.ComparesResource(pod.Spec.SchedulerName, name) ||
			fw.SharedDRAManager().DeviceClassResolver().GetDeviceClass(name) != nil
	})
	for _, info := range v.infos {
		if !slices.ContainsFunc(names, func(name v1.ResourceName) bool { return requests[name] > podview.Free(info, name) }) {
			nodes = append(nodes, info)
		}
	}
	v.free[key] = nodes
	return nodes
}
