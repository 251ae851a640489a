package extender

import (
	"fmt"
	"slices"

	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"

	"berth.dev/berth/pkg/plugins/costoptimized"
	"berth.dev/berth/pkg/plugins/gpuaware"
)

// served are the plugins that can decide about one pod and one node. Coscheduling cannot: it orders the queue and makes
// pods wait, for which the protocol has no verb.
var served = []string{gpuaware.Name, costoptimized.Name}

// reduce returns a profile with the plugins of ours only, as they are enabled there, and with their args.
func reduce(component *schedulerconfig.KubeSchedulerConfiguration, name string) (*schedulerconfig.KubeSchedulerProfile,
	error) {
	at := slices.IndexFunc(component.Profiles,
		func(p schedulerconfig.KubeSchedulerProfile) bool { return p.SchedulerName == name })
	if at < 0 {
		return nil, fmt.Errorf("choosing a profile: there is no profile %q", name)
	}
	profile := component.Profiles[at].DeepCopy()
	// No pod has a scheduler of this name, so that none is queued for a scheduler that never runs.
	profile.SchedulerName = name + " (extender)"
	all := profile.Plugins
	profile.Plugins = &schedulerconfig.Plugins{
		QueueSort:  schedulerconfig.PluginSet{Enabled: []schedulerconfig.Plugin{{Name: names.PrioritySort}}},
		Bind:       schedulerconfig.PluginSet{Enabled: []schedulerconfig.Plugin{{Name: names.DefaultBinder}}},
		MultiPoint: ours(all.MultiPoint),
		PreFilter:  ours(all.PreFilter),
		Filter:     ours(all.Filter),
		PreScore:   ours(all.PreScore),
		Score:      ours(all.Score),
	}
	profile.PluginConfig = slices.DeleteFunc(profile.PluginConfig, func(c schedulerconfig.PluginConfig) bool {
		return !slices.Contains(served, c.Name)
	})
	p := profile.Plugins
	if len(p.MultiPoint.Enabled)+len(p.Filter.Enabled)+len(p.Score.Enabled) == 0 {
		return nil, fmt.Errorf("reading profile %s: it enables neither %s nor %s, so there is nothing to serve", name,
			gpuaware.Name, costoptimized.Name)
	}
	return profile, nil
}

func ours(set schedulerconfig.PluginSet) schedulerconfig.PluginSet {
	foreign := func(p schedulerconfig.Plugin) bool { return !slices.Contains(served, p.Name) }
	// "*" disables the plugins of MultiPoint at one extension point, ours as well.
	return schedulerconfig.PluginSet{
		Enabled: slices.DeleteFunc(slices.Clone(set.Enabled), foreign),
		Disabled: slices.DeleteFunc(slices.Clone(set.Disabled), func(p schedulerconfig.Plugin) bool {
			return p.Name != "*" && foreign(p)
		}),
	}
}
