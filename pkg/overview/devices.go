package overview

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"

	"berth.dev/berth/pkg/claimview"
)

// deviceBook holds ResourceSlices and ResourceClaims, which informers may tell of from any goroutine. It counts them
// only when they have changed and the overview is read: a large cluster changes claims many times a second. Devices and
// Allocated are those of the last Count, and of the caller who counts.
type deviceBook struct {
	Devices *claimview.Slices
	// Allocated is what claims hold of them.
	Allocated *structured.AllocatedState

	mu     sync.Mutex
	slices map[string]*resourcev1.ResourceSlice
	claims map[types.UID]*resourcev1.ResourceClaim
	stale  bool // they have changed since they were counted
}

func newDeviceBook(drivers []string) *deviceBook {
	return &deviceBook{Devices: claimview.NoSlices(drivers), stale: true, slices: map[string]*resourcev1.ResourceSlice{},
		claims: map[types.UID]*resourcev1.ResourceClaim{}}
}

// SetSlice notes a ResourceSlice as it is now.
func (b *deviceBook) SetSlice(s *resourcev1.ResourceSlice) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.slices[s.Name], b.stale = s, true
}

// DeleteSlice notes that the ResourceSlice is gone.
func (b *deviceBook) DeleteSlice(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.slices, name)
	b.stale = true
}

// SetClaim notes a ResourceClaim as it is now.
func (b *deviceBook) SetClaim(claim *resourcev1.ResourceClaim) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.claims[claim.UID] != nil || claim.Status.Allocation != nil {
		b.stale = true
	}
	if claim.Status.Allocation == nil {
		delete(b.claims, claim.UID)
		return
	}
	b.claims[claim.UID] = claim
}

// DeleteClaim notes that the ResourceClaim is gone.
func (b *deviceBook) DeleteClaim(uid types.UID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.claims[uid] != nil {
		delete(b.claims, uid)
		b.stale = true
	}
}

// Count reads what has changed, and returns the nodes with such devices.
func (b *deviceBook) Count() sets.Set[string] {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.stale {
		return nil
	}
	b.stale = false
	list := slices.SortedFunc(maps.Values(b.slices), func(x, y *resourcev1.ResourceSlice) int {
		return cmp.Compare(x.Name, y.Name)
	})
	old := b.Devices
	b.Devices, b.Allocated = old.Read(list), allocated(b.claims)
	return sets.New(slices.Collect(b.Devices.Names())...).Insert(b.Devices.Changed(old)...)
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
