package capacity

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apitypes "k8s.io/apimachinery/pkg/types"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"pgregory.net/rapid"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/process"
)

const (
	gpu = v1.ResourceName("nvidia.com/gpu")
	odd = v1.ResourceName("example.com/odd")
)

// shapesOfModel are pods whose shapes differ in one thing each.
func shapesOfModel() []*v1.Pod {
	one := map[v1.ResourceName]string{gpu: "1", v1.ResourceCPU: "500m"}
	selected := st.MakePod().Req(one).NodeSelector(map[string]string{"kind": "a"}).Obj()
	tolerant := st.MakePod().Req(one).Toleration("maintenance").Obj()
	anywhere := st.MakePod().Req(one).Toleration("").Obj()
	anywhere.Spec.Tolerations[0].Operator = v1.TolerationOpExists
	return []*v1.Pod{
		st.MakePod().Req(one).Obj(),
		st.MakePod().Req(map[v1.ResourceName]string{gpu: "4"}).Obj(),
		st.MakePod().Req(map[v1.ResourceName]string{odd: "2"}).Obj(),
		st.MakePod().Obj(),
		st.MakePod().Req(one).NodeAffinityIn("rack", []string{"r1", "r2"}, st.NodeSelectorTypeMatchExpressions).Obj(),
		selected, tolerant, anywhere,
	}
}

// roomModel drives a index and a naiveRoom with the same events.
type roomModel struct {
	x *Index
	r *naiveRoom
	// live holds the shapes by index with how often they were acquired, last what they had on each node when they were
	// last compared, and gained those that have gained since the last refresh.
	pods    []*v1.Pod
	live    map[int]int
	last    map[int]map[string][2]int
	gained  map[int]bool
	altered map[string]bool
	// kept is what was last asked besides.
	kept  []*Kept
	eased bool
}

func (m *roomModel) state(i int) map[string][2]int {
	out := map[string][2]int{}
	for name, node := range m.r.nodes {
		out[name] = [2]int{m.r.slots(m.pods[i], node, false), m.r.slots(m.pods[i], node, true)}
	}
	return out
}

// settle notes which shapes have gained.
func (m *roomModel) settle() {
	for i := range m.live {
		is := m.state(i)
		for name, n := range is {
			was := m.last[i][name]
			if n[0] > was[0] || n[1] > was[1] || (m.altered[name] && n[1] > 0) {
				m.gained[i] = true
			}
		}
		m.last[i] = is
	}
	clear(m.altered)
}

func drawNode(t *rapid.T) *v1.Node {
	name := fmt.Sprintf("n%d", rapid.IntRange(0, 4).Draw(t, "node"))
	w := st.MakeNode().Name(name).Unschedulable(rapid.IntRange(0, 5).Draw(t, "cordon") == 0)
	for _, key := range []string{"kind", "rack"} {
		if value := rapid.SampledFrom([]string{"", "a", "r1", "r2"}).Draw(t, key); value != "" {
			w = w.Label(key, value)
		}
	}
	if rapid.IntRange(0, 3).Draw(t, "annotated") == 0 {
		w = w.Annotation("note", rapid.SampledFrom([]string{"x", "y"}).Draw(t, "note"))
	}
	if key := rapid.SampledFrom([]string{"", "", "", "maintenance", "other"}).Draw(t, "taint"); key != "" {
		effect := rapid.SampledFrom([]v1.TaintEffect{v1.TaintEffectNoSchedule, v1.TaintEffectNoExecute,
			v1.TaintEffectPreferNoSchedule}).Draw(t, "effect")
		w = w.Taints([]v1.Taint{{Key: key, Effect: effect}})
	}
	has := map[v1.ResourceName]string{v1.ResourceCPU: "2", v1.ResourcePods: rapid.SampledFrom([]string{"2", "110"}).Draw(t,
		"pods")}
	if n := rapid.SampledFrom([]string{"", "0", "1", "8"}).Draw(t, "gpus"); n != "" {
		has[gpu] = n
	}
	if rapid.IntRange(0, 3).Draw(t, "odd") == 0 {
		has[odd] = "3"
	}
	return w.Capacity(has).Obj()
}

