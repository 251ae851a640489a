package wellknown

import (
	"slices"
	"strings"
)

// ownPrefix begins the keys of Berth's own.
const ownPrefix = "berth.dev/"

// ownKeys are all keys with the prefix berth.dev/ that mean anything.
var ownKeys = []string{
	BackfillKey, CheckpointEveryKey, DatasetsKey, DeadlineKey, GangKey, GPUAgentKey,
	GPUAssignedKey,
	GroupKey, GroupLabelKey, GroupsKey,
	GPULinksKey, GPUMemoryMinKey, GPUModeKey,
	GPUInterconnectKey, GPUModelsKey, GPUSharingKey, IPAddressKey, IPPoolKey,
	LastCheckpointKey, LicensesKey,
	MinMembersByRoleKey,
	PricePerHourKey, ProtectForKey, RestartCostKey, RoleKey, RoleLabelKey, RunTimeKey, SchedulerKey,
	SegmentSizeKey, SegmentTopologyKey, SLAClassKey,
	SLOLatencyKey, SLOThroughputKey, SpotKey,
	StandInKey, StartWindowKey,
	TopologyPreferredKey, TopologyRequiredKey,
}

// Own returns the annotations and labels of Berth's own, sorted.
func Own() []string { return slices.Sorted(slices.Values(ownKeys)) }

// Misspelled says whether a key claims to be one of Berth's own and is none, so that nothing would read it.
func Misspelled(key string) bool {
	return strings.HasPrefix(key, ownPrefix) && !slices.Contains(ownKeys, key)
}
