package plugins

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"

	"berth.dev/berth/pkg/plugins/costoptimized"
	"berth.dev/berth/pkg/plugins/ipreservation"
	"berth.dev/berth/pkg/plugins/placementpolicy"
	"berth.dev/berth/pkg/wellknown"
)

// podKeys are annotations of pods that one plugin alone reads, with what is missing if it is not enabled at the
// extension points.
var podKeys = []struct {
	key, plugin, effect string
	at                  []string
}{
	{wellknown.IPPoolKey, ipreservation.Name, "the pod gets no address of the pool",
		[]string{"preFilter", "filter", "reserve", "preBind"}},
	{wellknown.SpotKey, costoptimized.Name, "the pod may run on spot capacity and elsewhere alike", []string{"filter"}},
	{wellknown.StartWindowKey, costoptimized.Name, "the pod waits for no window", []string{"preEnqueue"}},
	{wellknown.DeadlineKey, costoptimized.Name, "the pod waits for no window", []string{"preEnqueue"}},
	{wellknown.LicensesKey, placementpolicy.Name, "no license is counted for the pod",
		[]string{"preFilter", "filter", "reserve"}},
	{wellknown.DatasetsKey, placementpolicy.Name, "the pod is not placed near its data",
		[]string{"preFilter", "preScore", "score"}},
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
		if _, asks := pod.Annotations[k.key]; asks && !enabled(profile, k.plugin, k.at...) {
			unread = append(unread, UnreadKey{k.key, k.plugin, k.effect})
		}
	}
	return unread
}