func drawPod(t *rapid.T) *v1.Pod {
	uid := fmt.Sprintf("p%d", rapid.IntRange(0, 7).Draw(t, "pod"))
	w := st.MakePod().Name(uid).UID(uid).Priority(int32(rapid.IntRange(-1, 2).Draw(t, "priority"))).
		Label("app", rapid.SampledFrom([]string{"", "x", "y"}).Draw(t, "app"))
	if rapid.IntRange(0, 9).Draw(t, "unbound") > 0 {
		w = w.Node(fmt.Sprintf("n%d", rapid.IntRange(0, 5).Draw(t, "on")))
	}
	asks := map[v1.ResourceName]string{}
	for _, name := range []v1.ResourceName{v1.ResourceCPU, gpu, odd} {
		asks[name] = rapid.SampledFrom([]string{"", "1", "2"}).Draw(t, string(name))
	}
	maps.DeleteFunc(asks, func(_ v1.ResourceName, amount string) bool { return amount == "" })
	pod := w.Req(asks).Obj()
	pod.Status.Phase = rapid.SampledFrom([]v1.PodPhase{v1.PodPending, v1.PodRunning, v1.PodRunning, v1.PodSucceeded,
		v1.PodFailed}).Draw(t, "phase")
	if rapid.IntRange(0, 3).Draw(t, "terminating") == 0 {
		pod.DeletionTimestamp = &metav1.Time{}
	}
	return pod
}

func uses(pod *v1.Pod) bool {
	return pod != nil && pod.Spec.NodeName != "" && pod.Status.Phase != v1.PodSucceeded && pod.Status.Phase != v1.PodFailed
}

// withoutZeros returns the node without conditions and resources that it offers none of; all else that the model varies
// matters.
func withoutZeros(node *v1.Node) *v1.Node {
	node = node.DeepCopy()
	node.Status.Conditions = nil
	for _, list := range []v1.ResourceList{node.Status.Capacity, node.Status.Allocatable} {
		maps.DeleteFunc(list, func(_ v1.ResourceName, q resource.Quantity) bool { return q.IsZero() })
	}
	return node
}

func (m *roomModel) step(t *rapid.T) {
	switch rapid.IntRange(0, 9).Draw(t, "step") {
	case 0, 1:
		node := drawNode(t)
		old := m.r.nodes[node.Name]
		if old != nil && rapid.Bool().Draw(t, "heartbeat") {
			node = old.DeepCopy()
			node.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}
		}
		m.x.Feed.SetNode(node)
		m.r.nodes[node.Name] = node
		if old == nil || !cmp.Equal(withoutZeros(old), withoutZeros(node)) {
			m.altered[node.Name] = true
		}
	case 2:
		name := fmt.Sprintf("n%d", rapid.IntRange(0, 4).Draw(t, "node"))
		m.x.Feed.DropNode(name)
		if m.r.nodes[name] != nil {
			delete(m.r.nodes, name)
			m.altered[name] = true
		}
	case 3, 4, 5:
		pod := drawPod(t)
		old := m.r.pods[pod.UID]
		if old != nil && rapid.Bool().Draw(t, "updated") {
			// Most updates change neither the node nor the requests.
			spec := old.Spec.DeepCopy()
			spec.Priority = pod.Spec.Priority
			pod.Spec = *spec
		}
		// The gang of a pod is told apart from the pod.
		m.x.Feed.SetPod(pod, gang.ID{Name: pod.Labels["app"]})
		if uses(pod) {
			m.r.pods[pod.UID] = pod
		} else {
			delete(m.r.pods, pod.UID)
		}
		if old != nil && (!uses(pod) || old.Spec.NodeName != pod.Spec.NodeName || !cmp.Equal(old.Labels, pod.Labels) ||
			!cmp.Equal(old.Spec.Containers, pod.Spec.Containers)) {
			m.eased = true
		}
	case 6:
		uid := apitypes.UID(fmt.Sprintf("p%d", rapid.IntRange(0, 7).Draw(t, "pod")))
		m.x.Feed.DropPod(uid)
		if m.r.pods[uid] != nil {
			delete(m.r.pods, uid)
			m.eased = true
		}
	case 7:
		i := rapid.IntRange(0, len(m.pods)-1).Draw(t, "shape")
		if m.live[i]++; m.live[i] == 1 {
			delete(m.live, i)
			m.settle()
			m.live[i], m.last[i] = 1, m.state(i)
		}
		if got, want := m.x.Acquire(m.pods[i]), shapeOf(m.pods[i]); got != want {
			t.Fatalf("acquire gives %x, the shape is %x", got, want)
		}
	case 8:
		i := rapid.IntRange(0, len(m.pods)-1).Draw(t, "shape")
		m.x.Release(shapeOf(m.pods[i]))
		if m.live[i]--; m.live[i] <= 0 {
			delete(m.live, i)
			delete(m.last, i)
			delete(m.gained, i)
		}
	case 9:
		m.r.claimed[gpu] = rapid.Bool().Draw(t, "claimed")
		m.x.Feed.ClassesChanged()
	}
	m.settle()
}

