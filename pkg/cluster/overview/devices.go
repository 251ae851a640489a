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

// deviceBook holds ResourceSlices, and ResourceClaims with an allocation. It counts them only when they have changed
// and the overview is read: a large cluster changes claims many times a second. Devices and Allocated are those of the
// last Count.
type deviceBook struct {
	Devices *claimview.Slices
	// Allocated is what claims hold of them.
	Allocated *structured.AllocatedState
	// heldMilli is what pods have of GPUs by their claims. One that several pods share counts for each in equal parts.
	heldMilli map[types.UID]int64

	slices map[string]*resourcev1.ResourceSlice
	claims map[types.UID]*resourcev1.ResourceClaim
	stale  bool // they have changed since they were counted
}

func newDeviceBook(drivers []string) *deviceBook {
	return &deviceBook{Devices: claimview.NoSlices(drivers), stale: true, slices: map[string]*resourcev1.ResourceSlice{},
		claims: map[types.UID]*resourcev1.ResourceClaim{}}
}

func (b *deviceBook) deleteClaim(uid types.UID) {
	if b.claims[uid] != nil {
		delete(b.claims, uid)
		b.stale = true
	}
}

// Count reads what has changed, and returns the nodes that have such devices, or had them before.
func (b *deviceBook) Count() sets.Set[string] {
	if !b.stale {
		return nil
	}
	b.stale = false
	list := slices.SortedFunc(maps.Values(b.slices), func(x, y *resourcev1.ResourceSlice) int {
		return cmp.Compare(x.Name, y.Name)
	})
	old := b.Devices
	b.Devices, b.Allocated, b.heldMilli = old.Read(list), allocated(b.claims), map[types.UID]int64{}
	for _, c := range b.claims {
		_, requested := c.Annotations[resourcev1.ExtendedResourceClaimAnnotation]
		if requested || len(c.Status.ReservedFor) == 0 {
			continue // one that stands for requests of a pod is counted as these
		}
		each := b.Devices.MilliOf(c) / int64(len(c.Status.ReservedFor))
		for _, holder := range c.Status.ReservedFor {
			b.heldMilli[holder.UID] += each
		}
	}
	return sets.New(slices.Collect(b.Devices.Names())...).Insert(slices.Collect(old.Names())...)
}

// allocated is what claims hold.
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
