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

// NodeCounter is a plugin whose Filter counts what the pods in a NodeInfo take of the node beyond its resources, such
// as shares of GPUs.
type NodeCounter interface {
	fwk.PreFilterPlugin
	fwk.FilterPlugin
	CountsOnNodes()
	// Unfit returns what keeps the pod off a node whatever runs there, beyond resources; nil if nothing does on any node.
	Unfit(*v1.Pod) func(*v1.Node) obstacle.NodeCause
}

// NodeRuler is a plugin whose Filter refuses nodes for what they are, whatever runs there.
type NodeRuler interface {
	fwk.FilterPlugin
	// NodeRule returns the rule for a pod, nil for one that may be on any node.
	NodeRule(*v1.Pod) NodeRule
}

// NodeRule says which nodes a plugin refuses for what they are.
type NodeRule interface {
	// Key is equal for equal rules.
	Key() string
	// Against returns why the rule refuses the node, empty if it does not.
	Against(*v1.Node) string
}

// Traits are what the account of capacity and dry runs have to know of the plugins of a profile. The account must
// refuse nothing that the profile accepts, so that it counts only what the profile's filters do.
type Traits struct {
	// Rules are the filters that look at what a node is.
	Rules Checks
	// ports is set if the profile runs NodePorts.
	ports bool
	// profile is nil if it is not known, and fit if the profile does not run NodeResourcesFit.
	profile  framework.Framework
	fit      nodeFilter
	counters []NodeCounter
	rulers   []NodeRuler
	// HiddenReserve is set if a plugin reserves something that other pods may not see.
	HiddenReserve bool
	// readOthers are the plugins with AddPod and RemovePod, and filterByOthers those of them that filter.
	readOthers, filterByOthers []string
}

// AllTraits are those of an unknown scheduler: all filters, and plugins that may reserve anything.
var AllTraits = &Traits{Rules: ChecksAll, ports: true, HiddenReserve: true}

// Checks is a set of filters that look at what a node is, and not at what it has.
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
	t := &Traits{profile: profile}
	enabled := profile.ListPlugins().Filter.Enabled
	runs := func(name string) bool {
		return slices.ContainsFunc(enabled, func(p config.Plugin) bool { return p.Name == name })
	}
	for name, check := range map[string]Checks{
		names.NodeUnschedulable: ChecksCordon, names.NodeName: ChecksName, names.TaintToleration: ChecksTaints,
		names.NodeAffinity: ChecksAffinity,
	} {
		if runs(name) {
			t.Rules |= check
		}
	}
	t.ports = runs(names.NodePorts)
	for _, plugin := range profile.EnqueueExtensions() {
		if !runs(plugin.Name()) {
			continue
		}
		if fit, ok := plugin.(nodeFilter); ok && plugin.Name() == names.NodeResourcesFit {
			t.fit = fit
		}
		if counter, ok := plugin.(NodeCounter); ok {
			t.counters = append(t.counters, counter)
		}
		if ruler, ok := plugin.(NodeRuler); ok {
			t.rulers = append(t.rulers, ruler)
		}
	}
	t.findDependence(profile)
	return t
}

// Fits reports whether the node has the pod's resources, its host ports, and what NodeCounters count.
func (t *Traits) Fits(pod *v1.Pod, node fwk.NodeInfo) bool {
	return t.hasResources(pod, node) && (!t.ports || nodeports.Fits(pod, node)) &&
		!slices.ContainsFunc(t.counters, func(counter NodeCounter) bool { return !passes(counter, pod, node) })
}

// hasResources reports whether the node has the resources that the pod requests.
func (t *Traits) hasResources(pod *v1.Pod, node fwk.NodeInfo) bool {
	switch {
	case t.profile == nil:
		return len(noderesources.Fits(pod, node, nil,
			noderesources.ResourceRequestsOptions{EnablePodLevelResources: true})) == 0
	case t.fit == nil:
		return true
	}
	return passes(t.fit, pod, node)
}

// Unfit is NodeCounter.Unfit of the first of the profile's plugins that returns something.
func (t *Traits) Unfit(pod *v1.Pod) func(*v1.Node) obstacle.NodeCause {
	for _, counter := range t.counters {
		if unfit := counter.Unfit(pod); unfit != nil {
			return unfit
		}
	}
	return nil
}

// NodeRules returns the rules that the profile's plugins have for the pod.
func (t *Traits) NodeRules(pod *v1.Pod) []NodeRule {
	var rules []NodeRule
	for _, ruler := range t.rulers {
		if rule := ruler.NodeRule(pod); rule != nil {
			rules = append(rules, rule)
		}
	}
	return rules
}

// passes reports whether PreFilter and Filter of the plugin accept the pod on the node.
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