// ask compares all answers, beginning with any of them: the first finds the index as the events left it.
func (m *roomModel) ask(t *rapid.T) {
	m.settle()
	live := slices.Sorted(maps.Keys(m.live))
	questions := []func(*rapid.T, []int){m.askSlots, m.askCauses, m.askNodes, m.askRooms, m.askDomains, m.askBeside,
		m.askTotals, m.askCopy, m.askGained}
	first := rapid.IntRange(0, len(questions)-1).Draw(t, "first question")
	for i := range questions {
		questions[(first+i)%len(questions)](t, live)
	}
}

func same(t *rapid.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}

func (m *roomModel) askSlots(t *rapid.T, live []int) {
	for _, i := range live {
		now, empty := m.x.Slots(shapeOf(m.pods[i]))
		same(t, fmt.Sprintf("slots of shape %d", i), [2]int{now, empty},
			[2]int{m.r.total(m.pods[i], false), m.r.total(m.pods[i], true)})
	}
}

func (m *roomModel) askCauses(t *rapid.T, live []int) {
	for _, i := range live {
		for _, keys := range [][]string{nil, {"rack"}} {
			same(t, fmt.Sprintf("causes of shape %d within %v", i, keys), m.x.Causes(shapeOf(m.pods[i]), keys, nil, nil),
				m.r.causes(m.pods[i], keys))
		}
	}
}

func (m *roomModel) askNodes(t *rapid.T, live []int) {
	for _, i := range live {
		want := m.state(i)
		maps.DeleteFunc(want, func(name string, _ [2]int) bool { return m.r.why(m.pods[i], m.r.nodes[name]) != "" })
		names := append(slices.Sorted(maps.Keys(m.r.nodes)), "a node that there is not")
		slots := make([]int, len(names))
		for at, name := range names {
			slots[at] = want[name][0]
		}
		same(t, fmt.Sprintf("slots of shape %d by node", i), m.x.SlotsOn(shapeOf(m.pods[i]), names), slots)
	}
}

func (m *roomModel) askDomains(t *rapid.T, live []int) {
	var needs []Need
	var pods []*v1.Pod
	var counts []int
	for _, i := range live {
		needs, pods, counts = append(needs, Need{Shape: shapeOf(m.pods[i]), Count: i + 1}), append(pods,
			m.pods[i]), append(counts, i+1)
	}
	for _, empty := range []bool{false, true} {
		for _, d := range []struct{ keys, pinned []string }{
			{keys: []string{"rack"}}, {keys: []string{"rack"}, pinned: []string{"r1"}},
			{keys: []string{"kind", "rack"}}, {keys: []string{"kind", "rack"}, pinned: []string{"", "r2"}},
			{keys: []string{"nothing"}},
		} {
			same(t, fmt.Sprintf("best of %v, empty %t", d, empty), m.x.Best(needs, d.keys, d.pinned, empty),
				m.r.best(pods, counts, d.keys, d.pinned, empty))
		}
		total := 0
		for k, pod := range pods {
			total += min(counts[k], m.r.total(pod, empty))
		}
		same(t, "best of the cluster", m.x.Best(needs, nil, nil, empty), total)
	}
}

