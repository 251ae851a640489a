package plugins

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/pkg/plugins/coscheduling"
	"berth.dev/berth/pkg/plugins/gpuaware"
	"berth.dev/berth/pkg/plugins/ipreservation"
	"berth.dev/berth/pkg/plugins/placementpolicy"
)

// stateful are the plugins whose extension points depend on each other. The filters and scores of the others may be
// enabled alone.
var stateful = []string{coscheduling.Name, placementpolicy.Name, ipreservation.Name}

// preemption is the only extension point of a stateful plugin that may be left out.
const preemption = "postFilter"

// points are the extension points at which a stateful plugin has to be enabled if it is at one of them. Scores may be
// enabled alone.
var points = []struct {
	name string
	has  func(fwk.Plugin) bool
	at   func(*config.Plugins) config.PluginSet
}{
	{"queueSort", is[fwk.QueueSortPlugin], func(p *config.Plugins) config.PluginSet { return p.QueueSort }},
	{"preEnqueue", is[fwk.PreEnqueuePlugin], func(p *config.Plugins) config.PluginSet { return p.PreEnqueue }},
	{"preFilter", is[fwk.PreFilterPlugin], func(p *config.Plugins) config.PluginSet { return p.PreFilter }},
	{"filter", is[fwk.FilterPlugin], func(p *config.Plugins) config.PluginSet { return p.Filter }},
	{preemption, is[fwk.PostFilterPlugin], func(p *config.Plugins) config.PluginSet { return p.PostFilter }},
	{"reserve", is[fwk.ReservePlugin], func(p *config.Plugins) config.PluginSet { return p.Reserve }},
	{"permit", is[fwk.PermitPlugin], func(p *config.Plugins) config.PluginSet { return p.Permit }},
	{"preBind", is[fwk.PreBindPlugin], func(p *config.Plugins) config.PluginSet { return p.PreBind }},
	{"bind", is[fwk.BindPlugin], func(p *config.Plugins) config.PluginSet { return p.Bind }},
	{"postBind", is[fwk.PostBindPlugin], func(p *config.Plugins) config.PluginSet { return p.PostBind }},
}

func is[T fwk.Plugin](plugin fwk.Plugin) bool {
	_, ok := plugin.(T)
	return ok
}

// UnassignedDevices is the warning for a profile that filters by GPUs and does not assign devices; empty for others.
func UnassignedDevices(p *config.Plugins) string {
	if !enabled(gpuaware.Name, []config.PluginSet{p.Filter}) ||
		enabled(gpuaware.Name, []config.PluginSet{p.Reserve, p.PreBind}) {
		return ""
	}
	return "GPUAware is not enabled in reserve and preBind: no device is assigned to a pod that asks for a part of a " +
		"GPU, and two pods can get the same one; enable it in multiPoint"
}

// CheckPoints returns an error that names the first stateful plugin that a profile enables in part, the extension
// points that are missing, and what to write.
func CheckPoints(profiles map[string]framework.Framework) error {
	for _, name := range slices.Sorted(maps.Keys(profiles)) {
		enabledAt := profiles[name].ListPlugins()
		if unassigned := UnassignedDevices(enabledAt); unassigned != "" {
			klog.Background().Info("The profile can give one GPU to two pods", "profile", name, "reason", unassigned)
		}
		for _, plugin := range profiles[name].EnqueueExtensions() {
			if !slices.Contains(stateful, plugin.Name()) {
				continue
			}
			var has, lacks []string
			for _, point := range points {
				switch {
				case enabled(plugin.Name(), []config.PluginSet{point.at(enabledAt)}):
					has = append(has, point.name)
				case point.has(plugin) && point.name != preemption:
					lacks = append(lacks, point.name)
				}
			}
			if len(has) > 0 && len(lacks) > 0 {
				line := fmt.Sprintf("multiPoint: {enabled: [{name: %s}]}", plugin.Name())
				if is[fwk.QueueSortPlugin](plugin) {
					line += fmt.Sprintf(", queueSort: {disabled: [{name: \"*\"}], enabled: [{name: %s}]}", plugin.Name())
				}
				return fmt.Errorf("profile %s: plugin %s is enabled at %s but not at %s, which it needs as well: write "+
					"plugins: {%s}", name, plugin.Name(), strings.Join(has, ", "), strings.Join(lacks, ", "), line)
			}
		}
	}
	return nil
}
