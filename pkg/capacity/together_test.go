package capacity

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/runtimes"
)

// What a node has for pods of two shapes together is told for each pod that ends, besides how many of each fit alone.
func TestWhatIsFreeForPodsTogetherAsOthersEnd(t *testing.T) {
	t.Parallel()
	x := New(unclaimed, allFilters)
	x.Feed.SetNode(st.MakeNode().Name("n").Capacity(map[v1.ResourceName]string{gpu: "8", v1.ResourceCPU: "16",
		v1.ResourcePods: "110"}).Obj())
	for i, gpus := range []string{"2", "4"} {
		name := fmt.Sprint("running-", i)
		x.Feed.SetPod(st.MakePod().Name(name).UID(name).Node("n").Req(map[v1.ResourceName]string{gpu: gpus,
			v1.ResourceCPU: "1"}).Obj(), gang.ID{})
	}
	one := x.Acquire(st.MakePod().Req(map[v1.ResourceName]string{gpu: "1"}).Obj())
	four := x.Acquire(st.MakePod().Req(map[v1.ResourceName]string{gpu: "4", v1.ResourceCPU: "2"}).Obj())
	stays := func(*v1.Pod, int32) bool { return false }
	rows := []Row{{Shape: four, MakesWay: stays, Together: []ShapeKey{four, one}}, {Shape: one, MakesWay: stays}}
	nodes, asks := x.Ends(rows, func(pod *v1.Pod) runtimes.Forecast {
		if pod.Name == "running-1" {
			return runtimes.Certain(time.Minute)
		}
		return runtimes.Certain(time.Hour)
	})
	if len(nodes) != 1 {
		t.Fatalf("%d nodes", len(nodes))
	}
	n := nodes[0]
	got := []any{n.Fits, n.Free[1] == nil, asks[1] == nil}
	if diff := cmp.Diff([]any{[][]int{{0, 1, 2}, {2, 6, 8}}, true, true}, got); diff != "" {
		t.Errorf("how many fit, and what is not asked (-want +got):\n%s", diff)
	}
	// The amounts are of the same resources, in the order in which the index has them.
	sums := map[string]bool{}
	for r := range asks[0][0] {
		sums[fmt.Sprint(asks[0][0][r], asks[0][1][r], n.Free[0][0][r], n.Free[0][1][r], n.Free[0][2][r])] = true
	}
	want := map[string]bool{"4 1 2 6 8": true, "2000 0 14000 15000 16000": true, "1 1 108 109 110": true}
	if diff := cmp.Diff(want, sums); diff != "" {
		t.Errorf("asks of both and free amounts, by resource (-want +got):\n%s", diff)
	}
}
