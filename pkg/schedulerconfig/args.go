package schedulerconfig

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/pkg/cost/price"
	"berth.dev/berth/pkg/cost/priceview"
	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/pkg/plugins/costoptimized"
	"berth.dev/berth/pkg/podview"
)

// argsOf returns the args of a plugin in the profile, or else in the first profile that has any, with the name of that
// profile; both are zero if there are none. An empty name stands for the default of Profile.
func argsOf[T runtime.Object](c *Configuration, of string) (args T, profile string) {
	preferred, err := c.Profile(of)
	if err != nil {
		preferred = of // none of the profiles
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

// GPUKeys returns the keys by which GPUs are read: from the args of GPUAware, or else of CostOptimized, in the profile
// or, if it has neither, in another one. Without any, they are the defaults of the args.
func (c *Configuration) GPUKeys(profile string) gpuview.Keys {
	if name, err := c.Profile(profile); err == nil {
		profile = name
	}
	args, of := argsOf[*config.GPUAwareArgs](c, profile)
	prices, ofPrices := argsOf[*config.CostOptimizedArgs](c, profile)
	switch {
	case ofPrices != "" && (of == "" || of != profile && ofPrices == profile):
		return gpuview.Keys{GPUNames: prices.GPUNames}
	case of == "":
		args = &config.GPUAwareArgs{}
		args.SetDefaults()
	}
	return gpuview.Keys{GPUNames: args.GPUNames}
}

// Prices returns the prices of nodes by their annotations, labels or the args of CostOptimized, and the rates by which
// a price is divided over resources. The args are those of the profile or, if CostOptimized scores nothing in it, of
// another one. Prices from Prometheus are not included.
func (c *Configuration) Prices(profile string) (func(*v1.Node) (price.MicroDollars, bool), price.Rates, error) {
	args, of := argsOf[*config.CostOptimizedArgs](c, c.scoringProfile(profile))
	if of == "" {
		args = &config.CostOptimizedArgs{}
		args.SetDefaults()
	}
	return costoptimized.GivenPrices(args, of)
}

// scoringProfile returns the profile if CostOptimized scores in it, else the first in which it does, else the profile.
func (c *Configuration) scoringProfile(profile string) string {
	if name, err := c.Profile(profile); err == nil {
		profile = name
	}
	var scoring []string
	for _, p := range c.Component.Profiles {
		filtersOnly := p.Plugins != nil && slices.ContainsFunc(p.Plugins.Score.Disabled, func(p schedulerapi.Plugin) bool {
			return p.Name == costoptimized.Name
		})
		if !filtersOnly && c.enables(p.SchedulerName, costoptimized.Name) {
			scoring = append(scoring, p.SchedulerName)
		}
	}
	if len(scoring) == 0 || slices.Contains(scoring, profile) {
		return profile
	}
	return scoring[0]
}

// NetworkLevels returns the levels in the args of NetworkTopology, or the default ones if no profile has any.
func (c *Configuration) NetworkLevels() podview.NetworkLevels {
	args, of := argsOf[*config.NetworkTopologyArgs](c, "")
	if of == "" {
		args = &config.NetworkTopologyArgs{Levels: config.DefaultNetworkLevels()}
	}
	var levels podview.NetworkLevels
	for _, l := range args.Levels {
		levels = append(levels, l.Labels)
	}
	return levels
}

// CapacityRules returns the rules for capacity types of the profile or, if it has no args of CostOptimized, of another
// one.
func (c *Configuration) CapacityRules(profile string) priceview.CapacityRules {
	args, of := argsOf[*config.CostOptimizedArgs](c, profile)
	if of == "" {
		args = &config.CostOptimizedArgs{}
	}
	return costoptimized.CapacityRules(args)
}

// ComparesResource reports whether NodeResourcesFit in the profile refuses nodes with too little of the resource.
func (c *Configuration) ComparesResource(profile string, name v1.ResourceName) bool {
	ignored := slices.ContainsFunc(c.Component.Extenders, func(e schedulerapi.Extender) bool {
		return slices.ContainsFunc(e.ManagedResources, func(r schedulerapi.ExtenderManagedResource) bool {
			return r.Name == string(name) && r.IgnoredByScheduler
		})
	})
	at := slices.IndexFunc(c.Component.Profiles,
		func(p schedulerapi.KubeSchedulerProfile) bool { return p.SchedulerName == profile })
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
