package plugins_test

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"
	upstream "k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/test/harness/objects"
)

// phases runs those of the plugin for one pod, from PreFilter to Score.
func (g *governed) phases(b *testing.B, infos []fwk.NodeInfo, pod *v1.Pod) {
	b.Helper()
	ctx, state := b.Context(), upstream.NewCycleState()
	_, status := g.plugin.PreFilter(ctx, state, pod, infos)
	if !status.IsSuccess() && !status.IsSkip() {
		b.Fatal(status)
	}
	passed := infos
	if !status.IsSkip() {
		passed = passed[:0:0]
		for _, info := range infos {
			if g.plugin.Filter(ctx, state, pod, info).IsSuccess() {
				passed = append(passed, info)
			}
		}
	}
	if len(passed) == 0 {
		b.Fatal("no node fits")
	}
	if g.plugin.PreScore(ctx, state, pod, passed).IsSkip() {
		return
	}
	for _, info := range passed {
		if _, status := g.plugin.Score(ctx, state, pod, info); !status.IsSuccess() {
			b.Fatal(status)
		}
	}
}

// BenchmarkPolicyPhases is what PlacementPolicy alone adds to a scheduling cycle that looks at all of 5,000 nodes, with
// policies of a license, a dataset and a rule by an expression each, for pods that no rule concerns and for pods that
// one policy concerns. Every pod is new.
//
//	go test ./test/plugins -run xxx -bench PolicyPhases
func BenchmarkPolicyPhases(b *testing.B) {
	for _, policies := range []int{0, 10, 100} {
		all, policyOf := []runtime.Object{objects.Namespace("default")}, specs{}
		for i := range policies {
			policyOf[fmt.Sprint("policy-", i)] = fmt.Sprintf(`{licenses: [{name: tool-%[1]d, count: 1000000}],
datasets: [{name: data-%[1]d, nodes: {selector: {matchLabels: {zone: z1}}}}],
compliance: {rules: [{name: zone, pods: {expression: "pod.labels[?'tenant'].orValue('') == 'tenant-%[1]d'"}, nodes: {expression: "node.labels[?'zone'].orValue('') != 'z2'"}}]}}`, i)
		}
		for i := range 5000 {
			name := fmt.Sprintf("n%04d", i)
			all = append(all, pooled(name, "zone", fmt.Sprint("z", i%3), "kubernetes.io/hostname", name))
		}
		for _, concerned := range []bool{false, true}[:min(policies+1, 2)] {
			b.Run(fmt.Sprintf("policies=%d/concerned=%t", policies, concerned), func(b *testing.B) {
				g := govern(b, policyOf, all...)
				infos := g.Infos(b)
				used := processorTime(b)
				for i := 0; b.Loop(); i++ {
					p := objects.Pod(fmt.Sprint("p", i)).Label("index", fmt.Sprint(i))
					if concerned {
						p = p.Label("tenant", "tenant-1").Annotation("berth.dev/licenses", "tool-1").Annotation("berth.dev/datasets",
							"data-1")
					}
					g.phases(b, infos, p.Obj())
				}
				b.ReportMetric(float64(used().Nanoseconds())/1000/float64(b.N), "cpu-µs/op")
			})
		}
	}
}
