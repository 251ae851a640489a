package plugins

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"

	"berth.dev/berth/pkg/plugins/costoptimized"
	"berth.dev/berth/pkg/plugins/ipreservation"
	"berth.dev/berth/pkg/plugins/placementpolicy"
	"berth.dev/berth/pkg/wellknown"
)

// podKeys are annotations of pods that one plugin alone reads, with the extension points at which it has to be enabled
// and what is missing otherwise.
var podKeys = []struct {
	key, plugin, effect string
	at                  func(*config.Plugins) []config.PluginSet
}{
	{wellknown.IPPoolKey, ipreservation.Name, "the pod gets no address of the pool",
		func(p *config.Plugins) []config.PluginSet {
			return []config.PluginSet{p.PreFilter, p.Filter, p.Reserve, p.PreBind}
		}},
	{wellknown.SpotKey, costoptimized.Name, "the pod may run on spot capacity and elsewhere alike",
		func(p *config.Plugins) []config.PluginSet { return []config.PluginSet{p.Filter} }},
	{wellknown.StartWindowKey, costoptimized.Name, "the pod waits for no window",
		func(p *config.Plugins) []config.PluginSet { return []config.PluginSet{p.PreEnqueue} }},
	{wellknown.DeadlineKey, costoptimized.Name, "the pod waits for no window",
		func(p *config.Plugins) []config.PluginSet { return []config.PluginSet{p.PreEnqueue} }},
	{wellknown.LicensesKey, placementpolicy.Name, "no license is counted for the pod",
		func(p *config.Plugins) []config.PluginSet {
			return []config.PluginSet{p.PreFilter, p.Filter, p.Reserve}
		}},
	{wellknown.DatasetsKey, placementpolicy.Name, "the pod is not placed near its data",
		func(p *config.Plugins) []config.PluginSet {
			return []config.PluginSet{p.PreFilter, p.PreScore, p.Score}
		}},
}

// UnreadKey is an annotation of a pod that nothing reads.
type UnreadKey struct{ Key, Plugin, Effect string }

// String says what does not happen, and why.
func (u UnreadKey) String() string {
	return fmt.Sprintf("annotation %s has no effect, because %s is not enabled: %s", u.Key, u.Plugin, u.Effect)
}

// Unread returns the annotations of the pod that no plugin of a profile reads.
func Unread(pod *v1.Pod, profile *config.Plugins) []UnreadKey {
	var unread []UnreadKey
	for _, k := range podKeys {
		if _, asks := pod.Annotations[k.key]; asks && !enabled(k.plugin, k.at(profile)) {
			unread = append(unread, UnreadKey{k.key, k.plugin, k.effect})
		}
	}
	return unread
}

func enabled(plugin string, everywhere []config.PluginSet) bool {
	for _, set := range everywhere {
		if !slices.ContainsFunc(set.Enabled, func(p config.Plugin) bool { return p.Name == plugin }) {
			return false
		}
	}
	return true
}
