package gpu

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSharesByMemoryFillAGPU gives one GPU to as many pods as its memory holds.
func TestSharesByMemoryFillAGPU(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name                 string
		memMiB, shareMiB     int
		milli, pods, leftMiB int
		leftMilli            int
	}{
		{"halves", 15_360, 7_680, 500, 2, 0, 0},
		{"thirds", 15_360, 5_120, 333, 3, 0, 1},
		{"sixths", 15_360, 2_560, 166, 6, 0, 4},
		{"sevenths", 81_920, 11_702, 142, 7, 6, 6},
		{"a little more than halves", 15_360, 7_681, 500, 1, 7_679, 500},
		{"less than a thousandth still counts", 81_920, 1, 1, 1_000, 80_920, 0},
		{"all of it", 15_360, 15_360, 1_000, 1, 0, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			inv := node(1, shared, func(i *Inventory) { i.MemMiB, i.Devices = tc.memMiB, NewDevices(1, tc.memMiB) })
			r := &Request{Count: 1, ShareMemMiB: tc.shareMiB, Shared: true}
			pods := 0
			for ; Fit(inv, r).Cause == Fits; pods++ {
				devices, share, ok := Choose(inv, r)
				if !ok || share != (Share{Milli: tc.milli, MemMiB: tc.shareMiB}) || !inv.Take(devices, share) {
					t.Fatalf("pod %d fits, but Choose = %v, %+v, %v", pods, devices, share, ok)
				}
			}
			left := inv.Devices[0]
			if pods != tc.pods || left.FreeMemMiB != tc.leftMiB || left.FreeMilli != tc.leftMilli {
				t.Errorf("%d pods fit and leave %d MiB and %d milli-GPU, want %d, %d and %d",
					pods, left.FreeMemMiB, left.FreeMilli, tc.pods, tc.leftMiB, tc.leftMilli)
			}
			if inv.FreeWhole() != 0 {
				t.Error("a GPU with shares is taken for a whole one")
			}
		})
	}
}

func TestShapeOf(t *testing.T) {
	t.Parallel()
	for want, r := range map[Shape]*Request{
		{CPUMilli: 8000}: {CPUMilli: 8000},
		{CPUMilli: 1000, Count: 1, Milli: 500, Models: "A|B"}: {CPUMilli: 1000, Count: 1, ShareMemMiB: 8 << 10,
			Models: []string{"A", "B"}},
		{CPUMilli: 2000}: {CPUMilli: 2000, Count: 1, ShareMemMiB: 32 << 10}, // more than any GPU has
		{CPUMilli: 500, Count: 3, Milli: 233, Slices: "nvidia.com/mig-1g.5gb,nvidia.com/mig-3g.20gb"}: {CPUMilli: 500,
			Slices: []SliceCount{
				{Resource: "nvidia.com/mig-1g.5gb", Count: 2, Milli: 140}, {Resource: "nvidia.com/mig-3g.20gb", Count: 1,
					Milli: 420}}},
		{CPUMilli: 500, Count: 2, Milli: 140, Slices: "nvidia.com/mig-1g.5gb"}: {CPUMilli: 500,
			Slices: []SliceCount{{Resource: "nvidia.com/mig-1g.5gb", Count: 2, Milli: 140}}},
	} {
		if diff := cmp.Diff(want, ShapeOf(r, 16<<10)); diff != "" {
			t.Errorf("ShapeOf (-want +got):\n%s", diff)
		}
	}
}
