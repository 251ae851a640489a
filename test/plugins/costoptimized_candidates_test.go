package plugins_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	upstream "k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/pkg/candidates"
)

// Nodes with the same key are judged alike, and as Filter and Score judge each of them.
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
		c := bill(t, nil, fleet...)
		ctx, infos := t.Context(), c.Infos(t)
		for _, spot := range []string{"avoid", "tolerate", "require"} {
			pod := eighth("p").Annotation("berth.dev/spot", spot).Obj()
			state := upstream.NewCycleState()
			if _, status, _ := c.RunPreFilterPlugins(ctx, state, pod); !status.IsSuccess() {
				t.Fatalf("PreFilter: %v", status)
			}
			if status := c.RunPreScorePlugins(ctx, state, pod, infos); !status.IsSuccess() {
				t.Fatalf("PreScore: %v", status)
			}
			judge, first := c.plugin.Judge(ctx, state, pod), map[string]any{}
			for _, info := range infos {
				key, class := c.plugin.Class(candidates.Key{}, info)
				name := string(key.Fixed) + "|" + string(key.All)
				if known, ok := first[name]; ok {
					class = known
				} else {
					first[name] = class
				}
				passes := c.plugin.Filter(ctx, state, pod, info).IsSuccess()
				if refuses := judge.Refuses(class); refuses == passes {
					t.Errorf("spot %s, node %s: Filter passes %t, the judge refuses %t", spot, info.Node().Name, passes, refuses)
				}
				want, _ := c.plugin.Score(ctx, state, pod, info)
				if got, status := judge.Score(class, info); !status.IsSuccess() || got != want {
					t.Errorf("spot %s, node %s: score %d of its class, %d of the node (%v)", spot, info.Node().Name, got, want, status)
				}
			}
			if len(first) < 10 || len(first) > 100 {
				t.Errorf("%d classes of %d nodes", len(first), len(infos))
			}
		}
	})
}
