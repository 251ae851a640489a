package wellknown

// Keys of Berth's own.
const (
	// SpotKey is the annotation of a pod that says whether it may, must or must not use spot capacity.
	SpotKey = "berth.dev/spot"
	// SchedulerKey is the taint of nodes that Berth alone serves, and the label of a namespace with the profile that
	// its pods get. The policies of manifests/admission read it.
	SchedulerKey = "berth.dev/scheduler"
	// PricePerHourKey is the annotation of a node that states its price in decimal dollars an hour.
	PricePerHourKey = "berth.dev/price-per-hour"
	// StartWindowKey is the annotation of a pod that names the price window it may start in.
	StartWindowKey = "berth.dev/start-window"
	// DeadlineKey is the annotation of a pod with the time by which it has to end if it declares its run time, else the
	// time after which it waits for no price window.
	DeadlineKey = "berth.dev/deadline"
	// SLAClassKey is the label or the annotation of a pod with the name of its service level.
	SLAClassKey = "berth.dev/sla-class"
	// SLOLatencyKey is the annotation of a pod with the latency, in milliseconds, that its node should not exceed.
	SLOLatencyKey = "berth.dev/slo-latency-ms"
	// SLOThroughputKey is the annotation of a pod with the throughput that its node should reach.
	SLOThroughputKey = "berth.dev/slo-throughput"
)

// RackLabel is the usual label of nodes for their rack.
const RackLabel = "topology.kubernetes.io/rack"

// Keys of Berth's own that concern gangs.
const (
	// GangKey is the annotation that makes a gang of the pods of one controller. It is on the pod template, and its value
	// is "true".
	GangKey = "berth.dev/gang"
	// StandInKey is the annotation of a PodGroup that Berth generated for pods whose labels or owner declare the minimum.
	// Its value is the minMember that Berth wrote.
	StandInKey = "berth.dev/stand-in"
	// MinMembersByRoleKey is the annotation of a PodGroup that says how many members of each role have to start together.
	MinMembersByRoleKey = "berth.dev/min-members-by-role"
	// RoleLabelKey is the annotation of a PodGroup that names the pod label which holds a member's role, RoleKey unless
	// given.
	RoleLabelKey = "berth.dev/role-label"
	// RoleKey is the label of a pod with its role in its group.
	RoleKey = "berth.dev/role"
	// GroupsKey is the annotation of a PodGroup with the groups within the gang: a list in YAML or JSON.
	GroupsKey = "berth.dev/groups"
	// GroupLabelKey is the annotation of a PodGroup that names the pod label which holds a member's group, GroupKey unless
	// given.
	GroupLabelKey = "berth.dev/group-label"
	// GroupKey is the label of a pod with its group within its gang.
	GroupKey = "berth.dev/group"
	// TopologyRequiredKey is the annotation of a PodGroup or a pod with the node labels whose values all members must
	// share: keys, the widest level first, separated by commas.
	TopologyRequiredKey = "berth.dev/topology-required"
	// TopologyPreferredKey is the annotation of a PodGroup or a pod with the node labels whose values all members should
	// share, within what is required: keys, the widest level first, separated by commas.
	TopologyPreferredKey = "berth.dev/topology-preferred"
	// SegmentSizeKey is the annotation of a PodGroup or a pod with the number of consecutive ranks that share a domain of
	// the level that SegmentTopologyKey names.
	SegmentSizeKey = "berth.dev/segment-size"
	// SegmentTopologyKey is the annotation of a PodGroup or a pod with the node label whose value all members of a segment
	// must share.
	SegmentTopologyKey = "berth.dev/segment-topology"
	// BackfillKey is the annotation of a pod or a PodGroup that may run in capacity that is kept for a larger gang, and is
	// evicted when that gang can start. Its value is "allow".
	BackfillKey = "berth.dev/backfill"
	// RunTimeKey is the annotation of a pod or a PodGroup with its expected run time.
	RunTimeKey = "berth.dev/run-time"
	// LastCheckpointKey is the annotation of a pod or a PodGroup with the time at which its work was last saved, in RFC
	// 3339. The job writes it.
	LastCheckpointKey = "berth.dev/last-checkpoint"
	// CheckpointEveryKey is the annotation of a pod or a PodGroup with the time between two checkpoints of its work.
	CheckpointEveryKey = "berth.dev/checkpoint-every"
	// RestartCostKey is the annotation of a pod or a PodGroup with how long it needs to restart after an eviction.
	RestartCostKey = "berth.dev/restart-cost"
	// ProtectForKey is the annotation of a pod or a PodGroup with for how long after its start it is evicted after all
	// others of its priority.
	ProtectForKey = "berth.dev/protect-for"
)

// Keys of Berth's own about fixed addresses.
const (
	// IPPoolKey is the annotation of a pod with the name of the IPPool from which it asks for an address.
	IPPoolKey = "berth.dev/ip-pool"
	// IPAddressKey is the annotation of a pod with the address that the scheduler has reserved for it.
	IPAddressKey = "berth.dev/ip-address"
)

// Keys of Berth's own that placement policies read.
const (
	// LicensesKey is the annotation of a pod with the licenses that it uses while it runs: names with amounts, separated
	// by commas.
	LicensesKey = "berth.dev/licenses"
	// DatasetsKey is the annotation of a pod with the datasets that it reads: names separated by commas.
	DatasetsKey = "berth.dev/datasets"
)
