package process

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

	"berth.dev/berth/pkg/gang/obstacle"
)

// Traits are what capacity and dry runs have to know of the plugins of a profile. Free capacity is counted for the
// filters that the profile runs: it must refuse nothing that the profile accepts.
type Traits struct {
	// Rules are the filters that look at what a node is.
	Rules Checks
	ports bool
	// profile is nil where it is not known, fit where it does not run NodeResourcesFit.
	profile framework.Framework
	fit     nodeFilter
	// counters are the plugins that count what pods take of a node beyond its resources.
	counters []NodeCounter
	// rulers are the plugins that refuse nodes for what they are.
	rulers []NodeRuler
	// HiddenReserve is set if a plugin reserves something that other pods may not see.
	HiddenReserve bool
	// readOthers are the plugins that are told of pods that are added to nodes, filterByOthers those of them that filter.
	readOthers, filterByOthers []string
}

// AllTraits are those of a scheduler that is not known: all filters, and plugins that may keep anything.
var AllTraits = &Traits{Rules: ChecksAll, ports: true, HiddenReserve: true}

// Checks are those of the filters that look at what a node is and not at what it has.
type Checks uint8

// The filters NodeUnschedulable, NodeName, TaintToleration and NodeAffinity.
const (
	ChecksCordon Checks = 1 << iota
	ChecksName
	ChecksTaints
	ChecksAffinity
	ChecksAll = ChecksCordon | ChecksName | ChecksTaints | ChecksAffinity
)

// nodeFilter is NodeResourcesFit with the arguments of a profile, or another plugin that counts what pods take of a
// node.
type nodeFilter interface {
	fwk.PreFilterPlugin
	fwk.FilterPlugin
}

// TraitsOf reads the traits of a profile that has all its plugins. The framework lists no instances but those that wait
// for events, which NodeResourcesFit does.
func TraitsOf(profile framework.Framework) *Traits {
	f := &Traits{profile: profile}
	enabled := profile.ListPlugins().Filter.Enabled
	runs := func(name string) bool {
		return slices.ContainsFunc(enabled, func(p config.Plugin) bool { return p.Name == name })
	}
	for name, check := range map[string]Checks{
		names.NodeUnschedulable: ChecksCordon, names.NodeName: ChecksName, names.TaintToleration: ChecksTaints,
		names.NodeAffinity: ChecksAffinity,
	} {
		if runs(name) {
			f.Rules |= check
		}
	}
	f.ports = runs(names.NodePorts)
	for _, plugin := range profile.EnqueueExtensions() {
		if !runs(plugin.Name()) {
			continue
		}
		if fit, ok := plugin.(nodeFilter); ok && plugin.Name() == names.NodeResourcesFit {
			f.fit = fit
		}
		if counter, ok := plugin.(NodeCounter); ok {
			f.counters = append(f.counters, counter)
		}
		if ruler, ok := plugin.(NodeRuler); ok {
			f.rulers = append(f.rulers, ruler)
		}
	}
	f.findDependence(profile)
	return f
}

// Fits reports whether the node has what the pod requests, its host ports, and what plugins count besides.
func (t *Traits) Fits(pod *v1.Pod, node fwk.NodeInfo) bool {
	return t.hasRoom(pod, node) && (!t.ports || nodeports.Fits(pod, node)) &&
		!slices.ContainsFunc(t.counters, func(counter NodeCounter) bool { return !passes(counter, pod, node) })
}

// hasRoom reports whether the node has what the pod requests.
func (t *Traits) hasRoom(pod *v1.Pod, node fwk.NodeInfo) bool {
	switch {
	case t.profile == nil:
		return len(noderesources.Fits(pod, node, nil,
			noderesources.ResourceRequestsOptions{EnablePodLevelResources: true})) == 0
	case t.fit == nil:
		return true
	}
	return passes(t.fit, pod, node)
}

// Unfit returns what keeps the pod off a node whatever runs there, beyond its resources and the rules of Checks; nil if
// that is nothing for any node.
func (t *Traits) Unfit(pod *v1.Pod) func(*v1.Node) obstacle.NodeCause {
	for _, counter := range t.counters {
		if unfit := counter.Unfit(pod); unfit != nil {
			return unfit
		}
	}
	return nil
}

// NodeRules are those of the plugins that have one for the pod.
func (t *Traits) NodeRules(pod *v1.Pod) []NodeRule {
	var rules []NodeRule
	for _, ruler := range t.rulers {
		if rule := ruler.NodeRule(pod); rule != nil {
			rules = append(rules, rule)
		}
	}
	return rules
}

// passes asks the filter.
func passes(filter nodeFilter, pod *v1.Pod, node fwk.NodeInfo) bool {
	state := framework.NewCycleState()
	switch _, status := filter.PreFilter(context.Background(), state, pod, nil); {
	case status.IsSkip():
		return true
	case !status.IsSuccess():
		return false
	}
	return filter.Filter(context.Background(), state, pod, node).IsSuccess()
}

// Compares reports whether nodes with too little of the resource are refused. It shows the filter such a node: the
// arguments ignoredResources and ignoredResourceGroups, and extenders that manage a resource, may have it ignored, and
// there is no other way to learn of them.
func (t *Traits) Compares(name v1.ResourceName) bool {
	if t.profile == nil || t.fit == nil {
		return t.profile == nil
	}
	if !helper.IsExtendedResourceName(name) {
		return true
	}
	one, two := *resource.NewQuantity(1, resource.DecimalSI), *resource.NewQuantity(2, resource.DecimalSI)
	// The node has some: a device class may hand out what it does not have.
	node := framework.NewNodeInfo()
	node.SetNode(&v1.Node{Status: v1.NodeStatus{Allocatable: v1.ResourceList{name: one, v1.ResourcePods: one}}})
	return !passes(t.fit, &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Resources: v1.ResourceRequirements{
		Requests: v1.ResourceList{name: two}}}}}}, node)
}
