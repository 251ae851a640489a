package schedulerconfig

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/pkg/kubeview"
	"berth.dev/berth/pkg/plugins/costoptimized"
	"berth.dev/berth/pkg/price"
)

// argsOf returns the args of a plugin in the preferred profile, or else in the first that has any; nil for none.
func argsOf[T runtime.Object](c *Configuration) (args T, profile string) {
	preferred, err := c.Profile("")
	if err != nil {
		return args, ""
	}
	for i := range c.Component.Profiles {
		p := &c.Component.Profiles[i]
		for j := range p.PluginConfig {
			if found, ok := p.PluginConfig[j].Args.(T); ok && (profile == "" || p.SchedulerName == preferred) {
				args, profile = found, p.SchedulerName
			}
		}
	}
	return args, profile
}

// GPUKeys are the keys by which GPUs are read: those of the args of GPUAware, else the usual ones.
func (c *Configuration) GPUKeys() kubeview.GPUKeys {
	if args, profile := argsOf[*config.GPUAwareArgs](c); profile != "" {
		return *args.Keys()
	}
	return kubeview.DefaultGPUKeys()
}

// Prices returns what nodes cost as they themselves say or the args of CostOptimized, and the rates by which a price is divided
// over resources. Prices that only Prometheus knows are not known here.
func (c *Configuration) Prices() (func(*v1.Node) (price.MicroDollars, bool), price.Rates, error) {
	args, profile := argsOf[*config.CostOptimizedArgs](c)
	if profile == "" {
		args = &config.CostOptimizedArgs{}
		config.SetDefaultsCostOptimizedArgs(args)
	}
	return costoptimized.GivenPrices(args, profile)
}

// ComparesResource says whether the NodeResourcesFit of a profile, if that runs it, refuses nodes with too little of the resource.
func (c *Configuration) ComparesResource(profile string, name v1.ResourceName) bool {
	ignored := slices.ContainsFunc(c.Component.Extenders, func(e schedulerapi.Extender) bool {
		return slices.ContainsFunc(e.ManagedResources, func(r schedulerapi.ExtenderManagedResource) bool {
			return r.Name == string(name) && r.IgnoredByScheduler
		})
	})
	at := slices.IndexFunc(c.Component.Profiles, func(p schedulerapi.KubeSchedulerProfile) bool { return p.SchedulerName == profile })
	if ignored || at < 0 {
		return false
	}
	for _, pc := range c.Component.Profiles[at].PluginConfig {
		if args, ok := pc.Args.(*schedulerapi.NodeResourcesFitArgs); ok {
			group, _, _ := strings.Cut(string(name), "/")
			if slices.Contains(args.IgnoredResources, string(name)) || slices.Contains(args.IgnoredResourceGroups, group) {
				return false
			}
		}
	}
	return true
}
