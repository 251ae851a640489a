package gpuaware

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// BenchmarkCycle is what GPUAware costs in one scheduling cycle at 5,000 GPU nodes: PreFilter once, then Filter and
// Score of every node. Between cycles one node changes, as it does when a pod is bound.
func BenchmarkCycle(b *testing.B) {
	for _, bc := range []struct {
		name string
		pod  func(i int) *v1.Pod
	}{
		{"identical whole GPUs", func(int) *v1.Pod { return podObject("p", strs{"nvidia.com/gpu": "2"}, nil) }},
		{"distinct whole GPUs", func(i int) *v1.Pod {
			return podObject("p", strs{"nvidia.com/gpu": fmt.Sprint(1 + i%8), "cpu": fmt.Sprint(1 + i%40)}, nil)
		}},
		{"distinct shares", func(i int) *v1.Pod {
			return podObject("p", strs{"cpu": fmt.Sprint(1 + i%40)}, strs{"alibabacloud.com/gpu-milli": fmt.Sprint(10 + i%990)})
		}},
		{"no GPU", func(int) *v1.Pod { return podObject("p", strs{"cpu": "2"}, nil) }},
	} {
		b.Run(bc.name, func(b *testing.B) {
			h := busyCluster(b, 5000)
			infos, err := h.Snapshot.NodeInfos().List()
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				b.StopTimer()
				changed := podObject(fmt.Sprintf("changed-%d", i), strs{"cpu": "100m"}, nil)
				infos[i%len(infos)].(*framework.NodeInfo).AddPod(changed)
				b.StartTimer()
				cycle(b, h.plugin, bc.pod(i), infos)
			}
			values := h.plugin.cluster.views.totals.cacheCounts()
			b.ReportMetric(100*float64(values.hits)/float64(max(1, values.hits+values.misses)), "cache-hit-%")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(infos)), "ns/node")
		})
	}
}

// busyCluster has half of its nodes shared, and all of them partly used in many ways.
func busyCluster(tb testing.TB, nodes int) *harness {
	tb.Helper()
	var objects []runtime.Object
	for i := range nodes {
		name := fmt.Sprintf("n%d", i)
		node := gpuNodeObject(name, 8, []string{"Tesla-T4", "NVIDIA-A10", "NVIDIA-A100-SXM4-80GB"}[i%3])
		if i%2 == 0 {
			node = sharedNode(name, 8)
		}
		objects = append(objects, node)
		pod := podObject("on-"+name, strs{"cpu": fmt.Sprint(1 + i%50), "nvidia.com/gpu": fmt.Sprint(1 + i%8)}, nil)
		pod.Spec.NodeName = name
		objects = append(objects, pod)
	}
	h := newHarness(tb, alone(defaultArgs()), objects...)
	for i := range 500 {
		h.plugin.cluster.runs(podObject(fmt.Sprint(i),
			strs{"cpu": fmt.Sprint(1 + i%16), "nvidia.com/gpu": fmt.Sprint(1 + i%4)}, nil))
		h.plugin.cluster.runs(podObject(fmt.Sprint(i), strs{"cpu": fmt.Sprint(1 + i%16)},
			strs{"gpu-fraction": fmt.Sprintf("0.%d", 1+i%9)}))
	}
	if err := h.Cache.UpdateSnapshot(h.logger, h.Snapshot); err != nil {
		tb.Fatal(err)
	}
	return h
}

func cycle(b *testing.B, p *Plugin, pod *v1.Pod, infos []fwk.NodeInfo) {
	b.Helper()
	ctx, state := b.Context(), framework.NewCycleState()
	_, status := p.PreFilter(ctx, state, pod, infos)
	skip := status.IsSkip()
	var scores fwk.NodeScoreList
	for _, info := range infos {
		if !skip && !p.Filter(ctx, state, pod, info).IsSuccess() {
			continue
		}
		score, status := p.Score(ctx, state, pod, info)
		if !status.IsSuccess() {
			b.Fatal(status)
		}
		scores = append(scores, fwk.NodeScore{Name: info.Node().Name, Score: score})
	}
	if status := p.NormalizeScore(ctx, state, pod, scores); !status.IsSuccess() {
		b.Fatal(status)
	}
}
