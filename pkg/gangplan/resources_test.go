package gangplan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLacking(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		amounts []Amount
		want    []Amount
	}{
		{"nothing is asked for", nil, nil},
		{"exactly enough is enough", []Amount{{"cpu", 40, 40}}, nil},
		{"one resource is short", []Amount{{"cpu", 40, 32}, {"memory", 1, 9}}, []Amount{{"cpu", 40, 32}}},
		{"each that is short is named", []Amount{{"cpu", 40, 32}, {"memory", 3, 0}},
			[]Amount{{"cpu", 40, 32}, {"memory", 3, 0}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, Lacking(tc.amounts)); diff != "" {
				t.Errorf("lacking (-want +got):\n%s", diff)
			}
		})
	}
}
