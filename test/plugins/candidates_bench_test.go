package plugins_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/process/schedulerconfig"
)

// BenchmarkCycle is what one scheduling cycle costs, from PreFilter to the choice of a node, and that the pod is
// assumed on it: with candidates, with all nodes, and with the stock configuration, which looks at a sample of the
// nodes. The cluster is empty but for the pods of the benchmark, or three of four nodes are used, each in another way.
//
//	go test ./test/plugins -run xxx -bench Cycle -benchtime 300x
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
				for _, look := range []string{"candidates", "all", "stock"} {
					b.Run(fmt.Sprintf("pods=%s/nodes=%d/used=%t/%s", pods.name, nodes, used, look), func(b *testing.B) {
						benchmarkCycle(b, nodes, used, look, pods.make)
					})
				}
			}
		}
	}
}

// BenchmarkTaken is what one cycle costs on 10,000 nodes when a number of them rank first and fail a filter that only
// their pods decide.
//
//	go test ./test/plugins -run xxx -bench Taken -benchtime 50x
func BenchmarkTaken(b *testing.B) {
	for _, taken := range []int{0, 500, 2000, 4000, 6000, 9000} {
		for _, look := range []string{"candidates", "all"} {
			b.Run(fmt.Sprintf("taken=%d/look=%s", taken, look), func(b *testing.B) {
				var nodes []*v1.Node
				var pods []*v1.Pod
				for i := range 10000 {
					nodes = append(nodes, nodeOf(i*len(kinds)))
					if i < taken {
						pod := podOf(fmt.Sprintf("on-%d", i), 1000+i, 1024, 0)
						pod.Spec.NodeName = nodes[i].Name
						takePort(pod)
						pods = append(pods, pod)
					}
				}
				r := newRig(b, nodes, pods...)
				f := r.all
				if look == "candidates" {
					f = r.best
				}
				next := podOf("next", 1000, 1024, 0)
				takePort(next)
				b.ReportAllocs()
				spent := processorTime(b)
				for b.Loop() {
					if _, err := r.choose(b, f, next); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(spent().Microseconds())/1000/float64(b.N), "cpu-ms/op")
			})
		}
	}
}

func benchmarkCycle(b *testing.B, nodes int, used bool, look string, pod func(*rand.Rand, int) *v1.Pod) {
	configuration, profile := shipped(b), profileName
	if look == "stock" {
		stock, err := schedulerconfig.Load(schedulerconfig.Stock)
		if err != nil {
			b.Fatal(err)
		}
		configuration, profile = stock, v1.DefaultSchedulerName
	}
	random := rand.New(rand.NewPCG(1, 2))
	var running []*v1.Pod
	fleet := nodesOf(nodes)
	for i := range fleet {
		if !used || random.IntN(4) == 0 {
			continue
		}
		k := kinds[i%len(kinds)]
		on := podOf(fmt.Sprintf("on-%d", i), 1000*(1+random.IntN(k.cores-1)), 1024*(1+random.IntN(k.gib-1)),
			random.IntN(k.gpus+1))
		on.Spec.NodeName = fleet[i].Name
		if i%50 == 1 {
			on.Labels = map[string]string{"app": "cache"}
		}
		running = append(running, on)
	}
	r := newRigWith(b, configuration, profile, fleet, running...)
	f := r.all
	if look == "candidates" {
		f = r.best
	}
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
	spent := processorTime(b)
	for i := 100; b.Loop(); i++ {
		step(i)
	}
	b.ReportMetric(float64(spent().Microseconds())/1000/float64(b.N), "cpu-ms/op")
	b.ReportMetric(float64(full), "unschedulable")
}
