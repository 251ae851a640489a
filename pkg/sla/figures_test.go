package sla

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

func TestJudge(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		want     Objective
		have     Figures
		headroom float64
		loss     Loss
	}{
		"exactly the headroom that is wanted": {Objective{LatencyMs: 100}, Figures{LatencyMs: 80}, 0.2, Loss{}},
		"half as slow as that": {Objective{LatencyMs: 100}, Figures{LatencyMs: 40}, 0.2,
			Loss{Spare: 10}},
		"half of the headroom is left": {Objective{LatencyMs: 100}, Figures{LatencyMs: 90}, 0.2,
			Loss{Tight: 20}},
		"only just met": {Objective{LatencyMs: 100}, Figures{LatencyMs: 100}, 0.2,
			Loss{Tight: 40}},
		"only just met, no headroom is wanted": {Objective{LatencyMs: 100}, Figures{LatencyMs: 100}, 0, Loss{}},
		"missed, twice as slow": {Objective{LatencyMs: 100}, Figures{LatencyMs: 200}, 0.2,
			Loss{Missed: 70}},
		"missed by more than there are points": {Objective{LatencyMs: 1}, Figures{LatencyMs: 1e9}, 0.2,
			Loss{Missed: 100}},
		"throughput, exactly the headroom": {Objective{Throughput: 80}, Figures{Throughput: 100}, 0.2,
			Loss{}},
		"throughput, half of what is wanted": {Objective{Throughput: 80}, Figures{Throughput: 40}, 0.2,
			Loss{Missed: 70}},
		"nothing is measured": {Objective{LatencyMs: 100}, Figures{Throughput: 5}, 0.2,
			Loss{Unknown: 50}},
		"both are met, the tighter one counts": {Objective{LatencyMs: 100, Throughput: 80},
			Figures{LatencyMs: 10, Throughput: 100}, 0.2, Loss{}},
		"one is met and the other not measured": {Objective{LatencyMs: 100, Throughput: 80},
			Figures{LatencyMs: 80}, 0.2, Loss{Unknown: 50}},
		"the other one is met and the first not measured": {Objective{LatencyMs: 100, Throughput: 80},
			Figures{Throughput: 100}, 0.2, Loss{Unknown: 50}},
		"one is missed and the other not measured": {Objective{LatencyMs: 100, Throughput: 80},
			Figures{LatencyMs: 200}, 0.2, Loss{Missed: 70}},
		"the other one is missed, the first not measured": {Objective{LatencyMs: 100, Throughput: 80},
			Figures{Throughput: 40}, 0.2, Loss{Missed: 70}},
		"one is met and the other one missed": {Objective{LatencyMs: 100, Throughput: 80},
			Figures{LatencyMs: 1, Throughput: 40}, 0.2, Loss{Missed: 70}},
		"an objective that is smaller than any float left": {Objective{LatencyMs: 5e-324}, Figures{LatencyMs: 1e12}, 0.2,
			Loss{Missed: 100}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.loss, Judge(tc.want, tc.have, tc.headroom), cmpopts.EquateApprox(0, 1e-9)); diff != "" {
				t.Errorf("loss (-want +got):\n%s", diff)
			}
		})
	}
}

// What a node is worth follows how it stands to the objective, whatever the numbers.
func TestNodesThatMeetComeBeforeUnknownOnesAndThoseBeforeNodesThatMiss(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		positive := rapid.Float64Range(1e-3, 1e12)
		want := Objective{LatencyMs: positive.Draw(t, "objective")}
		headroom := float64(rapid.IntRange(0, 90).Draw(t, "headroom")) / 100
		a, b := positive.Draw(t, "figure of a"), positive.Draw(t, "figure of b")
		loss := func(figure float64) float64 { return Judge(want, Figures{LatencyMs: figure}, headroom).Sum() }
		unknown := Judge(want, Figures{}, headroom).Sum()
		for _, figure := range []float64{a, b} {
			switch l := loss(figure); {
			case math.IsNaN(l) || l < 0 || l > 100:
				t.Fatalf("%g of %g loses %g", figure, want.LatencyMs, l)
			case figure <= want.LatencyMs && l >= unknown:
				t.Fatalf("%g meets %g and loses %g", figure, want.LatencyMs, l)
			case figure > want.LatencyMs && l <= unknown:
				t.Fatalf("%g misses %g and loses only %g", figure, want.LatencyMs, l)
			}
		}
		if edge := want.LatencyMs * (1 - headroom); a < b && a > edge && loss(a) > loss(b) {
			t.Fatalf("beyond the headroom %g is better than %g, but loses %g instead of %g", a, b, loss(a), loss(b))
		} else if a < b && b < edge && loss(a) < loss(b) {
			t.Fatalf("%g has more excess than %g, but loses %g instead of %g", a, b, loss(a), loss(b))
		}
	})
}
