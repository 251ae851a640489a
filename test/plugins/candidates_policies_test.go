package plugins_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
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

// BenchmarkPolicies is what one scheduling cycle costs on 5,000 nodes with policies: without the plugin, and with it
// and 0, 10 and 100 policies, each with a license, a dataset and a rule by an expression, for pods that no rule
// concerns and for pods that one policy concerns.
//
//	go test ./test/plugins -run xxx -bench Policies -benchtime 300x
func BenchmarkPolicies(b *testing.B) {
	for _, look := range []string{"candidates", "all"} {
		for _, policies := range []int{-1, 0, 10, 100} {
			for _, concerned := range []bool{false, true} {
				if policies < 1 && concerned {
					continue
				}
				name := fmt.Sprintf("look=%s/policies=%d/concerned=%t", look, policies, concerned)
				if policies < 0 {
					name = fmt.Sprintf("look=%s/without the plugin", look)
				}
				b.Run(name, func(b *testing.B) { benchmarkPolicies(b, look, policies, concerned) })
			}
		}
	}
}

func benchmarkPolicies(b *testing.B, look string, policies int, concerned bool) {
	var specs []string
	for i := range policies {
		specs = append(specs, fmt.Sprintf(`{licenses: [{name: tool-%[1]d, count: 1000000}],
datasets: [{name: data-%[1]d, nodes: {selector: {matchLabels: {topology.kubernetes.io/zone: z1}}}}],
compliance: {rules: [{name: zone, pods: {expression: "pod.labels[?'tenant'].orValue('') == 'tenant-%[1]d'"}, nodes: {expression: "node.labels[?'topology.kubernetes.io/zone'].orValue('') != 'z2'"}}]}}`, i))
	}
	configuration := shipped(b)
	if policies < 0 {
		drop := func(p schedulerconfig.Plugin) bool { return p.Name == "PlacementPolicy" }
		for i := range configuration.Component.Profiles {
			p := configuration.Component.Profiles[i].Plugins
			p.MultiPoint.Enabled = slices.DeleteFunc(p.MultiPoint.Enabled, drop)
			p.Filter.Enabled = slices.DeleteFunc(p.Filter.Enabled, drop)
		}
	}
	benchmarkCycleOn(b, policyAPI(b, specs...), configuration, profileName, 5000, true, look,
		func(random *rand.Rand, i int) *v1.Pod {
			pod := podOf(fmt.Sprint(i), 500+random.IntN(16000), 512+random.IntN(64<<10), []int{0, 1, 1, 2, 4, 8}[random.IntN(6)])
			if concerned {
				pod.Labels = map[string]string{"tenant": "tenant-1"}
				pod.Annotations = map[string]string{"berth.dev/licenses": "tool-1", "berth.dev/datasets": "data-1"}
			}
			return pod
		})
}
