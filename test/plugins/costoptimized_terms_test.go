package plugins_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/cost/price"
	"berth.dev/berth/test/harness/objects"
	"berth.dev/berth/test/harness/require"
)

func TestTermsOfCostAddUpToTheScore(t *testing.T) {
	bubble(t, func(t *testing.T) {
		greedy := objects.Pod("greedy", "cpu", "94", "memory", "64Gi", "nvidia.com/gpu", "1").
			SchedulerName(costProfile).Annotation(spotKey, "tolerate").Obj()
		leaving := priced("leaving", "1")
		leaving.Spec.Taints = []v1.Taint{{Key: "karpenter.sh/disrupted", Effect: v1.TaintEffectPreferNoSchedule}}
		c := bill(t, nil, priced("used", "24"), priced("empty", "24"), priced("unknown", ""), leaving,
			priced("spot", "8", karpenterLabel, "spot"), eighth("on-used").Node("used").Obj())
		state := c.Cycle(t, greedy).State
		named, unsaid := map[string]string{}, []string{}
		for _, info := range c.Infos(t) {
			name := info.Node().Name
			raw, status := c.plugin.Score(t.Context(), state, greedy, info)
			if !status.IsSuccess() {
				t.Fatal(status)
			}
			cost, err := c.plugin.Terms(t.Context(), state, greedy, info)
			require.NoError(t, err)
			sum := 0.0
			for _, term := range cost.Terms {
				sum += term.Amount
				if term.Amount != 0 {
					named[name] += fmt.Sprintf("%s; ", term.Name)
				}
			}
			if len(cost.Terms) == 0 {
				unsaid = append(unsaid, name)
				continue
			}
			if got := int64(math.Round(sum * float64(price.Dollar))); got != raw || cost.Unit != "dollars an hour" {
				t.Errorf("node %s: the terms add up to %d millionths of %s, want %d: %+v",
					name, got, cost.Unit, raw, cost.Terms)
			}
		}
		if diff := cmp.Diff([]string{"leaving", "unknown"}, slices.Sorted(slices.Values(unsaid))); diff != "" {
			t.Errorf("nodes without terms (-want +got):\n%s", diff)
		}
		want := map[string]string{
			"used": "share; stranded GPU; ", "empty": "share; opening; stranded GPU; ",
			"spot": "share; opening; stranded GPU; interruption; ",
		}
		if diff := cmp.Diff(want, named); diff != "" {
			t.Errorf("terms that are not zero (-want +got):\n%s", diff)
		}
	})
}
