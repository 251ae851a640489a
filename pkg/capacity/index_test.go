package capacity

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	terms := func(key string) *v1.NodeSelector {
		return &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{
			{MatchExpressions: []v1.NodeSelectorRequirement{{Key: key, Operator: v1.NodeSelectorOpExists}}}}}
	}
	for _, tc := range []struct {
		name   string
		change func(p *v1.Pod)
		same   bool
	}{
		{"labels make no difference",
			func(p *v1.Pod) { p.Labels = map[string]string{"batch.kubernetes.io/job-completion-index": "7"} }, true},
		{"annotations make no difference", func(p *v1.Pod) { p.Annotations = map[string]string{"a": "b"} }, true},
		{"the priority makes no difference", func(p *v1.Pod) { p.Spec.Priority = new(int32(7)) }, true},
		{"a request for nothing makes no difference", func(p *v1.Pod) {
			p.Spec.Containers[0].Resources.Requests["example.com/odd"] = resource.MustParse("0")
		}, true},
		{"the order of tolerations makes no difference", func(p *v1.Pod) { slices.Reverse(p.Spec.Tolerations) }, true},
		{"a toleration that only concerns scores makes no difference", func(p *v1.Pod) {
			p.Spec.Tolerations = append(p.Spec.Tolerations, v1.Toleration{Key: "z", Effect: v1.TaintEffectPreferNoSchedule})
		}, true},
		{"preferred affinity makes no difference", func(p *v1.Pod) {
			p.Spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution = []v1.PreferredSchedulingTerm{
				{Weight: 1, Preference: terms("a").NodeSelectorTerms[0]}}
		}, true},
		{"the amount of a request makes a difference", func(p *v1.Pod) {
			p.Spec.Containers[0].Resources.Requests[gpu] = resource.MustParse("2")
		}, false},
		{"the name of a request makes a difference", func(p *v1.Pod) {
			p.Spec.Containers[0].Resources.Requests["example.com/odd"] = resource.MustParse("1")
		}, false},
		{"the node selector makes a difference",
			func(p *v1.Pod) { p.Spec.NodeSelector = map[string]string{"a": "1", "b": "3"} }, false},
		{"a toleration more makes a difference", func(p *v1.Pod) {
			p.Spec.Tolerations = append(p.Spec.Tolerations, v1.Toleration{Key: "z", Operator: v1.TolerationOpExists})
		}, false},
		{"required affinity makes a difference", func(p *v1.Pod) {
			p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = terms("a")
		}, false},
		{"affinity to nothing differs from none", func(p *v1.Pod) {
			p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = &v1.NodeSelector{}
		}, false},
		{"the name of a node makes a difference", func(p *v1.Pod) { p.Spec.NodeName = "n" }, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			changed := base()
			tc.change(changed)
			if same := shapeOf(base()) == shapeOf(changed); same != tc.same {
				t.Errorf("same shape: %t, want %t", same, tc.same)
			}
		})
	}
}

// TestIndexAgainstModel draws all other pods and events.
func TestIndexSlots(t *testing.T) {
	t.Parallel()
	huge := gpuPod("huge", "a", "1")
	huge.Spec.Containers[0].Resources.Requests[v1.ResourceCPU] = *resource.NewQuantity(math.MaxInt64, resource.DecimalSI)
	four := gpuPod("new", "", "4")
	unreadable := gpuPod("new", "", "4")
	unreadable.Spec.Affinity = &v1.Affinity{
		NodeAffinity: &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{
			NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchExpressions: []v1.NodeSelectorRequirement{{Key: "k",
				Operator: "Resembles"}}}}}}}
	for _, tc := range []struct {
		name       string
		feed       func(x *Index)
		pod        *v1.Pod
		now, empty int
	}{
		{"a pod larger than any node does not make the sums overflow", func(x *Index) {
			x.Feed.SetNode(gpuNode("a", "8").Obj())
			x.Feed.SetPod(huge, gang.ID{})
			for i := range 3 {
				p := huge.DeepCopy()
				p.UID = st.MakePod().UID(string(rune('a' + i))).Obj().UID
				x.Feed.SetPod(p, gang.ID{})
			}
		}, four, 1, 2},
		{"an affinity that cannot be read rules nothing out", func(x *Index) { x.Feed.SetNode(gpuNode("a", "8").Obj()) },
			unreadable, 2, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			for _, early := range []bool{false, true} {
				x := New(&process.Profiles{})
				var key ShapeKey
				if early {
					key = x.Acquire(tc.pod)
				}
				tc.feed(x)
				if !early {
					key = x.Acquire(tc.pod)
				}
				if now, empty := x.Slots(key); now != tc.now || empty != tc.empty {
					t.Errorf("acquired early %t: %d slots now and %d if empty, want %d and %d", early, now, empty, tc.now, tc.empty)
				}
			}
		})
	}
}

