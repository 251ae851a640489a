package plugins_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	v1 "k8s.io/api/core/v1"
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

// BenchmarkAddresses is what one scheduling cycle costs on 5,000 nodes with all plugins, by the number of
// reservations, for pods that get no address and for pods that ask for one.
//
//	go test ./test/plugins -run xxx -bench Addresses/look=candidates -benchtime 1500x
func BenchmarkAddresses(b *testing.B) {
	for _, look := range []string{"candidates", "all"} {
		for _, reservations := range []int{0, 100, 10_000} {
			for _, asks := range []bool{false, true} {
				b.Run(fmt.Sprintf("look=%s/reservations=%d/asks=%t", look, reservations, asks), func(b *testing.B) {
					texts := []string{"IPPool any {subnets: [{ranges: [10.0.0.0/8]}]}"}
					for i := range reservations {
						texts = append(texts,
							fmt.Sprintf("IPReservation ip-10-0-%[1]d-%[2]d {address: 10.0.%[1]d.%[2]d, pool: any, releasePolicy: Retain, "+
								"pod: {namespace: default, name: owner-%[3]d}}", i/250, i%250+1, i))
					}
					benchmarkCycleOn(b, addressAPI(b, texts...), shipped(b), profileName, 5000, true, look,
						func(random *rand.Rand, i int) *v1.Pod {
							pod := podOf(fmt.Sprint(i), 500+random.IntN(16000), 512+random.IntN(64<<10),
								[]int{0, 1, 1, 2, 4, 8}[random.IntN(6)])
							if asks {
								pod.Annotations = map[string]string{"berth.dev/ip-pool": "any"}
							}
							return pod
						})
				})
			}
		}
	}
}
