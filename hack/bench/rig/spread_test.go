package rig

import (
	"fmt"
	"testing"

	"berth.dev/berth/test/harness/assert"
)

func TestSpreadOf(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		values []float64
		want   Spread
	}{
		{"one value is all three", []float64{4}, Spread{4, 4, 4}},
		{"the middle one of an odd number", []float64{9, 1, 3}, Spread{1, 3, 9}},
		{"half way between the middle two of an even number", []float64{8, 1, 2, 4}, Spread{1, 3, 8}},
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

func TestCell(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, format, want string
		values             []float64
	}{
		{"one value", "%.1f", "4.0", []float64{4}},
		{"the median, and the least and the most", "%.1f", "2.5 (1.0–4.0)", []float64{4, 1}},
		{"several that are equal", "%.1f", "4.0 (4.0–4.0)", []float64{4, 4}},
		{"none", "%.1f", "-", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := cellOf(tt.format, tt.values); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestInTurn(t *testing.T) {
	t.Parallel()
	var got []string
	for repeat, c := range InTurn([]string{"a", "b", "c"}, 4) {
		got = append(got, fmt.Sprint(repeat, c))
	}
	want := []string{"1a", "1b", "1c", "2b", "2c", "2a", "3c", "3a", "3b", "4a", "4b", "4c"}
	assert.Equal(t, "order", want, got)
}
