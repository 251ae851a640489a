package candidates_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	v1 "k8s.io/api/core/v1"

	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// BenchmarkCycle is what one scheduling cycle of the shipped berth-scheduler profile costs, from PreFilter to the choice of
// a node, and that the pod is assumed on it:
//
//	go test ./pkg/candidates -run xxx -bench Cycle -benchtime 500x
func BenchmarkCycle(b *testing.B) {
	identical := func(_ *rand.Rand, i int) *v1.Pod { return podOf(fmt.Sprint(i), 4000, 16<<10, 1) }
	distinct := func(random *rand.Rand, i int) *v1.Pod {
		return podOf(fmt.Sprint(i), 500+random.IntN(16000), 512+random.IntN(64<<10), []int{0, 1, 1, 2, 4, 8}[random.IntN(6)])
	}
	for _, pods := range []struct {
		name string
		make func(*rand.Rand, int) *v1.Pod
	}{{"identical", identical}, {"distinct", distinct}} {
		for _, nodes := range []int{500, 5000, 10000} {
			for _, used := range []bool{false, true} {
				for _, best := range []bool{true, false} {
					name := fmt.Sprintf("pods=%s/nodes=%d/used=%t/candidates=%t", pods.name, nodes, used, best)
					b.Run(name, func(b *testing.B) {
						benchmarkCycle(b, nodes, used, best, pods.make)
					})
				}
			}
		}
	}
}

func benchmarkCycle(b *testing.B, nodes int, used, best bool, pod func(*rand.Rand, int) *v1.Pod) {
	random := rand.New(rand.NewPCG(1, 2))
	var running []*v1.Pod
	fleet := nodesOf(nodes)
	for i := range fleet {
		if !used || random.IntN(4) == 0 {
			continue
		}
		k := kinds[i%len(kinds)]
		on := podOf(fmt.Sprintf("on-%d", i), 1000*(1+random.IntN(k.cores-1)), 1024*(1+random.IntN(k.gib-1)), random.IntN(k.gpus+1))
		on.Spec.NodeName = fleet[i].Name
		running = append(running, on)
	}
	r := newRig(b, profileName, fleet, running...)
	f := map[bool]framework.Framework{true: r.best, false: r.all}[best]
	full := 0
	step := func(i int) {
		p := pod(random, i)
		result, err := r.choose(b, f, p)
		if err != nil {
			full++
			return
		}
		r.assume(b, p, result.SuggestedHost)
	}
	for i := range 100 {
		step(i)
	}
	b.ReportAllocs()
	for i := 100; b.Loop(); i++ {
		step(i)
	}
	b.ReportMetric(float64(full), "unschedulable")
}
