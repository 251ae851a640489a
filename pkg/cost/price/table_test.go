package price

import "testing"

func TestTable(t *testing.T) {
	t.Parallel()
	has := func(key, value string) func(map[string]string) bool {
		return func(labels map[string]string) bool { return labels[key] == value }
	}
	table := NewTable([]Rule{
		{Matches: has("type", "big"), Price: 8 * Dollar},
		{Matches: has("type", "big"), Price: 9 * Dollar},
		{Matches: has("zone", "far"), Price: 5 * Dollar, Weight: 10},
		{Matches: has("type", "big"), Price: 7 * Dollar, Weight: -1},
	})
	for name, tc := range map[string]struct {
		labels  map[string]string
		want    MicroDollars
		unknown bool
	}{
		"of equal weights the earlier counts": {labels: map[string]string{"type": "big"}, want: 8 * Dollar},
		"the heavier rule counts": {labels: map[string]string{"type": "big", "zone": "far"},
			want: 5 * Dollar},
		"a node that no rule states a price for has none":     {labels: map[string]string{"type": "small"}, unknown: true},
		"a node without labels has none and does not trip us": {labels: nil, unknown: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, ok := table.Price(tc.labels)
			if ok == tc.unknown || got != tc.want {
				t.Fatalf("price is %s (known %t), want %s (known %t)", got, ok, tc.want, !tc.unknown)
			}
		})
	}
}
