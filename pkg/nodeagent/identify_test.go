package nodeagent

import (
	"strings"
	"testing"

	"berth.dev/berth/pkg/nodeagent/nvidiasmi"
)

const (
	first  = "GPU-5d5ba0d0-1c2d-4e5f-8a9b-9e3d8d2b8a70"
	second = "GPU-5d5ba0d1-1c2d-4e5f-8a9b-9e3d8d2b8a71"
	slice  = "MIG-c6d4f1ef-42e4-5de3-91c7-45d71c87eb3f"
)

func TestTheNamesOfDevicePluginsMeanGPUs(t *testing.T) {
	t.Parallel()
	// The driver numbers device files in the order in which it finds GPUs, nvidia-smi in that of PCI addresses.
	names := newIdentifier(&hardware{
		gpus:   []nvidiasmi.GPU{{Index: 0, UUID: first}, {Index: 3, UUID: second}},
		slices: map[string]int{slice: 3, "MIG-gone": 7}, minors: map[string]int{first: 3, second: 1, "GPU-gone": 0},
	})
	for name, tc := range map[string]struct {
		id    string
		index int
		known bool
	}{
		"a GPU":                        {first, 0, true},
		"a replica of a GPU":           {second + "::12", 3, true},
		"a split of HAMi":              {second + "-9", 3, true},
		"a slice":                      {slice, 3, true},
		"a replica of a slice":         {slice + "::1", 3, true},
		"a slice of an old driver":     {"MIG-" + first + "/7/0", 0, true},
		"a GPU of GKE":                 {"nvidia3", 0, true},
		"a client of GKE":              {"nvidia1/vgpu1", 3, true},
		"a slice of GKE":               {"nvidia3/gi2", 0, true},
		"a GPU of GKE that is not":     {"nvidia0", 0, false},
		"a device file of no GPU":      {"nvidiactl", 0, false},
		"another GPU":                  {"GPU-00000000-1c2d-4e5f-8a9b-9e3d8d2b8a70", 0, false},
		"another slice":                {"MIG-00000000-42e4-5de3-91c7-45d71c87eb3f", 0, false},
		"a slice of a GPU that is not": {"MIG-gone", 0, false},
		"a PCI address":                {"0000:c1:00.0", 0, false},
		"nothing":                      {"", 0, false},
		"the beginning of a UUID":      {first[:20], 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if index, known := names.index(tc.id); known != tc.known || known && index != tc.index {
				t.Errorf("%q is GPU %d, known %v; want %d, %v", tc.id, index, known, tc.index, tc.known)
			}
		})
	}
}

func FuzzIdentify(f *testing.F) {
	for _, id := range []string{first, second + "::1", slice, "MIG-" + first + "/7/0", "nvidia0/vgpu1", ""} {
		f.Add(id)
	}
	names := newIdentifier(&hardware{
		gpus:   []nvidiasmi.GPU{{Index: 0, UUID: first}, {Index: 3, UUID: second}},
		slices: map[string]int{slice: 3}, minors: map[string]int{first: 0},
	})
	f.Fuzz(func(t *testing.T, id string) {
		index, known := names.index(id)
		if !known {
			return
		}
		if index != 0 && index != 3 {
			t.Fatalf("%q is GPU %d, which is not there", id, index)
		}
		if !strings.Contains(id, "nvidia") && !strings.Contains(id, first[4:]) && !strings.Contains(id, second[4:]) &&
			!strings.Contains(id, slice[4:]) {
			t.Fatalf("%q is GPU %d, and names none", id, index)
		}
	})
}
