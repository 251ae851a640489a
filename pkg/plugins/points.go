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
}{
	{"queueSort", is[fwk.QueueSortPlugin]}, {"preEnqueue", is[fwk.PreEnqueuePlugin]},
	{"preFilter", is[fwk.PreFilterPlugin]}, {"filter", is[fwk.FilterPlugin]}, {preemption, is[fwk.PostFilterPlugin]},
	{"reserve", is[fwk.ReservePlugin]}, {"permit", is[fwk.PermitPlugin]}, {"preBind", is[fwk.PreBindPlugin]},
	{"bind", is[fwk.BindPlugin]}, {"postBind", is[fwk.PostBindPlugin]},
}

func is[T fwk.Plugin](plugin fwk.Plugin) bool {
	_, ok := plugin.(T)
	return ok
}

// enabled reports whether a profile enables the plugin at all of the extension points.
func enabled(p *config.Plugins, plugin string, at ...string) bool {
	sets := map[string]config.PluginSet{
		"queueSort": p.QueueSort, "preEnqueue": p.PreEnqueue, "preFilter": p.PreFilter, "filter": p.Filter,
		preemption: p.PostFilter, "preScore": p.PreScore, "score": p.Score, "reserve": p.Reserve, "permit": p.Permit,
		"preBind": p.PreBind, "bind": p.Bind, "postBind": p.PostBind,
	}
	return !slices.ContainsFunc(at, func(point string) bool {
		return !slices.ContainsFunc(sets[point].Enabled, func(p config.Plugin) bool { return p.Name == plugin })
	})
}

// UnassignedDevices is the warning for a profile that filters by GPUs and does not assign devices; empty for others.
func UnassignedDevices(p *config.Plugins) string {
	if !enabled(p, gpuaware.Name, "filter") || enabled(p, gpuaware.Name, "reserve", "preBind") {
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
				case enabled(enabledAt, plugin.Name(), point.name):
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
