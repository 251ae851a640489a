package plugins_test

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	upstream "k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/test/harness/framework"
	"berth.dev/berth/test/harness/objects"
	"berth.dev/berth/test/harness/require"
)

// A pod that something binds or draws to a few nodes among a thousand, which are not among the best by other scores,
// goes to the best of these, as where all nodes are looked at. IPReservation ranks no nodes: where the best candidates
// fail its filter, others are looked at.
func TestCandidatesKnowRareNodes(t *testing.T) {
	t.Parallel()
	annotated := func(key, value string) func(*v1.Pod) {
		return func(p *v1.Pod) { p.Annotations = map[string]string{key: value} }
	}
	for name, test := range map[string]struct {
		object string
		tune   func(*v1.Pod)
		ranked bool
	}{
		"a pool": {`IPPool rare {subnets: [{domain: {key: rare, value: "yes"}, ranges: [10.0.0.0/24]}]}`,
			annotated("berth.dev/ip-pool", "rare"), false},
		"a reservation": {`IPReservation ip-10-0-0-1 {address: 10.0.0.1, domain: {key: rare, value: "yes"}, pod: {namespace: default, name: p}}`,
			func(*v1.Pod) {}, false},
		"a rule": {`PlacementPolicy region {compliance: {rules: [{name: region, pods: {selector: {matchLabels: {tenant: acme}}}, nodes: {selector: {matchLabels: {rare: "yes"}}}}]}}`,
			func(p *v1.Pod) { p.Labels = map[string]string{"tenant": "acme"} }, true},
		"data that is near": {`PlacementPolicy data {datasets: [{name: imagenet, nodes: {selector: {matchLabels: {rare: "yes"}}}}]}`,
			annotated("berth.dev/datasets", "imagenet"), true},
	} {
		for _, right := range []int{1, 40} {
			t.Run(fmt.Sprintf("%s, %d nodes", name, right), func(t *testing.T) {
				t.Parallel()
				fleet, rare := nodesOf(1000), map[string]bool{}
				for i := range right {
					node := fleet[len(fleet)-1-i*20]
					node.Labels["rare"], rare[node.Name] = "yes", true
				}
				pod := podOf("p", 1000, 1<<10, 0)
				test.tune(pod)
				api := customAPI(t, test.object)
				framework.Create(t, api, objects.Namespace("default"))
				r := newRigOn(t, api, shipped(t), profileName, fleet)
				if seen := r.seen(t, upstream.NewCycleState(), pod); test.ranked && seen == len(fleet) {
					t.Error("all nodes are looked at")
				}
				best, err := r.choose(t, r.best, pod)
				require.NoError(t, err)
				all, err := r.choose(t, r.all, pod)
				require.NoError(t, err)
				totals := r.totals(t, pod)
				if totals[best.SuggestedHost] != totals[all.SuggestedHost] ||
					!rare[best.SuggestedHost] || !rare[all.SuggestedHost] {
					t.Errorf("the pod goes to %s (%d points) and, if all are looked at, to %s (%d); want one of %v",
						best.SuggestedHost, totals[best.SuggestedHost], all.SuggestedHost, totals[all.SuggestedHost], rare)
				}
			})
		}
	}
}
