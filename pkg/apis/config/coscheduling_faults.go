package config

import "k8s.io/apimachinery/pkg/util/validation/field"

// Faults says what is done for gangs that have started and whose members are on hardware that fails: on a node with the
// taint of an interruption or of an autoscaler that takes it away, or with a GPU that the kubelet or the node agent
// calls unhealthy.
type Faults struct {
	// KeepSeconds is how long room for the replacements of such members is kept beside the rest of their gang. From 0 (not
	// at all, and nothing is evicted) to 3600, default 300.
	KeepSeconds *int32 `json:"keepSeconds,omitempty"`
	// EvictionsPerHour is how many such members may be evicted in an hour, all of a gang together and only while room for
	// all is kept. From 0 (none) to 10000, default 0.
	EvictionsPerHour *int32 `json:"evictionsPerHour,omitempty"`
}

func setDefaultsFaults(f *Faults) {
	setDefault(&f.KeepSeconds, 300)
	setDefault(&f.EvictionsPerHour, 0)
}

func validateFaults(path *field.Path, f *Faults) field.ErrorList {
	return append(validateRange(path.Child("keepSeconds"), int64(*f.KeepSeconds), 0, 3600),
		validateRange(path.Child("evictionsPerHour"), int64(*f.EvictionsPerHour), 0, 10000)...)
}
