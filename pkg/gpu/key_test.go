package gpu

import "testing"

func TestInventoriesThatDifferHaveDifferentKeys(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for name, change := range map[string]func(*Inventory){
		"as it is":         func(*Inventory) {},
		"mode":             func(inv *Inventory) { inv.Mode = ModeShared },
		"resource":         func(inv *Inventory) { inv.Resource = "amd.com/gpu" },
		"unlisted":         func(inv *Inventory) { inv.Agent = AgentUnlisted },
		"model":            func(inv *Inventory) { inv.Model = "H100" },
		"generation":       func(inv *Inventory) { inv.Generation = 90 },
		"memory":           func(inv *Inventory) { inv.MemMiB++ },
		"replicas":         func(inv *Inventory) { inv.Replicas = 2 },
		"free replicas":    func(inv *Inventory) { inv.FreeReplicas = 3 },
		"an agent":         func(inv *Inventory) { inv.Agent = AgentDeclared },
		"registered":       func(inv *Inventory) { inv.Agent = AgentRegistered },
		"whole GPUs held":  func(inv *Inventory) { inv.WholeInUse = true },
		"shares held":      func(inv *Inventory) { inv.SharesInUse = true },
		"index known":      func(inv *Inventory) { inv.IndexKnown = true },
		"leaving":          func(inv *Inventory) { inv.Leaving = "taint" },
		"free CPU":         func(inv *Inventory) { inv.FreeCPUMilli++ },
		"CPU":              func(inv *Inventory) { inv.CPUMilli++ },
		"one device less":  func(inv *Inventory) { inv.Devices = inv.Devices[1:] },
		"first taken":      func(inv *Inventory) { inv.Devices[0].FreeMilli = 0 },
		"second taken":     func(inv *Inventory) { inv.Devices[1].FreeMilli = 0 },
		"first's memory":   func(inv *Inventory) { inv.Devices[0].FreeMemMiB-- },
		"first unhealthy":  func(inv *Inventory) { inv.Devices[0].Unhealthy = true },
		"a slice":          func(inv *Inventory) { inv.Slices = []SliceCount{{Resource: "mig", Count: 1, Milli: 500}} },
		"two slices":       func(inv *Inventory) { inv.Slices = []SliceCount{{Resource: "mig", Count: 2, Milli: 500}} },
		"no links":         func(inv *Inventory) { inv.Links = nil },
		"links, all alike": func(inv *Inventory) { inv.Links = Mesh(4) },
		"one link better": func(inv *Inventory) {
			links, err := NewLinks(4, []Pair{{0, 1, Link{Score: 100, NVLink: true}}})
			if err != nil {
				t.Fatal(err)
			}
			inv.Links = links
		},
	} {
		plain, err := NewLinks(4, nil)
		if err != nil {
			t.Fatal(err)
		}
		inv := &Inventory{
			Resource: "nvidia.com/gpu", Model: "A100", Generation: 80, MemMiB: 81920, Replicas: 1, Devices: NewDevices(4, 81920),
			Links: plain, FreeCPUMilli: 64_000, CPUMilli: 96_000,
		}
		change(inv)
		key := string(inv.AppendKey(nil))
		if other, ok := seen[key]; ok {
			t.Errorf("inventories that differ by %q and by %q have the same key", name, other)
		}
		seen[key] = name
		if again := string(inv.Clone().AppendKey(nil)); again != key {
			t.Errorf("%s: a copy has another key", name)
		}
	}
}
