package coscheduling

import (
	"context"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/apis/core/v1/helper"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeports"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources"

	"berth.dev/berth/pkg/clusterwide"
)

// stockFilters are the filters of Kubernetes that a profile runs, as far as the account of the cluster stands for them: it must
// refuse nothing that the profile accepts.
type stockFilters struct {
	rules ruleChecks
	ports bool
	// compares reports whether nodes with too little of the resource are refused.
	compares func(v1.ResourceName) bool
	// hasRoom reports whether the node has what the pod requests.
	hasRoom func(*v1.Pod, fwk.NodeInfo) bool
	// counters are the plugins that count what pods take of a node beyond its resources.
	counters []clusterwide.NodeCounter
	// claims reports whether devices are allocated to the pod by claims.
	claims func(*v1.Pod) bool
	// hiddenReserve is set if a plugin reserves something that other pods may not see, tellsOthers are the plugins whose PreFilter is
	// told of pods that are added to nodes.
	hiddenReserve bool
	tellsOthers   []string
}

// allStockFilters are those of a scheduler of which nothing is known.
var allStockFilters = &stockFilters{
	rules:         checksAll,
	ports:         true,
	compares:      func(v1.ResourceName) bool { return true },
	claims:        func(pod *v1.Pod) bool { return len(pod.Spec.ResourceClaims) > 0 },
	hiddenReserve: true,
	hasRoom: func(pod *v1.Pod, node fwk.NodeInfo) bool {
		return len(noderesources.Fits(pod, node, nil, noderesources.ResourceRequestsOptions{EnablePodLevelResources: true})) == 0
	},
}

// ruleChecks are those of the filters that look at what a node is and not at what it has.
type ruleChecks uint8

const (
	checksCordon ruleChecks = 1 << iota
	checksName
	checksTaints
	checksAffinity
	checksAll = checksCordon | checksName | checksTaints | checksAffinity
)

// nodeFilter is NodeResourcesFit with the arguments of a profile, or another plugin that counts what pods take of a node.
type nodeFilter interface {
	fwk.PreFilterPlugin
	fwk.FilterPlugin
}

// stockFiltersOf finds the filters of a profile that has all its plugins. The framework lists no instances but those that wait for events,
// which NodeResourcesFit does.
func stockFiltersOf(profile framework.Framework) *stockFilters {
	f := &stockFilters{compares: func(v1.ResourceName) bool { return false }, hasRoom: func(*v1.Pod, fwk.NodeInfo) bool { return true },
		claims: func(pod *v1.Pod) bool { return claimsDevices(profile, pod) }}
	enabled := profile.ListPlugins().Filter.Enabled
	runs := func(name string) bool {
		return slices.ContainsFunc(enabled, func(p config.Plugin) bool { return p.Name == name })
	}
	for name, check := range map[string]ruleChecks{
		names.NodeUnschedulable: checksCordon, names.NodeName: checksName, names.TaintToleration: checksTaints, names.NodeAffinity: checksAffinity,
	} {
		if runs(name) {
			f.rules |= check
		}
	}
	f.ports = runs(names.NodePorts)
	for _, plugin := range profile.EnqueueExtensions() {
		if !runs(plugin.Name()) {
			continue
		}
		if fit, ok := plugin.(nodeFilter); ok && plugin.Name() == names.NodeResourcesFit {
			f.compares, f.hasRoom = comparesIn(fit), roomIn(fit)
		}
		if counter, ok := plugin.(clusterwide.NodeCounter); ok {
			f.counters = append(f.counters, counter)
		}
	}
	f.findDependence(profile)
	return f
}

// fits reports whether the node has what the pod requests, its host ports, and what plugins count besides.
func (f *stockFilters) fits(pod *v1.Pod, node fwk.NodeInfo) bool {
	return f.hasRoom(pod, node) && (!f.ports || nodeports.Fits(pod, node)) &&
		!slices.ContainsFunc(f.counters, func(counter clusterwide.NodeCounter) bool { return !roomIn(counter)(pod, node) })
}

// counterOf returns the plugin that counts what the pod asks of a node beyond its resources, nil if it asks for nothing of the kind.
func (f *stockFilters) counterOf(pod *v1.Pod) clusterwide.NodeCounter {
	for _, counter := range f.counters {
		if counter.Takes(pod) > 0 {
			return counter
		}
	}
	return nil
}

// roomIn asks the filter.
func roomIn(fit nodeFilter) func(*v1.Pod, fwk.NodeInfo) bool {
	return func(pod *v1.Pod, node fwk.NodeInfo) bool {
		state := framework.NewCycleState()
		switch _, status := fit.PreFilter(context.Background(), state, pod, nil); {
		case status.IsSkip():
			return true
		case !status.IsSuccess():
			return false
		}
		return fit.Filter(context.Background(), state, pod, node).IsSuccess()
	}
}

// comparesIn shows the filter a node with too little of a resource. The arguments ignoredResources and ignoredResourceGroups, and extenders
// that manage a resource, may have it ignored, and there is no other way to learn of them.
func comparesIn(fit nodeFilter) func(v1.ResourceName) bool {
	hasRoom, one, two := roomIn(fit), *resource.NewQuantity(1, resource.DecimalSI), *resource.NewQuantity(2, resource.DecimalSI)
	return func(name v1.ResourceName) bool {
		if !helper.IsExtendedResourceName(name) {
			return true
		}
		// The node has some: a device class may hand out what it does not have.
		node := framework.NewNodeInfo()
		node.SetNode(&v1.Node{Status: v1.NodeStatus{Allocatable: v1.ResourceList{name: one, v1.ResourcePods: one}}})
		return !hasRoom(&v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Resources: v1.ResourceRequirements{
			Requests: v1.ResourceList{name: two}}}}}}, node)
	}
}
