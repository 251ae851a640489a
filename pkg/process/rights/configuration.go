package rights

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
)

// For returns what a defaulted configuration needs. Features are those that it does not show, such as the feature gate
// NativeGroups.
func For(c *schedulerconfig.KubeSchedulerConfiguration, features ...string) []Need {
	wanted := sets.New(append(features, Always, Metrics)...)
	for i := range c.Profiles {
		wanted = wanted.Union(enabled(c.Profiles[i].Plugins))
	}
	var all []Need
	for _, need := range needs() {
		// Only what is enabled is named.
		need.For = slices.DeleteFunc(slices.Clone(need.For), func(feature string) bool { return !wanted.Has(feature) })
		if len(need.For) > 0 {
			all = append(all, need)
		}
	}
	return append(all, lease(c)...)
}

// lease returns the rights to the lease by which the replicas elect a leader.
func lease(c *schedulerconfig.KubeSchedulerConfiguration) []Need {
	election := c.LeaderElection
	if !election.LeaderElect {
		return nil
	}
	needs := need("coordination.k8s.io", "leases", []string{"get", "update"}, Vital,
		noScheduling+": no replica can lead", LeaderElection)
	for i := range needs {
		needs[i].Name = election.ResourceName
	}
	// A right to create cannot be limited to a name. A lease that exists needs none.
	needs = append(needs, need("coordination.k8s.io", "leases", create, Feature,
		"a lease that does not exist is not made, and no replica can lead without it", LeaderElection)...)
	for i := range needs {
		needs[i].Namespace = election.ResourceNamespace
	}
	return needs
}

// enabled returns the plugins that a profile enables at any extension point.
func enabled(plugins *schedulerconfig.Plugins) sets.Set[string] {
	names := sets.New[string]()
	if plugins == nil {
		return names
	}
	for _, set := range []schedulerconfig.PluginSet{
		plugins.PreEnqueue, plugins.QueueSort, plugins.PreFilter, plugins.Filter, plugins.PostFilter, plugins.PreScore,
		plugins.Score, plugins.Reserve, plugins.Permit, plugins.PreBind, plugins.Bind, plugins.PostBind,
		plugins.MultiPoint,
	} {
		for _, plugin := range set.Enabled {
			names.Insert(plugin.Name)
		}
	}
	return names
}
