package capacity

import (
	"fmt"
	"math"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/process"
)

func shapeOf(pod *v1.Pod) ShapeKey {
	return keyOf(asksOf(pod, process.AllTraits), ruleOf(pod, process.AllTraits))
}

func gpuNode(name string, gpus string) *st.NodeWrapper {
	return st.MakeNode().Name(name).Capacity(map[v1.ResourceName]string{gpu: gpus, v1.ResourceCPU: "16",
		v1.ResourcePods: "110"})
}

func gpuPod(name, node, gpus string) *v1.Pod {
	return st.MakePod().Name(name).UID(name).Node(node).Req(map[v1.ResourceName]string{gpu: gpus}).Obj()
}

func TestShapeOf(t *testing.T) {
	t.Parallel()
	base := func() *v1.Pod {
		p := st.MakePod().Req(map[v1.ResourceName]string{gpu: "1", v1.ResourceCPU: "1"}).
			NodeSelector(map[string]string{"a": "1", "b": "2"}).Toleration("x").Toleration("y").Obj()
		p.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{}}
		return p
	}
	requests := func(p *v1.Pod) v1.ResourceList { return p.Spec.Containers[0].Resources.Requests }
	for _, tc := range []struct {
		name   string
		change func(p *v1.Pod)
		same   bool
	}{
		{"what no filter reads, in any order", func(p *v1.Pod) {
			p.Labels, p.Annotations = map[string]string{"index": "7"}, map[string]string{"a": "b"}
			p.Spec.Priority, requests(p)["example.com/odd"] = new(int32(7)), resource.MustParse("0")
			p.Spec.Tolerations = append(p.Spec.Tolerations, v1.Toleration{Key: "z", Effect: v1.TaintEffectPreferNoSchedule})
			slices.Reverse(p.Spec.Tolerations)
			p.Spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution = []v1.PreferredSchedulingTerm{
				{Weight: 1}}
		}, true},
		{"the amount of a request", func(p *v1.Pod) { requests(p)[gpu] = resource.MustParse("2") }, false},
		{"the node selector", func(p *v1.Pod) { p.Spec.NodeSelector["b"] = "3" }, false},
		{"affinity to nothing", func(p *v1.Pod) {
			p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = &v1.NodeSelector{}
		}, false},
		{"the name of a node", func(p *v1.Pod) { p.Spec.NodeName = "n" }, false},
	} {
		changed := base()
		tc.change(changed)
		if same := shapeOf(base()) == shapeOf(changed); same != tc.same {
			t.Errorf("%s: same shape: %t, want %t", tc.name, same, tc.same)
		}
	}
}

// TestIndexAgainstModel draws all other pods and events.
func TestIndexSlots(t *testing.T) {
	t.Parallel()
	four := st.MakePod().Req(map[v1.ResourceName]string{gpu: "4", v1.ResourceCPU: "1"}).Obj()
	unreadable := four.DeepCopy()
	unreadable.Spec.Affinity = &v1.Affinity{
		NodeAffinity: &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{
			NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchExpressions: []v1.NodeSelectorRequirement{{Key: "k",
				Operator: "Resembles"}}}}}}}
	x := New(&process.Profiles{})
	x.Feed.SetNode(gpuNode("a", "8").Obj())
	if now, _ := x.Slots(x.Acquire(unreadable)); now != 2 {
		t.Errorf("an affinity that cannot be read: %d slots now, want 2", now)
	}
	for i := range 4 {
		huge := st.MakePod().UID(fmt.Sprint(i)).Node("a").Req(map[v1.ResourceName]string{v1.ResourceCPU: "1"}).Obj()
		huge.Spec.Containers[0].Resources.Requests[v1.ResourceCPU] = *resource.NewQuantity(math.MaxInt64, resource.DecimalSI)
		x.Feed.SetPod(huge, gang.ID{})
	}
	if now, empty := x.Slots(x.Acquire(four)); now != 0 || empty != 2 {
		t.Errorf("beside pods larger than any node: %d slots now and %d if empty, want 0 and 2", now, empty)
	}
}

func TestAPodThatIsNotLiveIsNotRuledOut(t *testing.T) {
	t.Parallel()
	x := New(&process.Profiles{})
	x.Feed.SetNode(gpuNode("a", "8").Label("rack", "r").Obj())
	key := x.Acquire(gpuPod("new", "", "16"))
	x.Release(key)
	if got := x.Best([]Need{{Shape: key, Count: 3}}, nil, nil, false); got != 3 {
		t.Errorf("%d of 3 pods of a released shape fit, want all", got)
	}
	if got := x.Best([]Need{{Shape: key, Count: 3}}, []string{"rack"}, nil, false); got != 3 {
		t.Errorf("%d of 3 pods of a released shape fit into a rack, want all", got)
	}
	x.Release(key)
}
