package gpu

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// one weight only, so that a test sees one term.
func only(set func(*Weights)) Weights {
	var w Weights
	set(&w)
	return w
}

func TestWaste(t *testing.T) {
	t.Parallel()
	eights := NewResidual(mixOf(100, Class{CPUMilli: 1000, Count: 8, Milli: WholeMilli}, Class{CPUMilli: 1000, Count: 1, Milli: WholeMilli}))
	packing := only(func(w *Weights) { w.Packing = 1 })
	for _, tc := range []struct {
		name    string
		cluster Cluster
		inv     *Inventory
		req     *Request
		at      Circumstances
		want    float64
	}{
		{"a node without GPUs wastes none", Cluster{Weights: DefaultWeights(), Residual: eights}, &Inventory{}, &Request{CPUMilli: 1000}, Circumstances{}, 0},
		{"packing is the growth of the residual", Cluster{Weights: packing, Residual: NewResidual(mixOf(100, Class{Count: 2, Milli: WholeMilli}))},
			node(4), whole(1), Circumstances{}, 1000},
		{"packing can be a gain", Cluster{Weights: packing, Residual: NewResidual(mixOf(100, Class{Count: 2, Milli: WholeMilli}))},
			node(4, take(1000)), whole(1), Circumstances{}, -1000},
		{"an unknown mix packs nothing", Cluster{Weights: packing, Residual: NewResidual(mixOf(1, Class{Count: 2, Milli: WholeMilli}))},
			node(4), whole(1), Circumstances{}, 0},
		{"best-fit counts CPU and GPU left", Cluster{Weights: only(func(w *Weights) { w.BestFit = 30 })},
			node(5), with(whole(1), func(r *Request) { r.CPUMilli = 32_000 }), Circumstances{}, 30 * (0.5*0.25 + 0.5*0.5)},
		{"breaking one of few free nodes", Cluster{Weights: only(func(w *Weights) { w.Reserve = 1000 }), Residual: eights, FreeEightGPUNodes: 1, IdleMilli: 8000},
			node(8), whole(1), Circumstances{}, 1000},
		{"breaking one of many", Cluster{Weights: only(func(w *Weights) { w.Reserve = 1000 }), Residual: eights, FreeEightGPUNodes: 100, IdleMilli: 8000},
			node(8), whole(1), Circumstances{}, 0},
		{"taking all of it breaks nothing", Cluster{Weights: only(func(w *Weights) { w.Reserve = 1000 }), Residual: eights, FreeEightGPUNodes: 1, IdleMilli: 8000},
			node(8), whole(8), Circumstances{}, 0},
		{"a broken node is broken already", Cluster{Weights: only(func(w *Weights) { w.Reserve = 1000 }), Residual: eights, FreeEightGPUNodes: 1, IdleMilli: 8000},
			node(8, take(1000)), whole(1), Circumstances{}, 0},
		{"a scarce model", Cluster{Weights: only(func(w *Weights) { w.Scarcity = 400 }), Pressure: map[string]float64{"NVIDIA-A10": 1.5}},
			node(8), whole(2), Circumstances{LowestPressure: 0.5}, 800},
		{"an unknown pressure is none", Cluster{Weights: only(func(w *Weights) { w.Scarcity = 400 })}, node(8), whole(2), Circumstances{LowestPressure: 0.5}, 0},
		{"links that are missed", Cluster{Weights: only(func(w *Weights) { w.Links = 1 })}, node(8),
			with(whole(2), func(r *Request) { r.Interconnect = InterconnectPreferred }), Circumstances{}, 2000 * 0.96},
		{"links that nobody asked for", Cluster{Weights: only(func(w *Weights) { w.Links = 1 })}, node(8), whole(2), Circumstances{}, 2000 * 0.96 * 0.2},
		{"siblings out of reach", Cluster{Weights: only(func(w *Weights) { w.Links = 1 })}, node(8, meshed), whole(2), Circumstances{Apart: 0.5}, 2000 * 0.5 * 0.2},
		{"more GPU than it takes", Cluster{Weights: only(func(w *Weights) { w.OverProvisioning = 50 })}, node(8), whole(2), Circumstances{}, 100 * (24. / 80) * (86. / 90)},
		{"a busy GPU", Cluster{Weights: only(func(w *Weights) { w.Utilisation = 50 })}, node(8, shared), share(500), Circumstances{BusyMilli: 500}, 25},
		{"a pod that keeps off GPUs", Cluster{Weights: only(func(w *Weights) { w.Avoid = 4000 })}, node(8), &Request{AvoidsGPUNode: true}, Circumstances{}, 4000},
		{"spreading prefers the emptiest", Cluster{Weights: packing, Spread: true}, node(4, take(1000)), whole(1), Circumstances{}, 500},
		{"time slices count as parts", Cluster{Weights: only(func(w *Weights) { w.BestFit = 30 })}, node(2, sliced(5), func(i *Inventory) { i.FreeCPUMilli = 0 }), whole(1),
			Circumstances{}, 30 * 0.5 * 0.125},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if got := tc.cluster.Assess(tc.inv, tc.req, tc.at).Sum(); math.Abs(got-tc.want) > 1e-6 {
				t.Errorf("waste = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestLowestPressure(t *testing.T) {
	t.Parallel()
	c := Cluster{Pressure: map[string]float64{"A": 2, "B": 1, "C": 3}}
	for want, r := range map[float64]*Request{1: {}, 2: {Models: []string{"A", "C"}}, 0: {Models: []string{"D"}}} {
		if got := c.LowestPressure(r); got != want {
			t.Errorf("LowestPressure(%v) = %v, want %v", r.Models, got, want)
		}
	}
}

// TestAssessIsSafe assesses any request on any inventory: the waste is a number and the inventory stays as it is.
func TestAssessIsSafe(t *testing.T) {
	t.Parallel()
	c := Cluster{Weights: DefaultWeights(), Residual: NewResidual(mixOf(100, Class{CPUMilli: 4000, Count: 1, Milli: 500})), FreeEightGPUNodes: 1, IdleMilli: 8000}
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
		w := c.Assess(inv, r, Circumstances{}).Sum()
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
