package explain

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"berth.dev/berth/pkg/process"
	"berth.dev/berth/test/harness/assert"
)

func TestOneSentenceSaysWhy(t *testing.T) {
	t.Parallel()
	taint := v1.Taint{Key: "team", Value: "x", Effect: v1.TaintEffectNoSchedule}
	member := func(name string) *v1.Pod { return ofGang(name, "", "1", "3") }
	priced := func(n *v1.Node, perHour string) *v1.Node {
		n.Annotations = map[string]string{"berth.dev/price-per-hour": perHour}
		return n
	}
	both := pod("p", "", "1", 0)
	both.Spec.SchedulerName = "berth-scheduler"
	for _, tt := range []struct {
		name    string
		pod     *v1.Pod
		objects []runtime.Object
		want    string
	}{
		{"a node that is fuller", pod("p", "", "1", 0), []runtime.Object{node("a", "8"), node("b", "8"),
			pod("q", "a", "7", 0)},
			"a wins: it wastes 0.02 GPUs; b would waste"},
		{"money and GPUs", both, []runtime.Object{priced(node("a", "8"), "24"), priced(node("b", "8"), "30"),
			pod("q", "a", "4", 0)},
			"a wins: it costs $2.88 per hour; b would cost $27.12 more per hour (mostly for "},
		{"the only node", pod("p", "", "1", 0), []runtime.Object{node("a", "8")}, "a wins: it is the only node."},
		{"the only node that fits", pod("p", "", "1", 0), []runtime.Object{node("a", "8"), node("c", "8", taint)},
			"a wins: no other node fits; of the other 1, 1 had untolerated taint"},
		{"too little is free", pod("p", "", "8", 0), []runtime.Object{node("a", "8"), pod("q", "a", "2", 0)},
			"No node fits: of 1 node, 1 with too few free GPUs (need 8, have 6; GPUAware); a comes closest and would need 8 " +
				"nvidia.com/gpu free instead of 6."},
		{"no node is large enough", pod("p", "", "16", 0), []runtime.Object{node("a", "8")},
			"; no node has 16 nvidia.com/gpu in all, the largest has 8."},
		{"a node with too little free that would not take it empty either", pod("p", "", "8", 0),
			[]runtime.Object{node("a", "8", taint), node("b", "8"), pod("q", "a", "1", 0), pod("r", "b", "4", 0)},
			"; b comes closest and would need 8 nvidia.com/gpu free instead of 4."},
		{"a gang that lacks members", member("g-0"), []runtime.Object{node("a", "8"), member("g-0")},
			"; it is planned when 2 more pods exist."},
		{"a gang that fits", member("g-0"), []runtime.Object{node("a", "8"), member("g-0"), member("g-1"), member("g-2")},
			"Its gang starts as a whole: 3 members fit on 1 node, this one on a."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := ask(t, tt.pod, tt.objects...).Verdict; !strings.Contains(got, tt.want) {
				t.Errorf("got %q, want %q in it", got, tt.want)
			}
		})
	}
}

func TestAMemberWaitsForItsPodGroup(t *testing.T) {
	t.Parallel()
	e := &Explanation{Gang: &Gang{Name: "ns/train", Pending: 1,
		Missing: "waiting for PodGroup ns/train, which does not exist"}}
	const want = "It waits for PodGroup ns/train, which does not exist."
	assert.Equal(t, "", want, e.sentence())
}

func TestASentenceNamesWhatMattersMost(t *testing.T) {
	t.Parallel()
	score := func(plugin string, points int64, unit string, total float64, reason string) Score {
		s := Score{Plugin: plugin, Normalised: points, Weight: 1, Weighted: points}
		if unit != "" {
			s.Cost = &Cost{Unit: unit, Total: total, Terms: []process.Term{{Name: "t", Amount: total, For: reason}}}
		}
		return s
	}
	of := func(name string, scores ...Score) *Node {
		n := &Node{Name: name, Scores: scores}
		for _, s := range scores {
			n.Total += s.Weighted
		}
		return n
	}
	for _, tt := range []struct {
		name          string
		first, second *Node
		tied          int
		want          string
	}{
		{"as a person would say it",
			of("a100-9", score("CostOptimized", 100, dollars, 0, ""), score("GPUAware", 100, milliGPU, 0, "")),
			of("a100-3", score("CostOptimized", 20, dollars, 3.1, "opening a node"),
				score("GPUAware", 30, milliGPU, 2000, "stranded GPUs")), 1,
			"a100-9 wins: it adds nothing to the bill and wastes no GPU; a100-3 would cost $3.10 more per hour (mostly for " +
				"opening a node) and waste 2 GPUs more (mostly for stranded GPUs)."},
		{"a plugin without a cost", of("a", score("TaintToleration", 100, "", 0, "")),
			of("b", score("TaintToleration", 0, "", 0, "")), 3,
			"a wins (2 other nodes are as good): it has fewer taints that the pod would rather avoid."},
		{"a plugin that nobody knows", of("a", score("Mine", 1, "", 0, "")), of("b", score("Mine", 0, "", 0, "")), 2,
			"a wins (1 other node is as good): it gets 1 point more from Mine."},
		{"a plugin that is against it",
			of("a", score("Mine", 100, "", 0, ""), score("ImageLocality", 0, "", 0, "")),
			of("b", score("Mine", 0, "", 0, ""), score("ImageLocality", 90, "", 0, "")), 1,
			"a wins: it gets 100 points more from Mine, though ImageLocality prefers b."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, "sentence", tt.want, contrast(tt.first, tt.second, compare(tt.first, tt.second).Differences,
				tt.tied))
		})
	}
}
