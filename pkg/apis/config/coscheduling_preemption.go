package config

import (
	"time"

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
	// MaxNoticeSeconds is the longest time for which a pod is told before it is evicted, which it asks for in
	// berth.dev/eviction-notice. With 0 no pod is told. From 0 to 3600, default 300.
	MaxNoticeSeconds *int32 `json:"maxNoticeSeconds,omitempty"`
	// Delays are the profiles whose pods evict others only after a while, so that an autoscaler can add nodes instead.
	Delays []PreemptionDelay `json:"delays,omitempty"`
}

// PreemptionDelay is for how long pods of a profile that cannot be placed evict no others.
type PreemptionDelay struct {
	// Profile is the schedulerName of the profile, or "*" for all that are not listed.
	Profile string `json:"profile"`
	// Seconds counts from when the pod, or its whole gang, first did not fit. From 1 to 86400.
	Seconds int32 `json:"seconds"`
}

// Delay is for how long pods of the profile evict no others.
func (p *Preemption) Delay(profile string) time.Duration {
	seconds := int32(0)
	for _, d := range p.Delays {
		switch d.Profile {
		case profile:
			return time.Duration(d.Seconds) * time.Second
		case anyName:
			seconds = d.Seconds
		}
	}
	return time.Duration(seconds) * time.Second
}

func setDefaultsPreemption(p *Preemption) {
	setDefault(&p.MaxUnsavedSeconds, 24*3600)
	setDefault(&p.MaxRestartSeconds, 1800)
	setDefault(&p.MaxProtectSeconds, 1800)
	setDefault(&p.MaxNoticeSeconds, 300)
}

func validatePreemption(path *field.Path, p *Preemption) field.ErrorList {
	var errs field.ErrorList
	errs = append(errs, validateRange(path.Child("maxUnsavedSeconds"), int64(*p.MaxUnsavedSeconds), 0, 30*24*3600)...)
	errs = append(errs, validateRange(path.Child("maxRestartSeconds"), int64(*p.MaxRestartSeconds), 0, 24*3600)...)
	errs = append(errs, validateRange(path.Child("maxProtectSeconds"), int64(*p.MaxProtectSeconds), 0, 24*3600)...)
	errs = append(errs, validateRange(path.Child("maxNoticeSeconds"), int64(*p.MaxNoticeSeconds), 0, 3600)...)
	seen := map[string]bool{}
	for i, d := range p.Delays {
		at := path.Child("delays").Index(i)
		switch {
		case d.Profile == "":
			errs = append(errs, field.Required(at.Child("profile"), `want the schedulerName of a profile, or "*"`))
		case seen[d.Profile]:
			errs = append(errs, field.Duplicate(at.Child("profile"), d.Profile))
		}
		seen[d.Profile] = true
		errs = append(errs, validateRange(at.Child("seconds"), int64(d.Seconds), 1, 24*3600)...)
	}
	return errs
}
