package gpu

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// one weight only, so that a test sees one term.
func only(set func(*Weights)) Weights {
	var w Weights
	set(&w)
	return w
}

// fleet is the supply of these nodes.
func fleet(nodes ...*Inventory) *Supply {
	s := &Supply{}
	for _, n := range nodes {
		s.Replace(Part{}, PartOf(n))
	}
	return s
}

func used(inv *Inventory) { inv.InUse = true }

// assess is the waste of placing the request on a node that it fits.
func assess(j *Judge, inv *Inventory, r *Request, at Placement) Waste {
	c := j.Change(inv, r, at)
	return j.Price(&c)
}

func TestWaste(t *testing.T) {
	t.Parallel()
	capacity := Capacity{"NVIDIA-A10": {GPUs: 16}, "Other": {GPUs: 16}}
	demand := func(shapes ...Shape) *Demand { return NewDemand(mixOf(1000, shapes...), capacity, 0) }
	twos := demand(Shape{Count: 2, Milli: WholeMilli})
	eights := demand(Shape{Count: 8, Milli: WholeMilli}, Shape{Count: 1, Milli: WholeMilli})
	onlyEights := demand(Shape{Count: 8, Milli: WholeMilli})
	confined := NewDemand(Given([]Portion{{Shape: Shape{Count: 1, Milli: WholeMilli}, Fraction: 1},
		{Shape: Shape{Count: 1, Milli: WholeMilli, Models: "NVIDIA-A10"}, Fraction: 1}}), capacity, 0)
	packing := only(func(w *Weights) { w.Packing = 1 })
	paired := func(inv *Inventory) { inv.Links = pairsOf(t, 4) }
	half := node(2, used, take(WholeMilli))
	hosts, opening, scarcity := only(func(w *Weights) { w.Hosts = 1 }), only(func(w *Weights) { w.Opening = 350 }),
		only(func(w *Weights) { w.Scarcity = 1000 })
	for _, tc := range []struct {
		name    string
		weights Weights
		demand  *Demand
		supply  *Supply
		inv     *Inventory
		req     *Request
		at      Placement
		want    float64
	}{
		{"a node without GPUs wastes none", DefaultWeights(), eights, nil, &Inventory{}, &Request{CPUMilli: 1000},
			Placement{}, 0},
		{"packing is the growth of what is stranded", packing, twos, nil, node(4), whole(1), Placement{}, 1000},
		{"packing can be a gain", packing, twos, nil, node(4, take(1000)), whole(1), Placement{}, -1000},
		{"an unknown mix packs nothing", packing, NewDemand(mixOf(1, Shape{Count: 2, Milli: WholeMilli}), nil, 0), nil,
			node(4), whole(1), Placement{}, 0},
		{"best-fit counts CPU and GPU left", only(func(w *Weights) { w.BestFit = 30 }), nil, nil,
			node(5), with(whole(1), func(r *Request) { r.CPUMilli = 32_000 }), Placement{}, 30 * (0.5*0.25 + 0.5*0.5)},
		{"opening an empty node while half of the GPUs in use are idle", opening, eights, fleet(half, node(8)),
			node(8), whole(1), Placement{}, 175},
		{"opening a small one", opening, eights, fleet(half), node(1), whole(1), Placement{}, 175. / 4},
		{"opening one when those in use are full", opening, eights, fleet(node(2, used, take(1000, 1000)), node(8)),
			node(8), whole(1), Placement{}, 0},
		{"opening the first", opening, eights, fleet(node(8)), node(8), whole(1), Placement{}, 0},
		{"a node that is in use is open", opening, eights, fleet(half), node(8, used), whole(1), Placement{}, 0},
		{"the only place for eight GPUs", hosts, onlyEights, fleet(node(8)), node(8), whole(1), Placement{},
			8000 * 0.5},
		{"one of a hundred", hosts, onlyEights, func() *Supply {
			s := &Supply{}
			for range 100 {
				s.Replace(Part{}, Part{Headroom: Headroom{GPUs: 8}, IdleMilli: 80})
			}
			return s
		}(), node(8), whole(1), Placement{}, 0},
		{"a node that is no such place any more", hosts, onlyEights, fleet(node(8)), node(8, take(1000)),
			whole(1), Placement{}, 0},
		{"a scarce model", scarcity, confined, nil, node(8), whole(2), Placement{}, 2000},
		{"a pod that accepts no other may take it", scarcity, confined, nil, node(8),
			with(whole(2), func(r *Request) { r.Models = []string{"NVIDIA-A10"} }), Placement{}, 0},
		{"an unknown model is not scarce", scarcity, confined, nil, node(8, func(i *Inventory) { i.Model = "C" }), whole(2),
			Placement{}, 0},
		{"links that are missed", only(func(w *Weights) { w.Links = 1 }), nil, nil, node(8),
			with(whole(2), func(r *Request) { r.Interconnect = InterconnectPreferred }), Placement{}, 2000 * 0.96},
		{"a pod that asks for no links misses none that the node does not have", only(func(w *Weights) { w.Links = 1 }), nil,
			nil, node(8), whole(2), Placement{}, 0},
		{"a pod that asks for no links misses a fifth of those that are taken", only(func(w *Weights) { w.Links = 1 }), nil,
			nil, node(4, shared, paired, take(1000, 0, 1000)), whole(2), Placement{}, 2000 * 0.96 * 0.2},
		{"a more capable GPU than others", only(func(w *Weights) { w.Capability = 50 }), nil, nil, node(8), whole(2),
			Placement{}, 100 * (24. / 80) * (86. / 90)},
		{"a busy GPU", only(func(w *Weights) { w.Utilization = 50 }), nil, nil, node(8, shared), share(500),
			Placement{BusyMilli: 500}, 25},
		{"a pod that keeps off GPUs", Weights{}, nil, nil, node(8),
			&Request{AvoidsGPUNode: true}, Placement{}, 4000},
		{"time slices count as parts", only(func(w *Weights) { w.BestFit = 30 }), nil, nil,
			node(2, sliced(5), func(i *Inventory) { i.FreeCPUMilli = 0 }), whole(1),
			Placement{}, 30 * 0.5 * 0.125},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			supply := tc.supply
			if supply == nil {
				supply = &Supply{}
			}
			j := NewJudge(tc.weights, false, tc.demand, supply, tc.req)
			if got := assess(j, tc.inv, tc.req, tc.at).Sum(); math.Abs(got-tc.want) > 1e-6 {
				t.Errorf("waste = %v, want %v", got, tc.want)
			}
		})
	}
	t.Run("spreading prefers the emptiest", func(t *testing.T) {
		t.Parallel()
		j := NewJudge(packing, true, twos, &Supply{}, whole(1))
		if got := assess(j, node(4, take(1000)), whole(1), Placement{}).Sum(); got != 500 {
			t.Errorf("waste = %v, want 500", got)
		}
	})
}

