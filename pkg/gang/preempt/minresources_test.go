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
		short []resourceShortfall
		want  string
		kind  string
	}{
		{"one resource is short", []resourceShortfall{{name: "cpu", wanted: 40_500, free: 32_000}},
			"gang ns/one needs minResources cpu 40500m, the cluster has 32 free", "gang needs minResources cpu"},
		{"each that is short is named", []resourceShortfall{{name: "cpu", wanted: 40_000, free: 32_000},
			{name: "memory", wanted: 1 << 30}},
			"gang ns/one needs minResources cpu 40, the cluster has 32 free; memory 1Gi, the cluster has 0 free",
			"gang needs minResources cpu, memory"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			m := shortfall{gang: id, resources: tc.short}
			if m.String() != tc.want {
				t.Errorf("got %q, want %q", m, tc.want)
			}
			if m.Kind() != tc.kind {
				t.Errorf("kind %q, want %q", m.Kind(), tc.kind)
			}
		})
	}
}
