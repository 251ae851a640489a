package kubeview

import "slices"

// ownKeys are all keys with the prefix berth.dev/ that mean anything.
var ownKeys = []string{
	"berth.dev/backfill", DeadlineKey, GPULinksKey, GPUMemoryMinKey, GPUModeKey, GPUInterconnectKey, GPUModelsKey, GPUSharingKey,
	GPUsInUseKey, PricePerHourKey, SpotKey, StartWindowKey, "berth.dev/topology-preferred", "berth.dev/topology-required",
}

// OwnKeys returns the annotations and labels of Berth's own, sorted.
func OwnKeys() []string { return slices.Sorted(slices.Values(ownKeys)) }
