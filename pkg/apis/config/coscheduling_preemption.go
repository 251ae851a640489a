package config

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Preemption says what counts when victims are chosen among pods of one priority: the work that an eviction loses, and
// what pods may ask for. What the first profile says counts for all.
type Preemption struct {
	// MaxUnsavedSeconds is the longest time of work that counts as lost with a pod, however long ago it was saved. With 0
	// work does not count: the fewest pods go. From 0 to 2592000, default 86400.
	MaxUnsavedSeconds *int32 `json:"maxUnsavedSeconds,omitempty"`
	// MaxRestartSeconds is the longest time that a pod may declare to need to come back, in berth.dev/restart-cost. From 0
	// to 86400, default 1800.
	MaxRestartSeconds *int32 `json:"maxRestartSeconds,omitempty"`
	// MaxProtectSeconds is the longest time after its start in which a pod is the last of its priority to go, which it
	// asks for in berth.dev/protect-for. From 0 to 86400, default 1800.
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
