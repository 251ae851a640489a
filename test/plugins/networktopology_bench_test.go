package plugins_test

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	upstream "k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/test/harness/objects"
)

// BenchmarkTopologyScore is what the plugin takes of one cycle on 5,000 nodes, each scored once by one goroutine, by
// how many pods the pod talks to.
//
//	go test ./test/plugins -run xxx -bench TopologyScore -benchtime 200x
func BenchmarkTopologyScore(b *testing.B) {
	const size = 5000
	var nodes []*v1.Node
	for i := range size {
		name := fmt.Sprintf("n%05d", i)
		nodes = append(nodes, objects.Labelled(objects.Node(name, "cpu", "64", "memory", "256Gi"), v1.LabelTopologyRegion,
			"r",
			v1.LabelTopologyZone, fmt.Sprintf("z%d", i*3/size), "network.topology.nvidia.com/spine", fmt.Sprintf("s%d", i/512),
			"topology.kubernetes.io/rack", fmt.Sprintf("r%d", i/32)))
	}
	const group = "scheduling.x-k8s.io/pod-group"
	for _, peers := range []int{0, 10, 1000} {
		b.Run(fmt.Sprintf("peers=%d", peers), func(b *testing.B) {
			var pods []*v1.Pod
			for i := range peers {
				pods = append(pods, talker(fmt.Sprintf("q%d", i), nodes[i*size/peers].Name).Label(group, "g").Obj())
			}
			r := newRig(b, nodes, pods...)
			plugin := topologyOf(b, r)
			p := talker("p", "").Obj()
			if peers > 0 {
				p = talker("p", "").Label(group, "g").Obj()
			}
			infos, scores := r.infos(b), make(fwk.NodeScoreList, size)
			b.ReportAllocs()
			used := processorTime(b)
			for b.Loop() {
				state := upstream.NewCycleState()
				_, status := plugin.PreFilter(r.ctx, state, p, infos)
				if status.IsSkip() {
					continue
				}
				if status := plugin.PreScore(r.ctx, state, p, infos); !status.IsSuccess() {
					b.Fatal(status)
				}
				for i, info := range infos {
					scores[i].Score, _ = plugin.Score(r.ctx, state, p, info)
				}
				plugin.NormalizeScore(r.ctx, state, p, scores)
			}
			b.ReportMetric(float64(used().Microseconds())/1000/float64(b.N), "cpu-ms/op")
		})
	}
}
