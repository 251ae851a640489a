package costoptimized

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"berth.dev/berth/pkg/price"
)

func TestTermsAddUpToTheScore(t *testing.T) {
	t.Parallel()
	greedy := st.MakePod().Namespace("default").Name("greedy").UID("greedy").
		SchedulerName(profile).Annotation(spotKey, "tolerate").
		Req(map[v1.ResourceName]string{"cpu": "94", "memory": "64Gi", "nvidia.com/gpu": "1"}).Obj()
	leaving := node("leaving", "1")
	leaving.Spec.Taints = []v1.Taint{{Key: "karpenter.sh/disrupted", Effect: v1.TaintEffectPreferNoSchedule}}
	c := newCluster(t, nil, []runtime.Object{node("used", "24"), node("empty", "24"), node("unknown", ""), leaving,
		node("spot", "8", karpenterLabel, "spot"), eighth("on-used").Node("used").Obj()})
	state := framework.NewCycleState()
	_, status, _ := c.framework.RunPreFilterPlugins(t.Context(), state, greedy)
	if !status.IsSuccess() && !status.IsSkip() {
		t.Fatal(status)
	}
	if status := c.framework.RunPreScorePlugins(t.Context(), state, greedy, c.infos); !status.IsSuccess() {
		t.Fatal(status)
	}
	named := map[string]string{}
	for _, info := range c.infos {
		name := info.Node().Name
		raw, status := c.plugin.Score(t.Context(), state, greedy, info)
		if !status.IsSuccess() {
			t.Fatal(status)
		}
		cost, err := c.plugin.Terms(t.Context(), state, greedy, info)
		if err != nil {
			t.Fatal(err)
		}
		sum := 0.0
		for _, term := range cost.Terms {
			sum += term.Amount
			if term.Amount != 0 {
				named[name] += fmt.Sprintf("%s; ", term.Name)
			}
		}
		if len(cost.Terms) == 0 {
			if raw != rawUnknown && raw != rawLast {
				t.Errorf("node %s has the score %d and no terms", name, raw)
			}
			continue
		}
		if got := int64(math.Round(sum * float64(price.Dollar))); got != raw || cost.Unit != "dollars an hour" {
			t.Errorf("node %s: the terms add up to %d millionths of %s, want %d: %+v",
				name, got, cost.Unit, raw, cost.Terms)
		}
	}
	want := map[string]string{
		"used": "share; stranded GPU; ", "empty": "share; opening; stranded GPU; ",
		"spot": "share; opening; stranded GPU; interruption; ",
	}
	if diff := cmp.Diff(want, named); diff != "" {
		t.Errorf("terms that are not zero (-want +got):\n%s", diff)
	}
}
