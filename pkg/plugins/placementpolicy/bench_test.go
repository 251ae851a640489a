package placementpolicy

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// BenchmarkPhases is what the plugin alone adds to a scheduling cycle that looks at all of 5,000 nodes, from PreFilter to the
// scores, with policies of a license, a dataset and a rule by an expression each, for pods that no rule concerns and for pods
// that one policy concerns. Every pod is new.
//
//	go test ./pkg/plugins/placementpolicy -run xxx -bench Phases
func BenchmarkPhases(b *testing.B) {
	for _, policies := range []int{0, 10, 100} {
		for _, concerned := range []bool{false, true} {
			if policies > 0 || !concerned {
				b.Run(fmt.Sprintf("policies=%d/concerned=%t", policies, concerned), func(b *testing.B) { benchmarkPhases(b, policies, concerned) })
			}
		}
	}
}

func benchmarkPhases(b *testing.B, policies int, concerned bool) {
	specs := specs{}
	for i := range policies {
		specs[fmt.Sprint("policy-", i)] = fmt.Sprintf(`{licenses: [{name: tool-%[1]d, count: 1000000}],
datasets: [{name: data-%[1]d, nodes: {selector: {matchLabels: {zone: z1}}}}],
compliance: {rules: [{name: zone, pods: {expression: "pod.labels[?'tenant'].orValue('') == 'tenant-%[1]d'"}, nodes: {expression: "node.labels[?'zone'].orValue('') != 'z2'"}}]}}`, i)
	}
	objects := []runtime.Object{namespace("default")}
	for i := range 5000 {
		objects = append(objects, node(fmt.Sprintf("n%04d", i), "zone", fmt.Sprint("z", i%3), "kubernetes.io/hostname", fmt.Sprintf("n%04d", i)))
	}
	c := newCluster(b, specs, objects...)
	infos := c.framework.Infos(b)
	step := func(i int) {
		p := pod(fmt.Sprint("p", i)).Label("index", fmt.Sprint(i))
		if concerned {
			p = p.Label("tenant", "tenant-1").Annotation("berth.dev/licenses", "tool-1").Annotation("berth.dev/datasets", "data-1")
		}
		cycle(b, c, infos, p.Obj())
	}
	for i := range 3 {
		step(i)
	}
	b.ReportAllocs()
	before := processorTime(b)
	for i := 3; b.Loop(); i++ {
		step(i)
	}
	b.ReportMetric(float64((processorTime(b)-before).Microseconds())/float64(b.N), "cpu-µs/op")
}

// processorTime is what this process has used: unlike the time on a clock it does not depend on who else uses the machine.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// cycle runs the plugin's phases for one pod.
func cycle(b *testing.B, c *cluster, infos []fwk.NodeInfo, pod *v1.Pod) {
	b.Helper()
	state, ctx := framework.NewCycleState(), b.Context()
	_, status := c.plugin.PreFilter(ctx, state, pod, infos)
	if !status.IsSuccess() && !status.IsSkip() {
		b.Fatal(status)
	}
	passed := infos
	if !status.IsSkip() {
		passed = passed[:0:0]
		for _, info := range infos {
			if c.plugin.Filter(ctx, state, pod, info).IsSuccess() {
				passed = append(passed, info)
			}
		}
	}
	if len(passed) == 0 {
		b.Fatal("no node fits")
	}
	if status := c.plugin.PreScore(ctx, state, pod, passed); status.IsSkip() {
		return
	}
	for _, info := range passed {
		if _, status := c.plugin.Score(ctx, state, pod, info); !status.IsSuccess() {
			b.Fatal(status)
		}
	}
}
