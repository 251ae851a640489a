package overview

import (
	"cmp"
	"maps"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"

	"berth.dev/berth/pkg/gpu/claimview"
)

// claimedDevices holds ResourceSlices, and ResourceClaims with an allocation. They are counted when the overview is
// read after a change, because claims of a large cluster change many times a second. The first three fields are the
// result of the last count.
type claimedDevices struct {
	devices *claimview.Slices
	// allocated are the devices of claims.
	allocated *structured.AllocatedState
	// claimedMilli are the GPUs of pods by their claims, in thousandths. A claim of several pods counts for each in equal
	// parts.
	claimedMilli map[types.UID]int64

	slices map[string]*resourcev1.ResourceSlice
	claims map[types.UID]*resourcev1.ResourceClaim
	stale  bool // they have changed since they were counted
}

func newClaimedDevices(drivers []string) *claimedDevices {
	return &claimedDevices{devices: claimview.NoSlices(drivers), stale: true,
		slices: map[string]*resourcev1.ResourceSlice{}, claims: map[types.UID]*resourcev1.ResourceClaim{}}
}

func (d *claimedDevices) deleteClaim(uid types.UID) {
	if d.claims[uid] != nil {
		delete(d.claims, uid)
		d.stale = true
	}
}

// count counts devices and claims after a change, and returns the nodes that have such devices, or had them before.
func (d *claimedDevices) count() sets.Set[string] {
	if !d.stale {
		return nil
	}
	d.stale = false
	list := slices.SortedFunc(maps.Values(d.slices), func(x, y *resourcev1.ResourceSlice) int {
		return cmp.Compare(x.Name, y.Name)
	})
	old := d.devices
	d.devices, d.allocated, d.claimedMilli = old.Read(list), allocated(d.claims), map[types.UID]int64{}
	for _, c := range d.claims {
		_, requested := c.Annotations[resourcev1.ExtendedResourceClaimAnnotation]
		if requested || len(c.Status.ReservedFor) == 0 {
			continue // a claim made for an extended resource counts as that request of the pod
		}
		each := d.devices.MilliOf(c) / int64(len(c.Status.ReservedFor))
		for _, pod := range c.Status.ReservedFor {
			d.claimedMilli[pod.UID] += each
		}
	}
	return sets.New(slices.Collect(d.devices.Names())...).Insert(slices.Collect(old.Names())...)
}

// allocated are the devices of claims.
func allocated(claims map[types.UID]*resourcev1.ResourceClaim) *structured.AllocatedState {
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
