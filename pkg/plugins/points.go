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

// keepsBooks are the plugins whose extension points count on each other. The filters and scores of the others may be
// enabled alone.
var keepsBooks = []string{coscheduling.Name, placementpolicy.Name, ipreservation.Name}

// preemption is the only one of points that may be left out.
const preemption = "postFilter"

// points are the extension points at which such a plugin has to be enabled if it is at one of them. A score may stand
// alone.
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

// UntoldDevices says what a profile lacks that filters by GPUs and takes no note of those that it gives to pods.
func UntoldDevices(p *config.Plugins) string {
	if !enabled(gpuaware.Name, []config.PluginSet{p.Filter}) ||
		enabled(gpuaware.Name, []config.PluginSet{p.Reserve, p.PreBind}) {
		return ""
	}
	return "GPUAware is not enabled in reserve and preBind: a pod that asks for a part of a GPU is told no device, and " +
		"two pods can get the same one; enable it in multiPoint"
}

// CheckPoints returns an error that names the first plugin that a profile enables in part although it keeps books, the
// extension points that are missing, and what to write.
func CheckPoints(profiles map[string]framework.Framework) error {
	for _, name := range slices.Sorted(maps.Keys(profiles)) {
		enabledAt := profiles[name].ListPlugins()
		if untold := UntoldDevices(enabledAt); untold != "" {
			klog.Background().Info("The profile can give one GPU to two pods", "profile", name, "reason", untold)
		}
		for _, plugin := range profiles[name].EnqueueExtensions() {
			if !slices.Contains(keepsBooks, plugin.Name()) {
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
