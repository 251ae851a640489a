package preempt

import (
	"testing"

	"berth.dev/berth/pkg/gang"
)

func TestMissingResourcesAreNamedWithTheirAmounts(t *testing.T) {
	t.Parallel()
	id := gang.ID{Namespace: "ns", Name: "one"}
	for _, tc := range []struct {
		name  string
		short []Shortage
		want  string
		kind  string
	}{
		{"one resource is short", []Shortage{{Resource: "cpu", Wanted: 40_500, Free: 32_000}},
			"gang ns/one needs minResources cpu 40500m, the cluster has 32 free", "gang needs minResources cpu"},
		{"each that is short is named", []Shortage{{Resource: "cpu", Wanted: 40_000, Free: 32_000},
			{Resource: "memory", Wanted: 1 << 30}},
			"gang ns/one needs minResources cpu 40, the cluster has 32 free; memory 1Gi, the cluster has 0 free",
			"gang needs minResources cpu, memory"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			m := Missing{Of: id, Short: tc.short}
			if m.String() != tc.want {
				t.Errorf("got %q, want %q", m, tc.want)
			}
			if m.Kind() != tc.kind {
				t.Errorf("kind %q, want %q", m.Kind(), tc.kind)
			}
		})
	}
}