func (m *roomModel) askTotals(t *rapid.T, _ []int) {
	for p := int32(-2); p < 4; p++ {
		same(t, fmt.Sprintf("pods below %d", p), m.x.Cluster.AnyBelow(p), m.r.anyBelow(p))
		same(t, fmt.Sprintf("pods below %d, or on their way out", p), m.x.Cluster.MakesWay(p), m.r.makesWay(p))
	}
	same(t, "nodes", m.x.Cluster.Size(), len(m.r.nodes))
	for n := range 6 {
		name := fmt.Sprintf("n%d", n)
		if at := m.x.nodes.byName[name]; at != nil {
			same(t, "members counted on "+name, at.members, len(slices.DeleteFunc(slices.Clone(at.pods),
				func(p *podEntry) bool { return p.Of == (gang.ID{}) })))
		}
		var got, want []gang.UID
		for _, member := range m.x.Cluster.MembersOn(name) {
			got = append(got, member.UID)
		}
		for _, pod := range m.r.bound() {
			if pod.Spec.NodeName == name && pod.Labels["app"] != "" && pod.DeletionTimestamp == nil {
				want = append(want, gang.UID(pod.UID))
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		same(t, "members on "+name, got, want)
	}
}

func (m *roomModel) askCopy(t *rapid.T, live []int) {
	var keys []ShapeKey
	for _, i := range live {
		keys = append(keys, shapeOf(m.pods[i]))
	}
	c := m.x.Snapshot(keys)
	c.extend()
	same(t, "copy", c.describe(), m.r.describe(c.Resources))
	for _, n := range c.Nodes {
		for k, s := range c.Shapes {
			pod := m.pods[live[k]]
			if want := m.r.why(pod, n.Object) == ""; n.Admits[k] != want {
				t.Fatalf("the copy says that node %s admits shape %d: %t", n.Name, live[k], !want)
			}
			if want := m.r.slots(pod, n.Object, false); n.Admits[k] && int(slotsOn(s.Bounds, n.Has, n.Used)) != want {
				t.Fatalf("%d pods of shape %d fit on node %s of the copy, want %d", slotsOn(s.Bounds, n.Has, n.Used), live[k],
					n.Name, want)
			}
		}
	}
	c.wipe() // which the index and the next copy do not notice
}

func (m *roomModel) askGained(t *rapid.T, _ []int) {
	if rapid.Bool().Draw(t, "not yet") {
		return
	}
	gained, eased := m.x.Looks.Refresh()
	var want []ShapeKey
	for i := range m.gained {
		want = append(want, shapeOf(m.pods[i]))
	}
	slices.Sort(gained)
	slices.Sort(want)
	same(t, "gained", gained, want)
	same(t, "eased", eased, m.eased)
	clear(m.gained)
	m.eased = false
}

func TestIndexAgainstModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := &naiveRoom{nodes: map[string]*v1.Node{}, pods: map[apitypes.UID]*v1.Pod{}, claimed: map[v1.ResourceName]bool{}}
		profiles := &process.Profiles{}
		profiles.Add(claiming{classes: classes{claimed: r.claimed}})
		m := &roomModel{
			x:    New(profiles),
			r:    r,
			pods: shapesOfModel(),
			live: map[int]int{}, last: map[int]map[string][2]int{}, gained: map[int]bool{}, altered: map[string]bool{},
		}
		for range rapid.IntRange(1, 30).Draw(t, "questions") {
			for range rapid.IntRange(0, 5).Draw(t, "events") {
				m.step(t)
			}
			m.ask(t)
		}
		// Nothing is kept of what is gone.
		for i, n := range m.live {
			for range n {
				m.x.Release(shapeOf(m.pods[i]))
			}
		}
		for _, uid := range slices.Collect(maps.Keys(m.r.pods)) {
			m.x.Feed.DropPod(uid)
		}
		for name := range m.r.nodes {
			m.x.Feed.DropNode(name)
		}
		m.x.Looks.Refresh()
		if x := m.x; len(x.nodes.byName)+len(x.pods.byUID)+len(x.pods.priorities)+len(x.shapes.byKey)+len(x.shapes.live)+
			len(x.shapes.rules) > 0 ||
			len(x.nodes.unused) != len(x.nodes.slots) ||
			slices.ContainsFunc(x.nodes.slots, func(n *nodeEntry) bool { return n != nil }) ||
			slices.ContainsFunc(x.resources.offered, func(n int) bool { return n != 0 }) {
			t.Fatalf("something is kept of what is gone: %+v", x)
		}
	})
}
