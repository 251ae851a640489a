package candidates_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	networkv1alpha1 "berth.dev/berth/pkg/apis/network/v1alpha1"
	"berth.dev/berth/pkg/simulation/memapi"
)

// addressAPI is an API that serves pools and reservations of addresses, with these objects.
func addressAPI(tb testing.TB, objects ...string) *memapi.Server {
	tb.Helper()
	api := memapi.New()
	api.Register(networkv1alpha1.SchemeGroupVersion.WithResource("ippools"), "IPPool", false)
	api.Register(networkv1alpha1.SchemeGroupVersion.WithResource("ipreservations"), "IPReservation", false)
	for _, text := range objects {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
			tb.Fatal(err)
		}
		o.SetAPIVersion(networkv1alpha1.SchemeGroupVersion.String())
		if err := api.Create(o); err != nil {
			tb.Fatal(err)
		}
	}
	return api
}

// A pod whose address is routable on a few nodes among a thousand goes to the best of these:
// IPReservation ranks no nodes, and where the best candidates fail its filter, others are looked at.
func TestCandidatesKnowWhereAddressesAreRoutable(t *testing.T) {
	t.Parallel()
	for _, right := range []int{1, 40} {
		for name, objects := range map[string][]string{
			"a pool": {`{kind: IPPool, metadata: {name: rare}, spec: {subnets: [{domain: {key: rare, value: "yes"}, ranges: [10.0.0.0/24]}]}}`},
			"a reservation": {`{kind: IPReservation, metadata: {name: ip-10-0-0-1, uid: u}, spec: {address: 10.0.0.1, domain: {key: rare, value: "yes"},
pod: {namespace: default, name: p}}}`},
		} {
			t.Run(fmt.Sprintf("%s for %d nodes", name, right), func(t *testing.T) {
				t.Parallel()
				fleet := nodesOf(1000)
				for i := range right {
					fleet[len(fleet)-1-i*20].Labels["rare"] = "yes"
				}
				pod := podOf("p", 1000, 1<<10, 0)
				pod.Namespace = "default"
				if name == "a pool" {
					pod.Annotations = map[string]string{"berth.dev/ip-pool": "rare"}
				}
				r := newRigOn(t, addressAPI(t, objects...), shipped(t), profileName, fleet)
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
					t.Errorf("the pod goes to %s (%d points) and, if all are looked at, to %s (%d)", best.SuggestedHost, totals[best.SuggestedHost],
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

// BenchmarkAddresses is what one scheduling cycle costs on 5,000 nodes with all plugins, by the number of reservations, for
// pods that get no address and for pods that ask for one.
//
//	go test ./pkg/candidates -run xxx -bench Addresses/look=candidates -benchtime 1500x
func BenchmarkAddresses(b *testing.B) {
	for _, look := range []string{"candidates", "all"} {
		for _, reservations := range []int{0, 100, 10_000} {
			for _, asks := range []bool{false, true} {
				b.Run(fmt.Sprintf("look=%s/reservations=%d/asks=%t", look, reservations, asks), func(b *testing.B) {
					objects := []string{`{kind: IPPool, metadata: {name: any}, spec: {subnets: [{ranges: [10.0.0.0/8]}]}}`}
					for i := range reservations {
						objects = append(objects, fmt.Sprintf(`{kind: IPReservation, metadata: {name: ip-10-0-%[1]d-%[2]d, uid: u%[1]d-%[2]d}, spec: {address: 10.0.%[1]d.%[2]d,
pool: any, releasePolicy: Retain, pod: {namespace: default, name: owner-%[3]d}}}`, i/250, i%250+1, i))
					}
					benchmarkCycleOn(b, addressAPI(b, objects...), shipped(b), profileName, 5000, true, look, func(random *rand.Rand, i int) *v1.Pod {
						pod := podOf(fmt.Sprint(i), 500+random.IntN(16000), 512+random.IntN(64<<10), []int{0, 1, 1, 2, 4, 8}[random.IntN(6)])
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
