package coscheduling

import (
	"fmt"
	"runtime"
	"testing"

	v1 "k8s.io/api/core/v1"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"berth.dev/berth/pkg/gang"
)

// largeRoom is an account of 5,000 nodes of eight GPUs in 100 racks, each with that many pods of one GPU.
func largeRoom(podsOnNode int) *headroom {
	h := newHeadroom(unclaimed, allFilters)
	for i := range 5000 {
		node := st.MakeNode().Name(fmt.Sprintf("n%04d", i)).Label("rack", fmt.Sprintf("r%02d", i%100)).Label("kubernetes.io/hostname", fmt.Sprintf("n%04d", i)).
			Capacity(map[v1.ResourceName]string{gpu: "8", v1.ResourceCPU: "64", v1.ResourceMemory: "512Gi", v1.ResourceEphemeralStorage: "1Ti", "hugepages-1Gi": "0", v1.ResourcePods: "110"}).Obj()
		h.setNode(node)
		for k := range podsOnNode {
			h.setPod(largePod(i, k), gang.ID{Namespace: "ns", Name: "g"})
		}
	}
	return h
}

func largePod(node, k int) *v1.Pod {
	name := fmt.Sprintf("p%04d-%d", node, k)
	return st.MakePod().Name(name).UID(name).Node(fmt.Sprintf("n%04d", node)).
		Req(map[v1.ResourceName]string{gpu: "1", v1.ResourceCPU: "4", v1.ResourceMemory: "32Gi"}).Obj()
}

// askingFor returns a pod of a shape of its own.
func askingFor(i int) *v1.Pod {
	return st.MakePod().Req(map[v1.ResourceName]string{gpu: "2", v1.ResourceCPU: fmt.Sprintf("%dm", 1000+i), v1.ResourceMemory: "16Gi"}).
		NodeAffinityNotIn("rack", []string{"r00"}).Obj()
}

func BenchmarkHeadroomFirstAcquire(b *testing.B) {
	h := largeRoom(4)
	pod := askingFor(0)
	b.ReportAllocs()
	for b.Loop() {
		h.release(h.acquire(pod))
	}
}

func BenchmarkHeadroomRefresh(b *testing.B) {
	for _, dirty := range []int{1, 100} {
		b.Run(fmt.Sprintf("3000 shapes, %d nodes", dirty), func(b *testing.B) {
			h := largeRoom(4)
			for i := range 3000 {
				h.acquire(askingFor(i))
			}
			pods := make([]*v1.Pod, dirty)
			for i := range pods {
				pods[i] = largePod(i*7+1, 9)
			}
			h.refresh()
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				for _, pod := range pods {
					h.setPod(pod, gang.ID{})
				}
				h.refresh()
				for _, pod := range pods {
					h.dropPod(pod.UID)
				}
				b.StartTimer()
				h.refresh()
			}
		})
	}
}

func BenchmarkHeadroomNodeUpdate(b *testing.B) {
	h := largeRoom(4)
	for i := range 3000 {
		h.acquire(askingFor(i))
	}
	nodes := []*v1.Node{}
	for i := range 2 {
		nodes = append(nodes, h.byName["n0007"].node.DeepCopy())
		nodes[i].Annotations = map[string]string{"a": fmt.Sprint(i)}
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		h.setNode(nodes[i%2])
		h.refresh()
	}
}

func BenchmarkHeadroomPodEvent(b *testing.B) {
	h := largeRoom(4)
	pod := largePod(7, 9)
	b.ReportAllocs()
	for b.Loop() {
		h.setPod(pod, gang.ID{})
		h.dropPod(pod.UID)
	}
}

func BenchmarkHeadroomBest(b *testing.B) {
	h := largeRoom(4)
	needs := []shapeNeed{{shape: h.acquire(askingFor(0)), count: 8}}
	for _, keys := range [][]string{nil, {"rack"}} {
		b.Run(fmt.Sprint(keys), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				h.best(needs, keys, nil, false)
			}
		})
	}
}

func BenchmarkHeadroomReasons(b *testing.B) {
	h := largeRoom(4)
	key := h.acquire(askingFor(0))
	for b.Loop() {
		h.causes(key)
	}
}

func BenchmarkHeadroomCopy(b *testing.B) {
	h := largeRoom(8)
	keys := []shapeKey{h.acquire(askingFor(0))}
	b.ReportAllocs()
	for b.Loop() {
		h.cluster(keys)
	}
}

func BenchmarkShapeOf(b *testing.B) {
	pod := askingFor(0)
	b.ReportAllocs()
	for b.Loop() {
		shapeOf(pod)
	}
}

// BenchmarkHeadroomMemory reports what an account of 5,000 nodes and 40,000 pods holds, and what each live shape adds.
func BenchmarkHeadroomMemory(b *testing.B) {
	inUse := func() float64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	for b.Loop() {
		h := largeRoom(8)
		before := inUse()
		for i := range 3000 {
			h.acquire(askingFor(i))
		}
		b.ReportMetric((inUse()-before)/3000, "B/shape")
		shapes := inUse()
		pods := make([]*v1.Pod, 0, len(h.pods))
		nodes := make([]*v1.Node, 0, len(h.nodes))
		for _, p := range h.pods {
			pods = append(pods, p.pod)
		}
		for _, n := range h.nodes {
			nodes = append(nodes, n.node)
		}
		*h = headroom{}
		b.ReportMetric((shapes-inUse())/1e6, "MB/account")
		runtime.KeepAlive(pods)
		runtime.KeepAlive(nodes)
	}
}
