package rig

import "testing"

func TestSpreadOf(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		values []float64
		want   Spread
	}{
		{"one value is all three", []float64{4}, Spread{4, 4, 4, 1}},
		{"the middle one of an odd number", []float64{9, 1, 3}, Spread{1, 3, 9, 3}},
		{"half way between the middle two of an even number", []float64{8, 1, 2, 4}, Spread{1, 3, 8, 4}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := SpreadOf(tt.values); got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestSpreadText(t *testing.T) {
	t.Parallel()
	for want, values := range map[string][]float64{"4.0": {4}, "2.5 (1.0–4.0)": {4, 1}, "4.0 (4.0–4.0)": {4, 4}} {
		if got := SpreadOf(values).Text("%.1f"); got != want {
			t.Errorf("%v are written %q, want %q", values, got, want)
		}
	}
}
