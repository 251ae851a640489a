package plugins_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	upstream "k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/pkg/lab/simulation/memapi"
	"berth.dev/berth/test/harness/framework"
	"berth.dev/berth/test/harness/objects"
)

// policyAPI is an API that serves placement policies, with these specs.
func policyAPI(tb testing.TB, specs ...string) *memapi.Server {
	tb.Helper()
	api := framework.API(map[string]schema.GroupVersionResource{"PlacementPolicy": policiesResource})
	framework.Create(tb, api, objects.Namespace("default"))
	for i, spec := range specs {
		framework.Create(tb, api, objects.Custom(tb, "PlacementPolicy", fmt.Sprintf("policy-%d", i), spec))
	}
	return api
}

// A pod that a rule binds to a few nodes, or that prefers a few, which are not among the best by other scores, finds
// them among the candidates, and where all nodes are looked at.
func TestCandidatesKnowTheRulesOfPlacementPolicies(t *testing.T) {
	t.Parallel()
	const (
		region = `{compliance: {rules: [{name: region, pods: {selector: {matchLabels: {tenant: acme}}}, nodes: {selector: {matchLabels: {rare: "yes"}}}}]}}`
		data   = `{datasets: [{name: imagenet, nodes: {selector: {matchLabels: {rare: "yes"}}}}]}`
	)
	for name, label := range map[string]bool{"a rule that binds": true, "data that is near": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fleet := nodesOf(1000)
			for i := 4; i < len(fleet); i += 250 {
				fleet[i].Labels["rare"] = "yes"
			}
			pod := podOf("p", 1000, 1<<10, 0)
			if label {
				pod.Labels = map[string]string{"tenant": "acme"}
			} else {
				pod.Annotations = map[string]string{"berth.dev/datasets": "imagenet"}
			}
			r := newRigOn(t, policyAPI(t, region, data), shipped(t), profileName, fleet)
			result, status, _ := r.best.RunPreFilterPlugins(r.ctx, upstream.NewCycleState(), pod)
			if !status.IsSuccess() || result.AllNodes() {
				t.Errorf("all nodes are looked at (%v)", status)
			}
			best, err := r.choose(t, r.best, pod)
			if err != nil {
				t.Fatal(err)
			}
			all, err := r.choose(t, r.all, pod)
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range fleet {
				if (n.Name == best.SuggestedHost || n.Name == all.SuggestedHost) && n.Labels["rare"] == "" {
					t.Errorf("the pod goes to %s and, if all are looked at, to %s, of which one is not among the right nodes",
						best.SuggestedHost, all.SuggestedHost)
				}
			}
		})
	}
}