// Of all other events TestIndexAgainstModel knows what gains by them.
func TestAHeartbeatOfANodeIsNoGain(t *testing.T) {
	t.Parallel()
	x := New(&process.Profiles{})
	x.Feed.SetNode(gpuNode("a", "8").Obj())
	x.Acquire(gpuPod("new", "", "4"))
	x.Looks.Refresh()
	node := gpuNode("a", "8").Obj()
	node.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, LastHeartbeatTime: metav1.Now()}}
	x.Feed.SetNode(node)
	if gained, eased := x.Looks.Refresh(); len(gained) > 0 || eased {
		t.Errorf("gained %v, eased %t", gained, eased)
	}
}

func TestCopiesBelongToTheCaller(t *testing.T) {
	t.Parallel()
	x := New(&process.Profiles{})
	for _, name := range []string{"a", "b"} {
		x.Feed.SetNode(gpuNode(name, "8").Obj())
		x.Feed.SetPod(gpuPod("1 on "+name, name, "1"), gang.ID{Namespace: "ns", Name: "g"})
		x.Feed.SetPod(gpuPod("2 on "+name, name, "2"), gang.ID{})
	}
	key := x.Acquire(gpuPod("new", "", "4"))
	keys := []ShapeKey{key}
	compare := cmp.AllowUnexported(Snapshot{}, Node{}, BoundPod{}, Shape{}, use{}, bound{})
	want, scribbled := x.Snapshot(keys), x.Snapshot(keys)
	for i := range scribbled.Nodes {
		n := &scribbled.Nodes[i]
		for j := range n.Pods {
			for k := range n.Pods[j].Uses {
				n.Pods[j].Uses[k] = use{Resource: 1, Amount: 77}
			}
			n.Pods[j] = BoundPod{UID: "scribbled"}
		}
		for j := range n.Has {
			n.Has[j], n.Used[j] = 99, 99
		}
		n.Admits[0] = false
		n.Name = "scribbled"
	}
	for i := range scribbled.Shapes {
		scribbled.Shapes[i].Bounds[0] = bound{Amount: 99}
	}
	scribbled.Resources[0] = "scribbled"
	if diff := cmp.Diff(want, x.Snapshot(keys), compare); diff != "" {
		t.Errorf("writing to a copy changes the next (-want +got):\n%s", diff)
	}
	if now, empty := x.Slots(key); now != 2 || empty != 4 {
		t.Errorf("writing to a copy changes the index: %d slots now and %d if empty, want 2 and 4", now, empty)
	}
}

func TestAppendingToOnePartOfACopyLeavesTheNext(t *testing.T) {
	t.Parallel()
	x := New(&process.Profiles{})
	for _, name := range []string{"a", "b"} {
		x.Feed.SetNode(gpuNode(name, "8").Obj())
		x.Feed.SetPod(gpuPod("1 on "+name, name, "1"), gang.ID{})
		x.Feed.SetPod(gpuPod("2 on "+name, name, "2"), gang.ID{})
	}
	c := x.Snapshot([]ShapeKey{x.Acquire(gpuPod("new", "", "4"))})
	want := c.describe()
	first := &c.Nodes[0]
	_, _, _ = append(first.Has, 99), append(first.Used, 99), append(first.Admits, false)
	_, _ = append(first.Pods, BoundPod{}), append(first.Pods[0].Uses, use{Amount: 99})
	if diff := cmp.Diff(want, c.describe()); diff != "" {
		t.Errorf("appending to one node's part changes another's (-want +got):\n%s", diff)
	}
	if !c.Nodes[1].Admits[0] {
		t.Error("appending to one node's verdicts changes another's")
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
