package hold

import (
	"testing"

	"k8s.io/utils/ptr"

	"berth.dev/berth/pkg/apis/config"
)

func TestWhoMayHoldAReservation(t *testing.T) {
	t.Parallel()
	namespaces := func(named ...config.GangReservationNamespace) config.GangReservation {
		return config.GangReservation{Namespaces: named}
	}
	named := func(name string) config.GangReservationNamespace { return config.GangReservationNamespace{Name: name} }
	limited := func(name string, percent int32) config.GangReservationNamespace {
		return config.GangReservationNamespace{Name: name, MaxNodesPercent: ptr.To(percent)}
	}
	for _, tc := range []struct {
		name        string
		reservation config.GangReservation
		namespace   string
		priority    int32
		want        int
	}{
		{"everybody, unless something is said", config.GangReservation{}, "a", -5, 50},
		{"a namespace that is named", namespaces(named("a")), "a", 0, 50},
		{"none that is not named", namespaces(named("a")), "b", 0, 0},
		{"a namespace with a limit of its own", namespaces(limited("a", 10), named("*")), "a", 0, 10},
		{"all others", namespaces(named("a"), limited("*", 5)), "b", 0, 5},
		{"a namespace that is left out", namespaces(limited("a", 0), named("*")), "a", 0, 0},
		{"a priority that is high enough", config.GangReservation{MinPriority: ptr.To[int32](100)}, "a", 100, 50},
		{"a priority that is too low", config.GangReservation{MinPriority: ptr.To[int32](100)}, "a", 99, 0},
		{"nobody where reservations are off", config.GangReservation{MaxNodesPercent: ptr.To[int32](0)}, "a", 1000, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			holders := HoldersFrom(&tc.reservation)
			if got := holders.percent(tc.namespace, tc.priority, false); got != tc.want {
				t.Errorf("%d percent of the nodes, want %d", got, tc.want)
			}
			if tc.want == 50 {
				tc.want = 100
			}
			if got := holders.percent(tc.namespace, tc.priority, true); got != tc.want {
				t.Errorf("%d percent of the nodes while the start is known, want %d", got, tc.want)
			}
		})
	}
}
