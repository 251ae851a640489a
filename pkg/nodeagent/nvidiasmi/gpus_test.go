package nvidiasmi

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func uuid(i int) string {
	return fmt.Sprintf("GPU-%08x-1c2d-4e5f-8a9b-%012x", 0x5d5ba0d0+i, 0x9e3d8d2b8a70+i)
}

func TestTheGPUsOfEachMachineAreRead(t *testing.T) {
	t.Parallel()
	var eight []GPU
	for i := range 8 {
		eight = append(eight, GPU{Index: i, UUID: uuid(i), Name: "NVIDIA A100-SXM4-80GB", MemMiB: 81920})
	}
	for name, want := range map[string][]GPU{
		"8-a100": eight,
		"old-driver": {
			{Index: 0, UUID: uuid(0), Name: "Tesla V100-SXM2-16GB", MemMiB: 16160},
			{Index: 1, UUID: uuid(1), Name: "Tesla V100-SXM2-16GB", MemMiB: 16160},
		},
		"one-lost": {
			{Index: 0, UUID: uuid(0), Name: "NVIDIA H100 80GB HBM3", MemMiB: 81559},
			{Index: 1, UUID: uuid(1), Name: "NVIDIA H100 80GB HBM3", Fault: "GPU is lost"},
			{Index: 2, UUID: uuid(2), Name: "NVIDIA H100 80GB HBM3", MemMiB: 81559, Fault: "row remap failure"},
			{Index: 3, UUID: uuid(3), Fault: "Unknown Error"},
		},
		"h200": {{Index: 0, UUID: uuid(0), Name: "NVIDIA H200", MemMiB: 143771}},
		"recovery": {
			{Index: 0, UUID: uuid(0), Name: "NVIDIA H200", MemMiB: 143771, Fault: "needs recovery: Reset"},
			{Index: 1, UUID: uuid(1), Name: "NVIDIA H200", MemMiB: 143771, Fault: "needs recovery: Drain and Reset"},
			{Index: 2, UUID: uuid(2), Name: "NVIDIA H200", MemMiB: 143771, Fault: "row remap failure"},
			{Index: 3, UUID: uuid(3), Name: "NVIDIA H200", MemMiB: 143771},
		},
		"no-remap": {{Index: 0, UUID: uuid(0), Name: "Tesla T4", MemMiB: 15360}},
		"mig": {
			{Index: 0, UUID: uuid(0), Name: "NVIDIA A100-SXM4-40GB", MemMiB: 40960, MIG: true},
			{Index: 1, UUID: uuid(1), Name: "NVIDIA A100-SXM4-40GB", MemMiB: 40960},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := parseGPUs(testdata(t, "gpus-"+name+".csv"))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("GPUs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAListOfGPUsThatMakesNoSenseIsRefused(t *testing.T) {
	t.Parallel()
	good := "0, " + uuid(0) + ", Tesla T4, 15360\n"
	for name, tc := range map[string]struct{ text, want string }{
		"an error of the driver": {"NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n",
			"want 4, 6 or 7"},
		"an error among the values": {good + "Unable to determine the device handle for GPU0000:3B:00.0: Unknown Error\n",
			"wrong number of fields"},
		"an index out of range": {"64, " + uuid(0) + ", Tesla T4, 15360\n", "want a number from 0 to 63"},
		"no UUID":               {"0, [N/A], Tesla T4, 15360\n", "UUID"},
		"no memory":             {"0, " + uuid(0) + ", Tesla T4, much\n", "want a number of MiB"},
		"no name":               {"0, " + uuid(0) + ", , 15360\n", "want 1 to 96 characters"},
		"no word of recovery":   {"0, " + uuid(0) + ", Tesla T4, 15360, Disabled, No, <reset>\n", "recovery action"},
		"a GPU twice":           {good + "1, " + uuid(0) + ", Tesla T4, 15360\n", "listed twice"},
		"too many":              {strings.Repeat(good, 65), "at most 64"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := parseGPUs(tc.text); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
		})
	}
}

func TestSlicesBelongToTheGPUAboveThem(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]map[string]int{
		"mig":     {"MIG-c6d4f1ef-42e4-5de3-91c7-45d71c87eb3f": 0, "MIG-cba663e8-9bed-5b25-b243-5985ef7c9beb": 0},
		"old-mig": {"MIG-" + uuid(0) + "/7/0": 0},
	} {
		got, err := parseList(testdata(t, "list-"+name+".txt"))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("slices of %s (-want +got):\n%s", name, diff)
		}
	}
	for _, text := range []string{"  MIG 1g.5gb Device 0: (UUID: MIG-c6d4f1ef)\n",
		"Unable to determine the device handle\n"} {
		if got, err := parseList(text); err == nil {
			t.Errorf("%q was read as %v", text, got)
		}
	}
}

func FuzzGPUs(f *testing.F) {
	for _, name := range []string{"8-a100", "old-driver", "one-lost", "no-remap", "mig", "h200", "recovery"} {
		f.Add(testdata(f, "gpus-"+name+".csv"))
	}
	f.Fuzz(func(t *testing.T, text string) {
		gpus, err := parseGPUs(text)
		if err != nil {
			return
		}
		for i, g := range gpus {
			if g.Index < 0 || g.Index >= maxGPUs || g.UUID == "" || g.MemMiB < 0 || i > 0 && g.Index <= gpus[i-1].Index {
				t.Fatalf("GPU %+v", g)
			}
		}
	})
}

func FuzzList(f *testing.F) {
	f.Add(testdata(f, "list-mig.txt"))
	f.Add(testdata(f, "list-old-mig.txt"))
	f.Fuzz(func(t *testing.T, text string) {
		slices, err := parseList(text)
		if err != nil {
			return
		}
		for uuid, index := range slices {
			if uuid == "" || index < 0 || index > 99 {
				t.Fatalf("slice %q of GPU %d", uuid, index)
			}
		}
	})
}
