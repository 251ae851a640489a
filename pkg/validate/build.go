package validate

import (
	"fmt"
	"slices"
	"time"

	fwk "k8s.io/kube-scheduler/framework"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"
	frameworkplugins "k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/pkg/lab/simulation"
	"berth.dev/berth/pkg/plugins"
	"berth.dev/berth/pkg/schedulerconfig"
)

// Profile is a profile after defaults, multiPoint and disabled plugins have been applied.
type Profile struct {
	File string `json:"file"`
	Name string `json:"name"`
	// Weights of the score plugins, in the order in which they run.
	Weights []Weight `json:"weights"`
	// Unsigned are the plugins that prevent the batching of identical pods.
	Unsigned []string `json:"unsigned"`

	// cfg is the profile of the file with defaults, and plugins are the resulting ones.
	cfg     *schedulerapi.KubeSchedulerProfile
	plugins *schedulerapi.Plugins
}

// Weight of a score plugin: its 0 to 100 points count that many times.
type Weight struct {
	Plugin string `json:"plugin"`
	Weight int64  `json:"weight"`
}

// weight is 0 for a plugin that does not score.
func (p *Profile) weight(plugin string) int64 {
	for _, w := range p.Weights {
		if w.Plugin == plugin {
			return w.Weight
		}
	}
	return 0
}

// knownProfiles are the names of the profiles in the files and of the shipped ones.
func (r *Report) knownProfiles() []string {
	names := r.profileNames()
	shipped, err := schedulerconfig.Shipped()
	if err != nil {
		return names
	}
	for i := range shipped.Component.Profiles {
		names = append(names, shipped.Component.Profiles[i].SchedulerName)
	}
	return names
}

// gpuKeys are the names of GPUs of the profile in the configurations, or the defaults.
func (r *Report) gpuKeys(profile string) *gpuview.Keys {
	c := &schedulerconfig.Configuration{Component: &schedulerapi.KubeSchedulerConfiguration{}}
	for _, component := range r.configurations {
		c.Component.Profiles = append(c.Component.Profiles, component.Profiles...)
	}
	keys := c.GPUKeys(profile)
	return &keys
}

func (r *Report) profilesNamed(name string) []*Profile {
	var named []*Profile
	for i := range r.Profiles {
		if r.Profiles[i].Name == name {
			named = append(named, &r.Profiles[i])
		}
	}
	return named
}

func (r *Report) profileNames() []string {
	var names []string
	for _, p := range r.Profiles {
		names = append(names, p.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// argsOf are the args of a plugin in the profile, nil without any.
func argsOf[T any](p *Profile) *T {
	for i := range p.cfg.PluginConfig {
		if args, ok := any(p.cfg.PluginConfig[i].Args).(*T); ok {
			return args
		}
	}
	return nil
}

func enables(set schedulerapi.PluginSet, plugin string) bool {
	return slices.ContainsFunc(set.Enabled, func(p schedulerapi.Plugin) bool { return p.Name == plugin })
}

// build makes the scheduler of the configuration with an empty cluster in memory, as the command does at its start.
func build(c *schedulerconfig.Configuration) ([]Profile, error) {
	c, _ = c.WithoutSignals()
	var profiles []Profile
	err := simulation.Virtual(time.Unix(1_800_000_000, 0), func() error {
		w := simulation.NewWorld()
		defer w.Stop()
		if err := w.Start(simulation.Setup{Config: c}); err != nil {
			return err
		}
		w.Settle()
		for i := range c.Component.Profiles {
			cfg := &c.Component.Profiles[i]
			p := Profile{Name: cfg.SchedulerName, plugins: w.AllNodes[cfg.SchedulerName].ListPlugins()}
			for _, s := range p.plugins.Score.Enabled {
				p.Weights = append(p.Weights, Weight{Plugin: s.Name, Weight: int64(s.Weight)})
			}
			p.Unsigned = unsigned(w, p.plugins)
			profiles = append(profiles, p)
		}
		return nil
	})
	return profiles, err
}

func allPlugins() (frameworkruntime.Registry, error) {
	registry := frameworkplugins.NewInTreeRegistry()
	if err := registry.Merge(plugins.Registry()); err != nil {
		return nil, fmt.Errorf("registering plugins: %w", err)
	}
	return registry, nil
}

// unsigned returns the plugins of a profile that affect the choice of the node and do not sign pods. A framework does
// not give access to its plugins: World has those that are not of Kubernetes; of the others, all but one sign.
func unsigned(w *simulation.World, list *schedulerapi.Plugins) []string {
	var found []string
	for _, set := range []schedulerapi.PluginSet{list.PreFilter, list.Filter, list.PreScore, list.Score} {
		for _, p := range set.Enabled {
			plugin, own := w.Plugins[p.Name]
			_, signs := plugin.(fwk.SignPlugin)
			if (own && !signs || p.Name == names.DeferredPodScheduling) && !slices.Contains(found, p.Name) {
				found = append(found, p.Name)
			}
		}
	}
	return found
}
