package kubeview

import (
	"slices"
	"strings"
)

// ownPrefix begins the keys of Berth's own.
const ownPrefix = "berth.dev/"

// ownKeys are all keys with the prefix berth.dev/ that mean anything.
var ownKeys = []string{
	BackfillKey, CordonedForKey, DatasetsKey, DeadlineKey, GangKey, GPUAgentKey, GPUAssignedKey, GPUDevicesKey, GPULinksKey, GPUMemoryMinKey, GPUModeKey,
	GPUInterconnectKey, GPUModelsKey, GPUSharingKey, GPUsInUseKey, GPUsInUseAtKey, IPAddressKey, IPPoolKey, LicensesKey, MinMembersByRoleKey, MixedModelsKey,
	NearKey, PricePerHourKey, RoleKey, RoleLabelKey, SchedulerKey, SLAClassKey, SLOLatencyKey, SLOThroughputKey, SpotKey, StandInKey, StartWindowKey,
	TopologyPreferredKey, TopologyRequiredKey,
}

// OwnKeys returns the annotations and labels of Berth's own, sorted.
func OwnKeys() []string { return slices.Sorted(slices.Values(ownKeys)) }

// MisspeltKey says whether a key claims to be one of Berth's own and is none, so that nothing would read it.
func MisspeltKey(key string) bool {
	return strings.HasPrefix(key, ownPrefix) && !slices.Contains(ownKeys, key)
}
