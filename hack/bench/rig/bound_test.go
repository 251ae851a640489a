package rig

import (
	"math"
	"testing"
)

func TestFractionalBound(t *testing.T) {
	t.Parallel()
	small, large := Shape{Amounts{8, 32, 1}, 1}, Shape{Amounts{96, 384, 8}, 6}
	for name, tc := range map[string]struct {
		fleet map[Shape]int
		load  Amounts
		want  float64
	}{
		"nothing costs nothing":                             {map[Shape]int{small: 1}, Amounts{}, 0},
		"half a node costs half of it":                      {map[Shape]int{small: 1}, Amounts{4, 1, 0.1}, 0.5},
		"the scarcest resource decides":                     {map[Shape]int{small: 10}, Amounts{8, 32, 5}, 5},
		"the kind that is cheaper for its room comes first": {map[Shape]int{small: 10, large: 1}, Amounts{12, 48, 1}, 0.75},
		"when it is used up the dearer follows":             {map[Shape]int{small: 10, large: 1}, Amounts{104, 416, 9}, 7},
	} {
		if got := FractionalBound(tc.fleet, tc.load); got > tc.want+1e-9 || math.Abs(got-tc.want) > 0.002*tc.want {
			t.Errorf("%s: bound is %f, want at most and nearly %f", name, got, tc.want)
		}
	}
}
