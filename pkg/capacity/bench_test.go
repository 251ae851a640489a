package capacity

import (
	"fmt"
	"runtime"
	"testing"

	v1 "k8s.io/api/core/v1"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"berth.dev/berth/pkg/gang"
)

// largeRoom is an index of 5,000 nodes of eight GPUs in 100 racks, each with that many pods of one GPU.
func largeRoom(podsOnNode int) *Index {
	x := New(unclaimed, allFilters)
	for i := range 5000 {
		node := st.MakeNode().Name(fmt.Sprintf("n%04d", i)).Label("rack",
			fmt.Sprintf("r%02d", i%100)).Label("kubernetes.io/hostname", fmt.Sprintf("n%04d", i)).
			Capacity(map[v1.ResourceName]string{gpu: "8", v1.ResourceCPU: "64", v1.ResourceMemory: "512Gi",
				v1.ResourceEphemeralStorage: "1Ti", "hugepages-1Gi": "0", v1.ResourcePods: "110"}).Obj()
		x.Feed.SetNode(node)
		for k := range podsOnNode {
			x.Feed.SetPod(largePod(i, k), gang.ID{Namespace: "ns", Name: "g"})
		}
	}
	return x
}

func largePod(node, k int) *v1.Pod {
	name := fmt.Sprintf("p%04d-%d", node, k)
	return st.MakePod().Name(name).UID(name).Node(fmt.Sprintf("n%04d", node)).
		Req(map[v1.ResourceName]string{gpu: "1", v1.ResourceCPU: "4", v1.ResourceMemory: "32Gi"}).Obj()
}

// askingFor returns a pod of a shape of its own.
func askingFor(i int) *v1.Pod {
	return st.MakePod().Req(map[v1.ResourceName]string{gpu: "2", v1.ResourceCPU: fmt.Sprintf("%dm", 1000+i),
		v1.ResourceMemory: "16Gi"}).
		NodeAffinityNotIn("rack", []string{"r00"}).Obj()
}

func BenchmarkIndexFirstAcquire(b *testing.B) {
	x := largeRoom(4)
	pod := askingFor(0)
	b.ReportAllocs()
	for b.Loop() {
		x.Release(x.Acquire(pod))
	}
}

func BenchmarkIndexRefresh(b *testing.B) {
	for _, dirty := range []int{1, 100} {
		b.Run(fmt.Sprintf("3000 shapes, %d nodes", dirty), func(b *testing.B) {
			x := largeRoom(4)
			for i := range 3000 {
				x.Acquire(askingFor(i))
			}
			pods := make([]*v1.Pod, dirty)
			for i := range pods {
				pods[i] = largePod(i*7+1, 9)
			}
			x.Looks.Refresh()
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				for _, pod := range pods {
					x.Feed.SetPod(pod, gang.ID{})
				}
				x.Looks.Refresh()
				for _, pod := range pods {
					x.Feed.DropPod(pod.UID)
				}
				b.StartTimer()
				x.Looks.Refresh()
			}
		})
	}
}

func BenchmarkIndexNodeUpdate(b *testing.B) {
	x := largeRoom(4)
	for i := range 3000 {
		x.Acquire(askingFor(i))
	}
	nodes := []*v1.Node{}
	for i := range 2 {
		nodes = append(nodes, x.nodes.byName["n0007"].node.DeepCopy())
		nodes[i].Annotations = map[string]string{"a": fmt.Sprint(i)}
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		x.Feed.SetNode(nodes[i%2])
		x.Looks.Refresh()
	}
}

func BenchmarkIndexPodEvent(b *testing.B) {
	x := largeRoom(4)
	pod := largePod(7, 9)
	b.ReportAllocs()
	for b.Loop() {
		x.Feed.SetPod(pod, gang.ID{})
		x.Feed.DropPod(pod.UID)
	}
}

func BenchmarkIndexBest(b *testing.B) {
	x := largeRoom(4)
	needs := []Need{{Shape: x.Acquire(askingFor(0)), Count: 8}}
	for _, keys := range [][]string{nil, {"rack"}} {
		b.Run(fmt.Sprint(keys), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				x.Best(needs, keys, nil, false)
			}
		})
	}
}

func BenchmarkIndexReasons(b *testing.B) {
	x := largeRoom(4)
	key := x.Acquire(askingFor(0))
	for b.Loop() {
		x.Causes(key, nil, nil, nil)
	}
}

func BenchmarkIndexCopy(b *testing.B) {
	x := largeRoom(8)
	keys := []ShapeKey{x.Acquire(askingFor(0))}
	b.ReportAllocs()
	for b.Loop() {
		x.Snapshot(keys)
	}
}

func BenchmarkShapeOf(b *testing.B) {
	pod := askingFor(0)
	b.ReportAllocs()
	for b.Loop() {
		shapeOf(pod)
	}
}

// BenchmarkIndexMemory reports what an index of 5,000 nodes and 40,000 pods holds, and what each live shape adds.
func BenchmarkIndexMemory(b *testing.B) {
	inUse := func() float64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	for b.Loop() {
		x := largeRoom(8)
		before := inUse()
		for i := range 3000 {
			x.Acquire(askingFor(i))
		}
		b.ReportMetric((inUse()-before)/3000, "B/shape")
		shapes := inUse()
		pods := make([]*v1.Pod, 0, len(x.pods.byUID))
		nodes := make([]*v1.Node, 0, len(x.nodes.slots))
		for _, p := range x.pods.byUID {
			pods = append(pods, p.Object)
		}
		for _, n := range x.nodes.slots {
			nodes = append(nodes, n.node)
		}
		*x = Index{}
		b.ReportMetric((shapes-inUse())/1e6, "MB/index")
		runtime.KeepAlive(pods)
		runtime.KeepAlive(nodes)
	}
}
