package overview

import (
	"fmt"
	"runtime"
	"testing"
)

// large is a cluster of nodes with 8 GPUs, with ten pods on each and one pending pod a node.
func large(nodes int) *Book {
	b := newBook()
	for i := range nodes {
		name := fmt.Sprint("node-", i)
		b.Set(node(name, "nvidia.com/gpu=8"))
		for j := range 10 {
			b.Set(pod(fmt.Sprint(name, "-", j), name, fmt.Sprintf("cpu=%dm nvidia.com/gpu=%d", 500+j, j%2)))
		}
		b.Set(pod(fmt.Sprint("waits-", i), "", fmt.Sprintf("cpu=%d nvidia.com/gpu=%d", 1+i%50, 1+i%8),
			refused("no node fits")))
	}
	return b
}

// BenchmarkCluster is a picture of a cluster in which one node has changed. bytes/pod is what the book keeps.
func BenchmarkCluster(b *testing.B) {
	for _, nodes := range []int{500, 5000} {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			book := large(nodes)
			runtime.GC()
			runtime.ReadMemStats(&after)
			changed := pod("node-7-3", "node-7", "cpu=1 nvidia.com/gpu=1")
			book.Cluster(now)
			for b.Loop() {
				book.Set(changed)
				book.Cluster(now)
			}
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(11*nodes), "bytes/pod")
			runtime.KeepAlive(book)
		})
	}
}
