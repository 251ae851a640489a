package priceview

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/wellknown"
)

// FuzzStatedPrice reads the price of a node from its annotation and its label.
func FuzzStatedPrice(f *testing.F) {
	for _, seed := range []string{"3.06", "0", "-1", "1e3", "0.0000001", "92233720368547758.07", "NaN", " 1", "1_0"} {
		f.Add(seed, seed)
	}
	f.Fuzz(func(t *testing.T, annotation, label string) {
		node := &v1.Node{}
		node.Annotations, node.Labels = map[string]string{wellknown.PricePerHourKey: annotation},
			map[string]string{NodeCostPerHourLabel: label}
		p, stated, bad := StatedPrice(node)
		for _, b := range bad {
			if b.Key != wellknown.PricePerHourKey && b.Key != NodeCostPerHourLabel || b.Allowed == "" {
				t.Fatalf("%q names no key of a price", b)
			}
		}
		if p < 0 || stated == (len(bad) == 2) {
			t.Fatalf("%q and %q: %v, stated %t, with %d bad values", annotation, label, p, stated, len(bad))
		}
	})
}
