package gpu

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestProfilesOfEveryGPU holds each profile of the maker's guide against its compute and memory slices, the number that
// fits one GPU, and its part of the GPU's compute.
func TestProfilesOfEveryGPU(t *testing.T) {
	t.Parallel()
	eighths := func(names ...string) map[string][4]int {
		shapes := [][4]int{{1, 1, 7, 142}, {1, 1, 1, 142}, {1, 2, 4, 142}, {2, 2, 3, 285}, {3, 4, 2, 428}, {4, 4, 1, 571},
			{7, 8, 1, 1000}}
		all := map[string][4]int{}
		for i, name := range names {
			all[name] = shapes[i]
		}
		return all
	}
	for model, profiles := range map[string]map[string][4]int{
		"NVIDIA-A100-SXM4-40GB": eighths("1g.5gb", "1g.5gb+me", "1g.10gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb"),
		"NVIDIA-A100-SXM4-80GB": eighths("1g.10gb", "1g.10gb+me", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"),
		"NVIDIA-H100-80GB-HBM3": eighths("1g.10gb", "1g.10gb.me", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"),
		"NVIDIA-H100-NVL":       eighths("1g.12gb", "1g.12gb+me", "1g.24gb", "2g.24gb", "3g.47gb", "4g.47gb", "7g.94gb"),
		"NVIDIA-GH200-96GB":     eighths("1g.12gb", "1g.12gb+me", "1g.24gb", "2g.24gb", "3g.48gb", "4g.48gb", "7g.96gb"),
		"NVIDIA-H20":            eighths("1g.12gb", "1g.12gb+me", "1g.24gb", "2g.24gb", "3g.48gb", "4g.48gb", "7g.96gb"),
		"NVIDIA-H200":           eighths("1g.18gb", "1g.18gb+me", "1g.35gb", "2g.35gb", "3g.71gb", "4g.71gb", "7g.141gb"),
		"NVIDIA-B200":           eighths("1g.23gb", "1g.23gb+me", "1g.45gb", "2g.45gb", "3g.90gb", "4g.90gb", "7g.180gb"),
		"NVIDIA-GB200":          eighths("1g.23gb", "1g.23gb+me", "1g.47gb", "2g.47gb", "3g.93gb", "4g.93gb", "7g.186gb"),
		"NVIDIA-B300":           eighths("1g.34gb", "1g.34gb+me", "1g.67gb", "2g.67gb", "3g.135gb", "4g.135gb", "7g.269gb"),
		"NVIDIA-A30": {
			"1g.6gb": {1, 1, 4, 250}, "1g.6gb+me": {1, 1, 1, 250}, "2g.12gb": {2, 2, 2, 500}, "2g.12gb+me": {2, 2, 1, 500},
			"4g.24gb": {4, 4, 1, 1000},
		},
		"NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition": {
			"1g.24gb": {1, 1, 4, 250}, "1g.24gb+gfx": {1, 1, 4, 250}, "1g.24gb+me.all": {1, 1, 1, 250},
			"1g.24gb-me": {1, 1, 4, 250},
			"2g.48gb":    {2, 2, 2, 500}, "2g.48gb+gfx": {2, 2, 2, 500}, "4g.96gb": {4, 4, 1, 1000},
			"4g.96gb+gfx": {4, 4, 1, 1000},
		},
		"": {"1g.5gb": {1, 1, 7, 142}, "2g.10gb": {2, 2, 3, 285}, "3g.20gb": {3, 4, 2, 428}, "4g.20gb": {4, 4, 1, 571},
			"7g.40gb": {7, 8, 1, 1000}, "1g.6gb": {1, 1, 4, 250}},
	} {
		for name, want := range profiles {
			t.Run(model+" "+name, func(t *testing.T) {
				t.Parallel()
				p, ok := ParseProfile(name, model, 0)
				got := [4]int{p.Compute, p.Memory, p.MostPerGPU(), p.Milli()}
				if diff := cmp.Diff(want, got); diff != "" || !ok {
					t.Errorf("ParseProfile (ok %t): compute, memory slices, most per GPU, milli-GPU (-want +got):\n%s", ok, diff)
				}
				size, _, _ := strings.Cut(strings.SplitN(name, "g.", 2)[1], "gb")
				if nominal := fmt.Sprint(p.MemMiB >> 10); nominal != size {
					t.Errorf("memory is %s GiB, want %s", nominal, size)
				}
			})
		}
	}
}

// TestProfilesFollowTheMemoryThatTheNodeStates reads profiles of GPUs that are sold with several memories.
func TestProfilesFollowTheMemoryThatTheNodeStates(t *testing.T) {
	t.Parallel()
	names := map[int][]string{
		40: {"1g.5gb", "1g.10gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb"},
		64: {"1g.8gb", "1g.16gb", "2g.16gb", "3g.32gb", "4g.32gb", "7g.64gb"},
		80: {"1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"},
	}
	for _, tc := range []struct {
		model       string
		memMiB, gib int
	}{
		{"NVIDIA-A100-SXM-64GB", 65536, 64},
		{"NVIDIA-A100-SXM-64GB", 0, 64},
		{"NVIDIA-A100-SXM-80GB", 81920, 80},
		{"NVIDIA-A100-SXM-80GB", 0, 80},
		{"NVIDIA-A800-40GB-Active", 40960, 40},
		{"NVIDIA-A800-40GB-Active", 0, 40},
		{"NVIDIA-A800-SXM4-80GB", 0, 80},
		{"NVIDIA-A100", 81920, 80}, // a name that says nothing of the memory
		{"NVIDIA-A100", 65299, 64}, // as the driver counts
		{"a100", 40536, 40},        // a label of the user's
		{"NVIDIA-A100-New", 0, 40}, // what the product has
		{"NVIDIA-Z100", 81559, 80}, // an unknown product
	} {
		for i, want := range []int{1, 2, 2, 4, 4, 8} {
			name := names[tc.gib][i]
			if p, ok := ParseProfile(name, tc.model, tc.memMiB); !ok || p.Memory != want {
				t.Errorf("%s of %s with %d MiB has %d memory slices (%t), want %d", name, tc.model, tc.memMiB, p.Memory, ok, want)
			}
		}
	}
}

func TestProfilesThatAreNone(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "1g", "g.5gb", "0g.5gb", "8g.5gb", "1g.0gb", "1g.5gbme", "1g.-5gb", "1c.2g.10gb",
		"1g.99999999999gb"} {
		if p, ok := ParseProfile(name, "", 0); ok {
			t.Errorf("ParseProfile(%q) = %+v, want none", name, p)
		}
	}
}

// slicedNode is a node of GPUs cut into three 2g.10gb and one 1g.5gb each, with some free.
func slicedNode(gpus, free2g, free1g int) *Inventory {
	small, _ := ParseProfile("1g.5gb", "NVIDIA-A100-SXM4-40GB", 0)
	middle, _ := ParseProfile("2g.10gb", "NVIDIA-A100-SXM4-40GB", 0)
	return &Inventory{Replicas: 1, Model: "NVIDIA-A100-SXM4-40GB", MemMiB: 40960, SlicedGPUs: gpus, Slices: []SliceCount{
		{Resource: "1g", Count: free1g, Total: gpus, Milli: small.Milli(), Profile: small},
		{Resource: "2g", Count: free2g, Total: 3 * gpus, Milli: middle.Milli(), Profile: middle},
	}}
}

func TestFreeSlicesAreWhatIsLeftOfTheGPUs(t *testing.T) {
	t.Parallel()
	seventh, _ := ParseProfile("1g.5gb", "", 0)
	for _, tc := range []struct {
		name              string
		gpus, free, total int
		milli, want       int
		geometry          Profile
	}{
		{"all slices of a GPU are the GPU", 1, 7, 7, 142, 1000, seventh},
		{"what the slices in use leave", 1, 4, 7, 142, 4 * 142, seventh},
		{"slices in use fill the GPU", 1, 3, 10, 142, 1000 - 7*142, seventh},
		{"GPUs of unknown number, nothing in use", 0, 3, 3, 250, 750, Profile{}},
		{"GPUs of unknown number, some in use", 0, 2, 3, 250, 500, Profile{}},
		{"GPUs of unknown number, all in use", 0, 0, 3, 250, 0, Profile{}},
	} {
		inv := &Inventory{Replicas: 1, SlicedGPUs: tc.gpus, Slices: []SliceCount{
			{Resource: "s", Count: tc.free, Total: tc.total, Milli: tc.milli, Profile: tc.geometry},
		}}
		if got := inv.FreeSlicedMilli(); got != tc.want {
			t.Errorf("%s: %d milli-GPU, want %d", tc.name, got, tc.want)
		}
	}
}

func TestSlicesAreNoGPUs(t *testing.T) {
	t.Parallel()
	inv := slicedNode(8, 24, 8)
	if part := PartOf(inv); part.IdleMilli != 0 || part.UsedMilli != 0 || part.Headroom.GPUs != 0 {
		t.Errorf("eight GPUs in slices contribute %+v, want nothing for whole GPUs", part)
	}
	if score, _ := inv.bestFree(2, false); score != 0 {
		t.Errorf("slices are linked with score %d", score)
	}
	r := Request{Resource: "nvidia.com/gpu", Count: 1, Milli: 1000}
	if reason := Fit(inv, &r); reason.Cause != NoGPU {
		t.Errorf("a whole GPU on slices: %q, want none there", reason)
	}
	r = Request{Slices: []SliceCount{{Resource: "2g", Count: 1}}, MinMemMiB: 20 << 10}
	if reason := Fit(inv, &r); reason.Cause != GPUMemory || reason.Have != 10<<10 {
		t.Errorf("20 GiB of a slice of 10: %q, want too little memory", reason)
	}
}

func FuzzParseProfile(f *testing.F) {
	for _, seed := range []string{"1g.5gb", "1g.10gb+me", "2g.12gb.me", "7g.40gb", "1g.24gb+gfx", "1c.2g.10gb", "9g.9gb"} {
		f.Add(seed, "NVIDIA-A30", 0)
		f.Add(seed, "", 40960)
	}
	f.Fuzz(func(t *testing.T, name, model string, memMiB int) {
		p, ok := ParseProfile(name, model, memMiB)
		if !ok {
			return
		}
		if p.Milli() < 1 || p.Milli() > WholeMilli || p.takenMilli() > WholeMilli || p.MostPerGPU() < 1 ||
			p.Memory > p.MemorySlices {
			t.Fatalf("ParseProfile(%q, %q, %d) = %+v out of range", name, model, memMiB, p)
		}
	})
}
