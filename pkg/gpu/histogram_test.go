package gpu

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestHistogram(t *testing.T) {
	t.Parallel()
	one, eight := Shape{CPUMilli: 4000, Count: 1, Milli: WholeMilli}, Shape{CPUMilli: 90_000, Count: 8, Milli: WholeMilli}
	type pods struct {
		shape      Shape
		controller string
		n          int
	}
	for name, tc := range map[string]struct {
		runs  []pods
		ones  float64
		known bool
	}{
		"nothing runs":             {nil, 0, false},
		"a few pods":               {[]pods{{one, "", mixKnown - 1}}, 1, false},
		"pods on their own":        {[]pods{{one, "", 30}, {eight, "", 10}}, 0.75, true},
		"pods of one controller":   {[]pods{{one, "a", 100}}, 1, false},
		"pods of many controllers": {[]pods{{one, "a", 30}, {one, "b", 30}, {eight, "c", 20}}, 0.625, true},
		"a controller with most of the pods is a quarter": {
			[]pods{{one, "a", 1000}, {eight, "", 10}, {eight, "b", 10}}, 0.25, true},
		"what has ended does not count": {[]pods{{one, "a", 100}, {eight, "", 20}, {one, "a", -100}}, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var h Histogram
			for _, p := range tc.runs {
				h.Add(p.shape, p.controller, p.n)
			}
			d := h.Distribution()
			ones := 0.0
			for _, p := range d.Portions {
				if p.Shape == one {
					ones = p.Fraction
				}
			}
			if math.Abs(ones-tc.ones) > 1e-3 || d.Known() != tc.known {
				t.Errorf("%v are of one GPU, known %v, want %v, %v", ones, d.Known(), tc.ones, tc.known)
			}
		})
	}
}

// TestAHistogramKnowsWhatRunsAndNothingElse adds and removes pods at random: the histogram is that of the pods that are
// left, in whatever order they came.
func TestAHistogramKnowsWhatRunsAndNothingElse(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		type pod struct {
			Shape
			controller string
		}
		var h, fresh Histogram
		var running []pod
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			if len(running) > 0 && rapid.Bool().Draw(t, "ends") {
				at := rapid.IntRange(0, len(running)-1).Draw(t, "which")
				h.Add(running[at].Shape, running[at].controller, -1)
				running = append(running[:at], running[at+1:]...)
				continue
			}
			p := pod{Shape{CPUMilli: int64(1000 * rapid.IntRange(1, 3).Draw(t, "cpu")), Count: 1, Milli: 500},
				rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "controller")}
			h.Add(p.Shape, p.controller, 1)
			running = append(running, p)
		}
		for i := len(running) - 1; i >= 0; i-- {
			fresh.Add(running[i].Shape, running[i].controller, 1)
		}
		if diff := cmp.Diff(fresh.Distribution(), h.Distribution()); diff != "" || len(h.controllers) > 3 {
			t.Fatalf("%d controllers; distribution (-fresh +changed):\n%s", len(h.controllers), diff)
		}
	})
}

func TestDistance(t *testing.T) {
	t.Parallel()
	one, eight := Shape{CPUMilli: 4000, Count: 1, Milli: WholeMilli}, Shape{CPUMilli: 90_000, Count: 8, Milli: WholeMilli}
	a, b := mixOf(1, one, one, one, eight), mixOf(1, one, eight)
	if got := a.Distance(b); math.Abs(got-0.25) > 1e-9 || got != b.Distance(a) || a.Distance(a) != 0 {
		t.Errorf("Distance = %v, want a quarter both ways and none to itself", got)
	}
	if got := mixOf(0).Distance(a); got != 1 {
		t.Errorf("Distance from nothing = %v", got)
	}
	if got := a.Distance(mixOf(1, one, one, one, eight, Shape{CPUMilli: 8000})); got != 1 {
		t.Errorf("Distance to the same beside CPU-only pods = %v", got)
	}
	if d := Given([]Portion{{Shape: one, Fraction: 3}, {Shape: eight, Fraction: 1}}); !d.Known() || d.Distance(a) > 1e-9 {
		t.Errorf("a given mix is known: %v, portions %v", d.Known(), d.Portions)
	}
}

func TestAMixIsDrawnUpAgainWhenItHasMoved(t *testing.T) {
	t.Parallel()
	var h Histogram
	inUse, drawn := h.Distribution(), 0
	for i := range 10_000 {
		h.Add(Shape{CPUMilli: 4000, Count: 1 + 7*(i/5000), Milli: WholeMilli}, "", 1)
		if d := h.Redraw(inUse); d != nil {
			inUse = d
			drawn++
		}
	}
	if far := h.Distribution().Distance(inUse); drawn < 4 || drawn > 40 || far > 2*redrawDistance {
		t.Errorf("drawn up %d times, in the end %v away", drawn, far)
	}
}
