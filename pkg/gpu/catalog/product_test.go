package catalog

import "testing"

func TestAProductIsFoundByItsName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]Product{
		"NVIDIA-A100-SXM4-80GB":        {NVIDIA, 80, 80 << 10, true},
		"NVIDIA-A100-SXM4-40GB":        {NVIDIA, 80, 40 << 10, true},
		"NVIDIA-A100-PCIE-40GB":        {NVIDIA, 80, 40 << 10, false},
		"NVIDIA-A100-80GB-PCIe":        {NVIDIA, 80, 80 << 10, false},
		"NVIDIA-A100-SXM-64GB":         {NVIDIA, 80, 64 << 10, true},
		"A100-SXM-80GB":                {NVIDIA, 80, 80 << 10, true},
		"NVIDIA-A800-40GB-Active":      {NVIDIA, 80, 40 << 10, false},
		"NVIDIA-A800-SXM4-80GB":        {NVIDIA, 80, 80 << 10, true},
		"NVIDIA-B300-SXM6-AC":          {NVIDIA, 103, 288 << 10, true},
		"NVIDIA-H100-80GB-HBM3":        {NVIDIA, 90, 80 << 10, true},
		"NVIDIA-H100-PCIe":             {NVIDIA, 90, 80 << 10, false},
		"Tesla-T4":                     {NVIDIA, 75, 16 << 10, false},
		"Tesla-V100-SXM2-32GB":         {NVIDIA, 70, 32 << 10, false},
		"Tesla-V100-SXM2-16GB":         {NVIDIA, 70, 16 << 10, false},
		"NVIDIA-L40S":                  {NVIDIA, 89, 48 << 10, false},
		"AMD_Instinct_MI300X_OAM":      {AMD, 0, 192 << 10, true},
		"Max_1550":                     {Intel, 0, 128 << 10, false},
		"H100":                         {NVIDIA, 90, 80 << 10, true},
		"NVIDIA-A100-SXM4-40GB-MIG-1g": {NVIDIA, 80, 40 << 10, true},
	} {
		if got, ok := Lookup(name); !ok || got != want {
			t.Errorf("Lookup(%q) = %+v, %v, want %+v", name, got, ok, want)
		}
	}
	for _, name := range []string{"", "NVIDIA-T400", "NVIDIA-RTX-A2000", "G2", "V100M16", "GeForce-RTX-4090"} {
		if got, ok := Lookup(name); ok {
			t.Errorf("Lookup(%q) = %+v, want nothing", name, got)
		}
	}
}
