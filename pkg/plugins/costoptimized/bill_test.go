package costoptimized

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"pgregory.net/rapid"

	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/pkg/informers"
	"berth.dev/berth/pkg/wellknown"
	"berth.dev/berth/test/harness/objects"
)

// cached are the caches of informers that bills are made from.
type cached struct {
	settings    *settings
	factory     kubeinformers.SharedInformerFactory
	nodes, pods cache.Indexer
	version     int
}

func newCached(t testing.TB) *cached {
	args := &config.CostOptimizedArgs{}
	config.SetDefaultsCostOptimizedArgs(args)
	s, err := readArgs(args, "p")
	if err != nil {
		t.Fatal(err)
	}
	factory := kubeinformers.NewSharedInformerFactory(fake.NewClientset(), 0)
	return &cached{settings: s, factory: factory, nodes: factory.Core().V1().Nodes().Informer().GetIndexer(),
		pods: factory.Core().V1().Pods().Informer().GetIndexer()}
}

func (c *cached) biller(t testing.TB) *biller {
	byNode, err := informers.NewByNode[atomic.Pointer[nodeView]](c.factory)
	if err != nil {
		t.Fatal(err)
	}
	return newBiller(c.settings, &nodeViews{ByNode: byNode, settings: c.settings}, c.factory.Core().V1().Nodes().Lister(),
		c.factory.Core().V1().Pods().Lister())
}

// put stores an object as the API server's next version.
func (c *cached) put(t testing.TB, in cache.Indexer, object metav1.Object) {
	c.version++
	object.SetResourceVersion(fmt.Sprint(c.version))
	if err := in.Update(object); err != nil {
		t.Fatal(err)
	}
}

func billNode(name, gpus, price string) *v1.Node {
	node := objects.Node(name, "cpu", "96", "memory", "1Ti", "nvidia.com/gpu", gpus).Obj()
	node.Annotations = map[string]string{wellknown.PricePerHourKey: price}
	return node
}

// A bill that keeps what has not changed is the one that is made afresh, after any history.
func TestBillIsThatOfARecount(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		c := newCached(t)
		kept := c.biller(t)
		for range rapid.IntRange(1, 40).Draw(r, "changes") {
			name := fmt.Sprintf("n-%d", rapid.IntRange(0, 3).Draw(r, "node"))
			pod := objects.Pod(fmt.Sprintf("p-%d", rapid.IntRange(0, 5).Draw(r, "pod")), "cpu", "40", "nvidia.com/gpu",
				rapid.SampledFrom([]string{"0", "1", "2"}).Draw(r, "GPUs")).Obj()
			switch rapid.IntRange(0, 4).Draw(r, "kind") {
			case 0:
				c.put(t, c.nodes, billNode(name, rapid.SampledFrom([]string{"0", "8"}).Draw(r, "has"),
					rapid.SampledFrom([]string{"", "30", "20"}).Draw(r, "price")))
			case 1:
				_ = c.nodes.Delete(billNode(name, "0", ""))
			case 2:
				_ = c.pods.Delete(pod)
			case 3:
				pod.DeletionTimestamp = &metav1.Time{}
				fallthrough
			default:
				pod.Spec.NodeName = name
				c.put(t, c.pods, pod)
			}
			if !rapid.Bool().Draw(r, "read") {
				continue
			}
			got, err := kept.bill()
			want, wantErr := c.biller(t).bill()
			if err != nil || wantErr != nil {
				t.Fatal(err, wantErr)
			}
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(bill{})); diff != "" {
				r.Fatalf("another bill than a recount's: %s", diff)
			}
		}
	})
}

// BenchmarkBill makes a bill of 5,000 nodes with 50,000 pods after some have changed.
func BenchmarkBill(b *testing.B) {
	for _, changed := range []int{0, 500, 50_000} {
		b.Run(fmt.Sprintf("%d pods changed", changed), func(b *testing.B) {
			c := newCached(b)
			pods := make([]*v1.Pod, 50_000)
			for i := range pods {
				pods[i] = objects.Pod(fmt.Sprintf("p-%d", i), "cpu", "1", "nvidia.com/gpu", "1").Node(fmt.Sprintf("n-%d",
					i%5000)).Obj()
				c.put(b, c.pods, pods[i])
			}
			for i := range 5000 {
				c.put(b, c.nodes, billNode(fmt.Sprintf("n-%d", i), "16", "30"))
			}
			biller := c.biller(b)
			if _, err := biller.bill(); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				b.StopTimer()
				for _, pod := range pods[:changed] {
					c.put(b, c.pods, pod)
				}
				b.StartTimer()
				if _, err := biller.bill(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
