package wellknown

import (
	"slices"
	"strings"
)

// ownPrefix begins the keys of Berth's own.
const ownPrefix = "berth.dev/"

// Place is where keys stand: in the annotations or the labels of a kind of object.
type Place struct{ Of, In string }

// What carries keys of Berth's own. PodGroups stand for the groups of other projects, too.
const (
	Pods            = "the pods"
	PodGroups       = "the PodGroup"
	Nodes           = "the node"
	PriorityClasses = "the PriorityClass"

	Annotations = "annotations"
	Labels      = "labels"
)

// ownKeys are all keys with the prefix berth.dev/ that mean anything, by where they are read. Those without a place
// are labels of namespaces, taints, or what Berth writes itself.
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

// Own returns the annotations and labels of Berth's own, sorted: those that are read of some kind of object, or all.
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

// Places are where a key of Berth's own is read, none for other keys; an empty place stands for everywhere.
func Places(key string) []Place {
	var places []Place
	for _, read := range ownKeys {
		if slices.Contains(read.keys, key) {
			places = append(places, read.Place)
		}
	}
	return places
}

// IsOwn says whether a key claims to be one of Berth's own. Nothing reads those that have no place.
func IsOwn(key string) bool { return strings.HasPrefix(key, ownPrefix) }
