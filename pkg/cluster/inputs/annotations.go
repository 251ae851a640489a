package inputs

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/wellknown"
)

// placementAnnotations are the annotations that affect placement.
var placementAnnotations = slices.Concat(gpuview.Annotations, read.PodAnnotations(), []string{
	wellknown.SpotKey, wellknown.PricePerHourKey, wellknown.StartWindowKey, wellknown.DeadlineKey, wellknown.SLAClassKey,
	wellknown.SLOLatencyKey, wellknown.SLOThroughputKey, wellknown.LicensesKey, wellknown.DatasetsKey, wellknown.IPPoolKey,
	wellknown.GangKey, wellknown.MinMembersByRoleKey, wellknown.RoleLabelKey, wellknown.GroupsKey,
	wellknown.GroupLabelKey, wellknown.GroupKey, wellknown.TopologyRequiredKey,
	wellknown.TopologyPreferredKey, wellknown.SegmentSizeKey, wellknown.SegmentTopologyKey,
	wellknown.BackfillKey,
	wellknown.RunTimeKey, wellknown.LastCheckpointKey, wellknown.CheckpointEveryKey, wellknown.RestartCostKey,
	wellknown.ProtectForKey, wellknown.StandInKey,
	"cluster-autoscaler.kubernetes.io/scale-down-disabled", "karpenter.sh/do-not-disrupt", podview.EvictableKey,
	v1.MirrorPodAnnotationKey,
	"storageclass.kubernetes.io/is-default-class",
	"storage.alpha.kubernetes.io/migrated-plugins",
	"volume.kubernetes.io/selected-node",
	"pv.kubernetes.io/bind-completed",
	"pv.kubernetes.io/bound-by-controller",
	"resource.kubernetes.io/pod-claim-name",
	"resource.kubernetes.io/extended-resource-claim",
})
