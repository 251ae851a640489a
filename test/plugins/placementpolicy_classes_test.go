package plugins_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"berth.dev/berth/pkg/candidates"
	"berth.dev/berth/pkg/plugins/placementpolicy"
	"berth.dev/berth/test/harness/objects"
)

// Nodes with the same key are judged alike, and as Filter and Score judge each of them.
func TestAClassIsJudgedByPoliciesAsItsNodesAre(t *testing.T) {
	bubble(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(1, 1))
		all := []runtime.Object{objects.Namespace("default")}
		for i := range 100 {
			all = append(all, pooled(fmt.Sprint("n", i), "pool", []string{"a", "b", "c"}[random.IntN(3)], "data",
				[]string{"imagenet", "laion"}[random.IntN(2)], "i", fmt.Sprint(i)))
		}
		g := govern(t, specs{"tenants": onlyPoolA, "tools": `licenses: [{name: matlab, count: 1, nodes: {selector: {matchLabels: {pool: b}}}}]`,
			"data": `datasets: [{name: imagenet, nodes: {selector: {matchLabels: {data: imagenet}}}}]`}, all...)
		if _, reason := g.place(t, licensed("holder").Obj(), g.Infos(t)[0].Node().Name); reason != "" &&
			!strings.Contains(reason, "outside") {
			t.Fatal(reason)
		}
		reader := func(p *st.PodWrapper) *v1.Pod { return p.Annotation("berth.dev/datasets", "imagenet").Obj() }
		for _, p := range []*v1.Pod{objects.Pod("plain").Obj(), ofTenant("acme").Obj(), licensed("user").Obj(),
			reader(objects.Pod("reader")), reader(licensed("all"))} {
			o := g.Cycle(t, p)
			judge, first, scores := g.plugin.Judge(t.Context(), o.State, p), map[string]any{}, o.Totals()
			for _, info := range g.Infos(t) {
				key, class := g.plugin.Class(candidates.Key{}, info)
				name := string(key.Fixed) + "|" + string(key.All)
				if known, ok := first[name]; ok {
					class = known
				} else {
					first[name] = class
				}
				score, passes := scores[info.Node().Name]
				if refuses := judge.Refuses(class); refuses == passes {
					t.Errorf("pod %s, node %s: Filter passes %t, the judge refuses %t", p.Name, info.Node().Name, passes, refuses)
				}
				if o.State.GetSkipScorePlugins().Has(placementpolicy.Name) || !passes {
					continue
				}
				if got, _ := judge.Score(class, info); fwk.MaxScore-got != score {
					t.Errorf("pod %s, node %s: distance %d of its class, score %d of the node", p.Name, info.Node().Name, got, score)
				}
			}
			if len(first) != 6 {
				t.Errorf("%d classes of nodes in 3 pools with 2 datasets", len(first))
			}
		}
	})
}
