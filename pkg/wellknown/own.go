package wellknown

import (
	"slices"
	"strings"
)

// ownPrefix is the prefix of Berth's keys.
const ownPrefix = "berth.dev/"

// Place is where keys are read: in the annotations or the labels of a kind of object.
type Place struct{ Of, In string }

// The values of Place. PodGroup includes the groups of other projects.
const (
	Pods            = "the pods"
	PodGroups       = "the PodGroup"
	Nodes           = "the node"
	PriorityClasses = "the PriorityClass"

	Annotations = "annotations"
	Labels      = "labels"
)

// ownKeys are all keys of Berth by where they are read. Those without a place are labels of namespaces, taints, or
// written by Berth.
var ownKeys = []struct {
	Place
	keys []string
}{
	{Place{Pods, Annotations}, []string{BackfillKey, CheckpointEveryKey, DatasetsKey, DeadlineKey, GangKey,
		GPUInterconnectKey, GPUMemoryMinKey, GPUModelsKey, GPUSharingKey, IPPoolKey, LastCheckpointKey, LicensesKey,
		ProtectForKey, RestartCostKey, RunTimeKey, SegmentSizeKey, SegmentTopologyKey, SLAClassKey, SLOLatencyKey,
		SLOThroughputKey, SpotKey, StartWindowKey, TopologyPreferredKey, TopologyRequiredKey}},
	{Place{Pods, Labels}, []string{GroupKey, RoleKey, SLAClassKey}},
	{Place{PodGroups, Annotations}, []string{BackfillKey, CheckpointEveryKey, GroupLabelKey, GroupsKey,
		LastCheckpointKey, MinMembersByRoleKey, ProtectForKey, RestartCostKey, RoleLabelKey, RunTimeKey, SegmentSizeKey,
		SegmentTopologyKey, TopologyPreferredKey, TopologyRequiredKey}},
	{Place{Nodes, Annotations}, []string{GPULinksKey, PricePerHourKey}},
	{Place{Nodes, Labels}, []string{GPUAgentKey, GPUModeKey}},
	{Place{PriorityClasses, Annotations}, []string{SpotKey}},
	{Place{}, []string{GPUAssignedKey, IPAddressKey, SchedulerKey, StandInKey}},
}

// Own returns Berth's annotations and labels, sorted: those of the kinds of objects, or all.
func Own(carriers ...string) []string {
	var all []string
	for _, read := range ownKeys {
		if len(carriers) == 0 || slices.Contains(carriers, read.Of) {
			all = append(all, read.keys...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Places returns where a key of Berth is read, nil for other keys. An empty Place stands for everywhere.
func Places(key string) []Place {
	var places []Place
	for _, read := range ownKeys {
		if slices.Contains(read.keys, key) {
			places = append(places, read.Place)
		}
	}
	return places
}

// IsOwn reports whether a key has Berth's prefix. Nothing reads such a key if it has no Places.
func IsOwn(key string) bool { return strings.HasPrefix(key, ownPrefix) }
