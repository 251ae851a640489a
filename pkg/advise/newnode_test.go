package advise

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"berth.dev/berth/test/harness/assert"
)

func TestANewNodeStartsWhatFitsIt(t *testing.T) {
	t.Parallel()
	a := ask(t, Unit{}, node("a", "8", "8.50"), node("b", "2", "1.20"), pod("x", "a", "8", bare, priority(9)),
		pod("y", "b", "2", bare, priority(9)), pod("p", "", "4"), pod("q", "", "1", priority(5)))
	got := map[string]string{}
	for _, n := range a.NewNodes {
		var names []string
		for _, s := range n.Starts {
			names = append(names, s.Name)
		}
		got[n.Like] = fmt.Sprint(names, n.PriceMicroDollarsPerHour, n.Nodes)
	}
	if got["a"] != "[q p] 8500000 1" || got["b"] != "[q] 1200000 1" {
		t.Errorf("%v", got)
	}
}

// One node starts no gang whose members need more.
func TestNodesAreAddedUntilAGangStarts(t *testing.T) {
	t.Parallel()
	objects := []runtime.Object{node("a", "8", "8"), node("b", "2", "1"), pod("x", "a", "8", bare),
		pod("y", "b", "2", bare)}
	for i := range 5 {
		objects = append(objects, pod(fmt.Sprint("g", i), "", "8", gangOf("5")))
	}
	a := ask(t, Unit{}, objects...)
	var got []string
	for _, n := range a.NewNodes {
		got = append(got, fmt.Sprintf("%d like %s: %d pods of %v", n.Count, n.Like, len(n.Starts), n.Units))
	}
	want := []string{"5 like a: 5 pods of [podgroup default/g]", "1 like b: 0 pods of []"}
	assert.Equal(t, "new nodes", want, got)
}

// A price and a capacity type are those of the node that the new one is like.
func TestANewNodeCostsWhatTheOneLikeItDoes(t *testing.T) {
	t.Parallel()
	spot, dear := node("s", "8", "2"), node("d", "8", "9")
	spot.Labels["karpenter.sh/capacity-type"] = "spot"
	a := ask(t, Unit{}, dear, node("c", "8", "8"), spot, pod("x", "d", "8", bare), pod("y", "c", "8", bare),
		pod("z", "s", "8", bare), pod("p", "", "4"))
	var got []string
	for _, n := range a.NewNodes {
		got = append(got, fmt.Sprintf("%s like %s for %d: %d of %d", n.Kind, n.Like, n.PriceMicroDollarsPerHour,
			len(n.Starts), n.Nodes))
	}
	kind := a.NewNodes[0].Kind
	want := []string{kind + " like c for 8000000: 1 of 2", kind + ", spot like s for 2000000: 0 of 1"}
	assert.Equal(t, "new nodes", want, got)
}
