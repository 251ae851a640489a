package gpu

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDemandIsConfinedByMemoryAndLinks(t *testing.T) {
	t.Parallel()
	capacity := Capacity{
		"T4": {GPUs: 100, MemMiB: 16 << 10}, "A100": {GPUs: 100, MemMiB: 40 << 10, Linked: true},
		"H100": {GPUs: 100, MemMiB: 80 << 10, Linked: true},
	}
	work := Shape{Count: 2, Milli: WholeMilli}
	for name, tc := range map[string]struct {
		request  Request
		shape    Shape
		pressure map[string]float64
	}{
		"memory that one model has": {Request{Count: 2, Milli: WholeMilli, MinMemMiB: 64 << 10},
			Shape{Count: 2, Milli: WholeMilli, MinMemMiB: 64 << 10}, map[string]float64{"T4": 0.5, "A100": 0.5, "H100": 2}},
		"links that two models have": {Request{Count: 2, Milli: WholeMilli, Interconnect: InterconnectRequired},
			Shape{Count: 2, Milli: WholeMilli, Linked: true}, map[string]float64{"T4": 0.5, "A100": 1.25, "H100": 1.25}},
		"links among the models that it names": {
			Request{Count: 2, Milli: WholeMilli, Interconnect: InterconnectRequired, Models: []string{"A100", "T4"}},
			Shape{Count: 2, Milli: WholeMilli, Linked: true, Models: "A100|T4"}, map[string]float64{"T4": 0.5, "A100": 2,
				"H100": 0.5}},
		"memory that all have": {Request{Count: 2, Milli: WholeMilli, MinMemMiB: 8 << 10},
			Shape{Count: 2, Milli: WholeMilli, MinMemMiB: 8 << 10}, map[string]float64{"T4": 1, "A100": 1, "H100": 1}},
		"memory that none has": {Request{Count: 2, Milli: WholeMilli, MinMemMiB: 999 << 10},
			Shape{Count: 2, Milli: WholeMilli, MinMemMiB: 999 << 10}, map[string]float64{"T4": 1, "A100": 1, "H100": 1}},
		"links preferred": {Request{Count: 2, Milli: WholeMilli, Interconnect: InterconnectPreferred}, work,
			map[string]float64{"T4": 1, "A100": 1, "H100": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shape := ShapeOf(&tc.request, 0)
			if diff := cmp.Diff(tc.shape, shape); diff != "" {
				t.Errorf("shape (-want +got):\n%s", diff)
			}
			mix := Given([]Portion{{Shape: work, Fraction: 1}, {Shape: shape, Fraction: 1}})
			before := NewDemand(mix, nil, 8)
			for _, d := range []*Demand{NewDemand(mix, capacity, 8), before.WithCapacity(capacity, 8)} {
				if diff := cmp.Diff(tc.pressure, d.pressure); diff != "" {
					t.Errorf("pressure (-want +got):\n%s", diff)
				}
			}
		})
	}
}
