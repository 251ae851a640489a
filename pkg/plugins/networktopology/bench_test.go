package networktopology_test

import (
	"fmt"
	"syscall"
	"testing"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

// BenchmarkScore is what the plugin takes of one cycle on 5,000 nodes, each scored once by one goroutine, by how many pods the
// pod talks to.
//
//	go test ./pkg/plugins/networktopology -run xxx -bench Score -benchtime 200x
func BenchmarkScore(b *testing.B) {
	const size = 5000
	var nodes []*v1.Node
	for i := range size {
		name := fmt.Sprintf("n%05d", i)
		nodes = append(nodes, st.MakeNode().Name(name).UID(name).Label(v1.LabelTopologyRegion, "r").
			Label(v1.LabelTopologyZone, fmt.Sprintf("z%d", i*3/size)).Label("network.topology.nvidia.com/spine", fmt.Sprintf("s%d", i/512)).
			Label("topology.kubernetes.io/rack", fmt.Sprintf("r%d", i/32)).
			Capacity(map[v1.ResourceName]string{"cpu": "64", "memory": "256Gi", "pods": "110"}).Obj())
	}
	for _, peers := range []int{0, 10, 1000} {
		b.Run(fmt.Sprintf("peers=%d", peers), func(b *testing.B) {
			var pods []*v1.Pod
			for i := range peers {
				pods = append(pods, pod(fmt.Sprintf("q%d", i), nodes[i*size/peers].Name).Label("app", "cache").Obj())
			}
			r := newRig(b, nil, nodes, pods...)
			plugin := r.plugin(b)
			p := pod("p", "").Obj()
			if peers > 0 {
				p = pod("p", "").Annotation("berth.dev/near", "app=cache").Obj()
			}
			scores := make(fwk.NodeScoreList, size)
			b.ReportAllocs()
			before := processorTime(b)
			for b.Loop() {
				state := framework.NewCycleState()
				_, status := plugin.PreFilter(r.ctx, state, p, r.infos)
				if status.IsSkip() {
					continue
				}
				if status := plugin.PreScore(r.ctx, state, p, r.infos); !status.IsSuccess() {
					b.Fatal(status)
				}
				for i, info := range r.infos {
					scores[i].Score, _ = plugin.Score(r.ctx, state, p, info)
				}
				plugin.NormalizeScore(r.ctx, state, p, scores)
			}
			b.ReportMetric((processorTime(b)-before)/float64(b.N)*1000, "cpu-ms/op")
		})
	}
}

// processorTime is what this process has used, in seconds: unlike the time on a clock it does not depend on who else
// uses the machine.
func processorTime(b *testing.B) float64 {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
}
