package overview

import (
	"cmp"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"

	"berth.dev/berth/pkg/gpu/claimview"
)

// claimedDevices are the devices of ResourceSlices, and what claims have of them.
type claimedDevices struct {
	devices *claimview.Slices
	// allocated are the devices of claims.
	allocated *structured.AllocatedState
	// claimedMilli are the GPUs of pods by their claims, in thousandths. A claim of several pods counts for each in equal
	// parts.
	claimedMilli map[types.UID]int64
}

// countDevices counts the devices of slices, which it sorts, and of claims with an allocation.
func countDevices(drivers []string, list []*resourcev1.ResourceSlice,
	claims []*resourcev1.ResourceClaim) claimedDevices {
	slices.SortFunc(list, func(x, y *resourcev1.ResourceSlice) int { return cmp.Compare(x.Name, y.Name) })
	d := claimedDevices{devices: claimview.NoSlices(drivers).Read(list), allocated: allocated(claims),
		claimedMilli: map[types.UID]int64{}}
	for _, c := range claims {
		_, requested := c.Annotations[resourcev1.ExtendedResourceClaimAnnotation]
		if requested || len(c.Status.ReservedFor) == 0 {
			continue // a claim made for an extended resource counts as that request of the pod
		}
		each := d.devices.MilliOf(c) / int64(len(c.Status.ReservedFor))
		for _, pod := range c.Status.ReservedFor {
			d.claimedMilli[pod.UID] += each
		}
	}
	return d
}

// allocated are the devices of claims.
func allocated(claims []*resourcev1.ResourceClaim) *structured.AllocatedState {
	state := &structured.AllocatedState{AllocatedDevices: sets.New[structured.DeviceID](),
		AggregatedCapacity: structured.NewConsumedCapacityCollection()}
	for _, c := range claims {
		for i := range c.Status.Allocation.Devices.Results {
			r := &c.Status.Allocation.Devices.Results[i]
			id := structured.MakeDeviceID(r.Driver, r.Pool, r.Device)
			switch {
			case ptr.Deref(r.AdminAccess, false):
			case r.ShareID == nil:
				state.AllocatedDevices.Insert(id)
			case r.ConsumedCapacity != nil:
				state.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(id, r.ConsumedCapacity))
			}
		}
	}
	return state
}
