package gpu

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// unlikeNode has a GPU of 24 GiB, one of 80 GiB, and another of 24 GiB, in shared mode.
func unlikeNode(change ...func(*Inventory)) *Inventory {
	inv := node(3, shared)
	for i, memMiB := range []int{24 << 10, 80 << 10, 24 << 10} {
		inv.Devices[i].FreeMemMiB, inv.Devices[i].MemMiB = memMiB, memMiB
	}
	for _, c := range change {
		c(inv)
	}
	return inv
}

func byMemory(count, memMiB int) *Request {
	return &Request{Count: count, ShareMemMiB: memMiB, Shared: true}
}

func TestGPUsOfDifferentMemory(t *testing.T) {
	t.Parallel()
	percent := func(milli, count int) *Request { return &Request{Count: count, Milli: milli, Shared: true} }
	for _, tc := range []struct {
		name   string
		inv    *Inventory
		req    *Request
		want   []int
		share  Share
		reason Reason
	}{
		{"a share that only the large one holds", unlikeNode(), byMemory(1, 40_000), []int{1},
			Share{Milli: 488, MemMiB: 40_000}, Reason{}},
		{"a share that a small one holds goes there", unlikeNode(), byMemory(1, 6_144), []int{0},
			Share{Milli: 250, MemMiB: 6_144}, Reason{}},
		{"the same when the small ones are full", unlikeNode(take(1000, 0, 1000)), byMemory(1, 6_144), []int{1},
			Share{Milli: 75, MemMiB: 6_144}, Reason{}},
		{"half of a GPU", unlikeNode(), percent(500, 1), []int{0}, Share{Milli: 500, MemMiB: 12 << 10}, Reason{}},
		{"half of the large one", unlikeNode(take(600, 0, 600)), percent(500, 1), []int{1},
			Share{Milli: 500, MemMiB: 40 << 10}, Reason{}},
		{"shares of two are on GPUs that are alike", unlikeNode(), byMemory(2, 6_144), []int{0, 2},
			Share{Milli: 250, MemMiB: 6_144}, Reason{}},
		{"more than the large one has", unlikeNode(), byMemory(1, 90_000), nil, Share{},
			Reason{Cause: GPUMemory, Need: 90_000, Have: 80 << 10}},
		{"more than is left of it", unlikeNode(take(0, 600)), byMemory(1, 40_000), nil, Share{},
			Reason{Cause: ShareTaken, Need: 40000, Have: 32768, Detail: "MiB"}},
		{"whole GPUs of any memory", unlikeNode(), whole(3), []int{0, 1, 2}, Share{Milli: 1000, MemMiB: 24 << 10}, Reason{}},
		{"a whole GPU of much memory", unlikeNode(), with(whole(1), func(r *Request) { r.MinMemMiB = 40 << 10 }), []int{1},
			Share{Milli: 1000, MemMiB: 80 << 10}, Reason{}},
		{"a share of a GPU of much memory", unlikeNode(),
			with(byMemory(1, 6_144), func(r *Request) { r.MinMemMiB = 40 << 10 }), []int{1},
			Share{Milli: 75, MemMiB: 6_144}, Reason{}},
		{"a whole GPU of more memory than any", unlikeNode(), with(whole(1), func(r *Request) { r.MinMemMiB = 100 << 10 }),
			nil, Share{},
			Reason{Cause: GPUMemory, Need: 100 << 10, Have: 80 << 10}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.reason, Fit(tc.inv, tc.req)); diff != "" {
				t.Errorf("Fit (-want +got):\n%s", diff)
			}
			if tc.reason.Cause != Fits {
				return
			}
			devices, share, ok := Choose(tc.inv, tc.req)
			if diff := cmp.Diff(tc.want, devices); diff != "" || !ok || share != tc.share {
				t.Errorf("Choose = %v, %+v, %v, want %+v (-want +got):\n%s", devices, share, ok, tc.share, diff)
			}
			before := tc.inv.Clone()
			if !tc.inv.Take(devices, share) {
				t.Fatal("what was chosen cannot be taken")
			}
			if tc.req.Whole() && (tc.inv.Devices[devices[0]].FreeMemMiB != 0 || tc.inv.FreeWhole() != 3-len(devices)) {
				t.Errorf("a whole GPU leaves %+v", tc.inv.Devices[devices[0]])
			}
			tc.inv.Give(devices, share)
			if diff := cmp.Diff(before, tc.inv); diff != "" {
				t.Errorf("given back (-want +got):\n%s", diff)
			}
		})
	}
}

func TestGPUsThatAreAlikeAreLookedAtWithoutACopy(t *testing.T) { //nolint:paralleltest // counts allocations
	inv, r := node(8, shared), byMemory(1, 1024)
	if n := testing.AllocsPerRun(10, func() { Fit(inv, r); inv.MostOf(r) }); n > 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

func TestTheMemoryThatServesARequestIsTheSmallestThatHoldsIt(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		inv  *Inventory
		req  *Request
		want int
	}{
		{"a small share", unlikeNode(), byMemory(1, 6_144), 24 << 10},
		{"a large share", unlikeNode(), byMemory(1, 40_000), 80 << 10},
		{"a share of a large GPU", unlikeNode(), with(byMemory(1, 6_144), func(r *Request) { r.MinMemMiB = 40 << 10 }),
			80 << 10},
		{"more than any has", unlikeNode(), byMemory(1, 90_000), 24 << 10},
		{"GPUs that are alike", node(2), byMemory(1, 40_000), 24 << 10},
		{"GPUs of unknown memory", &Inventory{Devices: NewDevices(2, 0)}, byMemory(1, 1), 0},
	} {
		if got := tc.inv.MemoryServing(tc.req); got != tc.want {
			t.Errorf("%s: %d MiB, want %d", tc.name, got, tc.want)
		}
	}
}

func TestGPUsOfDifferentMemoryAreAnotherClass(t *testing.T) {
	t.Parallel()
	other := unlikeNode(func(i *Inventory) { i.Devices[1].MemMiB = 48 << 10 })
	if cmp.Equal(unlikeNode().AppendKey(nil), other.AppendKey(nil)) || cmp.Equal(unlikeNode().AppendPriceKey(nil),
		other.AppendPriceKey(nil)) {
		t.Error("two nodes with GPUs of different memory have one key")
	}
}
