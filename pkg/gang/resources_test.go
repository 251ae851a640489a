package gang

import (
	"fmt"
	"testing"
)

func TestExplainLack(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		amounts []Amount
		want    string
	}{
		{"nothing is asked for", nil, ""},
		{"exactly enough is enough", []Amount{{"cpu", 40, 40}}, ""},
		{"one resource is short", []Amount{{"cpu", 40, 32}, {"memory", 1, 9}}, "gang ns/one needs minResources cpu 40u, the cluster has 32u free"},
		{"each that is short is named", []Amount{{"cpu", 40, 32}, {"memory", 3, 0}},
			"gang ns/one needs minResources cpu 40u, the cluster has 32u free; memory 3u, the cluster has 0u free"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got := ""
			if short := Lacking(tc.amounts); len(short) > 0 {
				got = ExplainLack(g1, short, func(_ string, n int64) string { return fmt.Sprintf("%du", n) })
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