func TestWhatARareModelCostsOthersIsBounded(t *testing.T) {
	t.Parallel()
	free, t4 := Shape{Count: 1, Milli: WholeMilli}, Shape{Count: 1, Milli: WholeMilli, Models: "T4"}
	d := NewDemand(Given([]Portion{{Shape: free, Fraction: 1}, {Shape: t4, Fraction: 1}}),
		Capacity{"T4": {GPUs: 1}, "H100": {GPUs: 10_000}}, 0)
	if got := d.scarcity("T4", d.lowestPressure(&Request{})); got != maxPressure {
		t.Errorf("scarcity = %v, want %v", got, maxPressure)
	}
	one := NewDemand(mixOf(1, append(slices.Repeat([]Shape{free}, 16), t4)...),
		Capacity{"T4": {GPUs: 8}, "H100": {GPUs: 8}}, 0)
	if got := one.pressure["T4"]; got != 1 {
		t.Errorf("one pod of seventeen presses on its model with %v, want 1 as on any: it may be chance", got)
	}
}

// TestSupplyIsTheSumOverNodes replaces parts at random: the supply is always what a count of all nodes gives.
func TestSupplyIsTheSumOverNodes(t *testing.T) {
	t.Parallel()
	pods := []Size{{GPUs: 1, CPUMilli: 2000}, {GPUs: 2, CPUMilli: 4000}, {GPUs: 8}}
	rapid.Check(t, func(t *rapid.T) {
		var s Supply
		parts := make([]Part, 4)
		for range rapid.IntRange(1, 30).Draw(t, "changes") {
			at := rapid.IntRange(0, len(parts)-1).Draw(t, "node")
			inv := node(rapid.IntRange(0, 8).Draw(t, "gpus"))
			inv.Model = rapid.SampledFrom([]string{"A", "b", "B"}).Draw(t, "model")
			for i := range inv.Devices {
				inv.Devices[i].FreeMilli = 500 * rapid.IntRange(0, 2).Draw(t, "free")
			}
			inv.FreeCPUMilli = 1000 * rapid.Int64Range(-1, 9).Draw(t, "cpu")
			now := PartOf(inv)
			s.Replace(parts[at], now)
			parts[at] = now
			s.hostsFor(pods[:rapid.IntRange(0, len(pods)).Draw(t, "sizes")])
		}
		var again Supply
		for _, p := range parts {
			again.Replace(Part{}, p)
		}
		s.hostsFor(pods)
		again.hostsFor(pods)
		if diff := cmp.Diff(again, s, cmp.AllowUnexported(Supply{}), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("supply (-sum +got):\n%s", diff)
		}
	})
}

// TestAssessIsSafe assesses any request on any inventory: the waste is a number and the inventory stays as it is.
func TestAssessIsSafe(t *testing.T) {
	t.Parallel()
	d := NewDemand(mixOf(100, Shape{CPUMilli: 4000, Count: 1, Milli: 500}), Capacity{"NVIDIA-A10": {GPUs: 8}}, 8)
	rapid.Check(t, func(t *rapid.T) {
		inv := node(rapid.IntRange(0, 40).Draw(t, "gpus"))
		for i := range inv.Devices {
			inv.Devices[i].FreeMilli = rapid.IntRange(0, WholeMilli).Draw(t, "free")
		}
		inv.Replicas = rapid.IntRange(1, 8).Draw(t, "replicas")
		inv.FreeReplicas = rapid.IntRange(0, 8*len(inv.Devices)).Draw(t, "freeReplicas")
		r := &Request{Count: rapid.IntRange(0, 70).Draw(t, "count"), Milli: rapid.IntRange(0, WholeMilli).Draw(t, "milli"),
			ShareMemMiB: rapid.IntRange(0, 100_000).Draw(t, "mem"), CPUMilli: rapid.Int64Range(0, 1<<40).Draw(t, "cpu")}
		before := inv.Clone()
		w := assess(NewJudge(DefaultWeights(), false, d, fleet(node(8)), r), inv, r, Placement{}).Sum()
		if math.IsNaN(w) || math.IsInf(w, 0) {
			t.Fatalf("waste = %v", w)
		}
		for i := range inv.Devices {
			if inv.Devices[i] != before.Devices[i] {
				t.Fatal("assessing changed the inventory")
			}
		}
	})
}
