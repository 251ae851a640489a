package plugins_test

import (
	"fmt"
	"testing"
)

// A pod whose address is routable on a few nodes among a thousand goes to the best of these:
// IPReservation ranks no nodes, and where the best candidates fail its filter, others are looked at.
func TestCandidatesKnowWhereAddressesAreRoutable(t *testing.T) {
	t.Parallel()
	for _, right := range []int{1, 40} {
		for name, object := range map[string]string{
			"a pool":        `IPPool rare {subnets: [{domain: {key: rare, value: "yes"}, ranges: [10.0.0.0/24]}]}`,
			"a reservation": `IPReservation ip-10-0-0-1 {address: 10.0.0.1, domain: {key: rare, value: "yes"}, pod: {namespace: default, name: p}}`,
		} {
			t.Run(fmt.Sprintf("%s for %d nodes", name, right), func(t *testing.T) {
				t.Parallel()
				fleet := nodesOf(1000)
				for i := range right {
					fleet[len(fleet)-1-i*20].Labels["rare"] = "yes"
				}
				pod := podOf("p", 1000, 1<<10, 0)
				if name == "a pool" {
					pod.Annotations = map[string]string{"berth.dev/ip-pool": "rare"}
				}
				r := newRigOn(t, addressAPI(t, object), shipped(t), profileName, fleet)
				best, err := r.choose(t, r.best, pod)
				if err != nil {
					t.Fatal(err)
				}
				all, err := r.choose(t, r.all, pod)
				if err != nil {
					t.Fatal(err)
				}
				totals := r.totals(t, pod)
				if totals[best.SuggestedHost] != totals[all.SuggestedHost] {
					t.Errorf("the pod goes to %s (%d points) and, if all are looked at, to %s (%d)", best.SuggestedHost,
						totals[best.SuggestedHost],
						all.SuggestedHost, totals[all.SuggestedHost])
				}
				for _, n := range fleet {
					if (n.Name == best.SuggestedHost || n.Name == all.SuggestedHost) && n.Labels["rare"] == "" {
						t.Errorf("the pod goes to %s, where its address is not routable", n.Name)
					}
				}
			})
		}
	}
}
