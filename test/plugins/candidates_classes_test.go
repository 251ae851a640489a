package plugins_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/candidates"
	"berth.dev/berth/test/harness/framework"
	"berth.dev/berth/test/harness/objects"
)

// ranker is a plugin of ours that ranks classes of nodes.
type ranker interface {
	candidates.Ranker
	fwk.FilterPlugin
	fwk.ScorePlugin
}

// judgesClasses compares what the plugin says of classes with what Filter and Score say of each node, and returns how
// many classes there are. Nodes with the same key are judged alike.
func judgesClasses(t *testing.T, s *framework.Scheduler, plugin ranker, pod *v1.Pod) int {
	t.Helper()
	o, infos := s.Cycle(t, pod), s.Infos(t)
	judge, first, scores := plugin.Judge(t.Context(), o.State, pod), map[string]any{}, o.Totals()
	for _, info := range infos {
		name := info.Node().Name
		key, class := plugin.Class(candidates.Key{}, info)
		id := string(key.Fixed) + "|" + string(key.All)
		if known, ok := first[id]; ok {
			class = known
		} else {
			first[id] = class
		}
		_, passes := scores[name]
		if refuses := judge.Refuses(class); refuses == passes {
			t.Errorf("pod %s, node %s: Filter passes %t, the judge refuses %t", pod.Name, name, passes, refuses)
		}
		if !passes || o.State.GetSkipScorePlugins().Has(plugin.Name()) {
			continue
		}
		want, _ := plugin.Score(t.Context(), o.State, pod, info)
		if got, status := judge.Score(class, info); !status.IsSuccess() || got != want {
			t.Errorf("pod %s, node %s: score %d of its class, %d of the node (%v)", pod.Name, name, got, want, status)
		}
	}
	return len(first)
}

func TestAClassIsPricedAsItsNodesAre(t *testing.T) {
	bubble(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(1, 1))
		var fleet []runtime.Object
		for i := range 120 {
			name := fmt.Sprintf("n%d", i)
			n := priced(name, []string{"8", "16", ""}[random.IntN(3)])
			if random.IntN(3) == 0 {
				n = smallPriced(name, "2")
			}
			if random.IntN(3) == 0 {
				n.Labels = map[string]string{"karpenter.sh/capacity-type": "spot"}
			}
			if random.IntN(4) == 0 {
				metav1.SetMetaDataAnnotation(&n.ObjectMeta, "karpenter.sh/do-not-disrupt", "true")
			}
			if random.IntN(8) == 0 {
				n.Spec.Taints = []v1.Taint{{Key: "karpenter.sh/disrupted", Effect: v1.TaintEffectPreferNoSchedule}}
			}
			fleet = append(fleet, n)
			for j := range random.IntN(4) {
				fleet = append(fleet, eighth(fmt.Sprintf("%s-%d", name, j)).Node(name).Obj())
			}
		}
		b := bill(t, nil, fleet...)
		for _, spot := range []string{"avoid", "tolerate", "require"} {
			n := judgesClasses(t, b.Scheduler, b.plugin, eighth(spot).Annotation(spotKey, spot).Obj())
			if n < 10 || n > 100 {
				t.Errorf("%d classes of 120 nodes", n)
			}
		}
	})
}

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
		const data, imagenet = "berth.dev/datasets", "imagenet"
		for _, p := range []*v1.Pod{objects.Pod("plain").Obj(), ofTenant("acme").Obj(), licensed("user").Obj(),
			objects.Pod("reader").Annotation(data, imagenet).Obj(), licensed("all").Annotation(data, imagenet).Obj()} {
			if n := judgesClasses(t, g.Scheduler, g.plugin, p); n != 6 {
				t.Errorf("%d classes of nodes in 3 pools with 2 datasets", n)
			}
		}
	})
}
