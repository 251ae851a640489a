package main

import (
	"math"
	"testing"
)

func TestFractionalBound(t *testing.T) {
	t.Parallel()
	small, large := shape{amounts{8, 32, 1}, 1}, shape{amounts{96, 384, 8}, 6}
	for name, tc := range map[string]struct {
		fleet map[shape]int
		load  amounts
		want  float64
	}{
		"nothing costs nothing":                             {map[shape]int{small: 1}, amounts{}, 0},
		"half a node costs half of it":                      {map[shape]int{small: 1}, amounts{4, 1, 0.1}, 0.5},
		"the scarcest resource decides":                     {map[shape]int{small: 10}, amounts{8, 32, 5}, 5},
		"the kind that is cheaper for its room comes first": {map[shape]int{small: 10, large: 1}, amounts{12, 48, 1}, 0.75},
		"when it is used up the dearer follows":             {map[shape]int{small: 10, large: 1}, amounts{104, 416, 9}, 7},
	} {
		if got := fractionalBound(tc.fleet, tc.load); got > tc.want+1e-9 || math.Abs(got-tc.want) > 0.002*tc.want {
			t.Errorf("%s: bound is %f, want at most and nearly %f", name, got, tc.want)
		}
	}
}
