package config

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Preemption limits what counts when victims are chosen among pods of one priority: the work that an eviction loses,
// and what pods may ask for.
type Preemption struct {
	// Longest time of work, in seconds, that counts as lost with a pod, however long ago it was saved. With 0, work
	// does not count, and the fewest pods are evicted. From 0 to 2592000 (30 days), default 86400.
	MaxUnsavedSeconds *int32 `json:"maxUnsavedSeconds,omitempty"`
	// Longest time, in seconds, that a pod may declare in `berth.dev/restart-cost` to need to come back. From 0 to
	// 86400, default 1800.
	MaxRestartSeconds *int32 `json:"maxRestartSeconds,omitempty"`
	// Longest time after its start, in seconds, for which a pod may ask in `berth.dev/protect-for` to be evicted after
	// all others of its priority. From 0 to 86400, default 1800.
	MaxProtectSeconds *int32 `json:"maxProtectSeconds,omitempty"`
}

func setDefaultsPreemption(p *Preemption) {
	setDefault(&p.MaxUnsavedSeconds, 24*3600)
	setDefault(&p.MaxRestartSeconds, 1800)
	setDefault(&p.MaxProtectSeconds, 1800)
}

func validatePreemption(path *field.Path, p *Preemption) field.ErrorList {
	return slices.Concat(
		validateRange(path.Child("maxUnsavedSeconds"), p.MaxUnsavedSeconds, 0, 30*24*3600),
		validateRange(path.Child("maxRestartSeconds"), p.MaxRestartSeconds, 0, 24*3600),
		validateRange(path.Child("maxProtectSeconds"), p.MaxProtectSeconds, 0, 24*3600),
	)
}
