package overview

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/cost/price"
	"berth.dev/berth/pkg/cost/priceview"
	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/wellknown"
	"berth.dev/berth/test/harness/assert"
	"berth.dev/berth/test/harness/leak"
	"berth.dev/berth/test/harness/require"
)

func TestMain(m *testing.M) { leak.Main(m) }

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// levels are some of the default ones, and a level of one node each.
var levels = podview.NetworkLevels{{v1.LabelHostname}, {wellknown.RackLabel, "topology.k8s.aws/network-node-layer-3",
	"cloud.google.com/gce-topology-subblock"}, {v1.LabelTopologyZone}}

func newStore(objects ...any) *Store {
	b := NewStore(gpuview.DefaultKeys(), Pricing{
		Of: func(n *v1.Node) (price.MicroDollars, bool) {
			p, ok, _ := priceview.StatedPrice(n)
			return p, ok
		},
		Rates: price.Rates{Core: 30_000, MemoryGiB: 4_000, GPU: 1_000_000},
	}, levels)
	for _, o := range objects {
		set(b, o)
	}
	return b
}

func set(s *Store, object any) {
	if w, ok := object.(Warning); ok {
		s.addWarning(w)
		return
	}
	s.Set(object)
}

func amounts(text string) v1.ResourceList {
	list := v1.ResourceList{}
	for _, part := range strings.Fields(text) {
		name, value, _ := strings.Cut(part, "=")
		list[v1.ResourceName(name)] = resource.MustParse(value)
	}
	return list
}

func node(name, has string, change ...func(*v1.Node)) *v1.Node {
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"nvidia.com/gpu.product": "Tesla-T4",
		wellknown.RackLabel: "r1"}},
		Status: v1.NodeStatus{Allocatable: amounts("cpu=16 memory=64Gi pods=110 " + has),
			Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}}}
	n.Status.Capacity = n.Status.Allocatable
	for _, c := range change {
		c(n)
	}
	return n
}

func pod(name, on, asks string, change ...func(*v1.Pod)) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID(name),
		Annotations: map[string]string{}, Labels: map[string]string{},
		CreationTimestamp: metav1.NewTime(now.Add(-time.Hour))},
		Spec: v1.PodSpec{NodeName: on, SchedulerName: "berth-scheduler",
			Containers: []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{
				Requests: amounts(asks), Limits: amounts(asks)}}}}}
	if on != "" {
		p.Status.Phase = v1.PodRunning
	}
	for _, c := range change {
		c(p)
	}
	return p
}

func refused(message string) func(*v1.Pod) {
	return func(p *v1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions, v1.PodCondition{Type: v1.PodScheduled, Status: v1.ConditionFalse,
			Message: message})
	}
}

func inGang(name string) func(*v1.Pod) {
	return func(p *v1.Pod) { p.Labels[schedulingv1alpha1.PodGroupLabel] = name }
}

func shared(n *v1.Node) { n.Labels["berth.dev/gpu-mode"] = "shared" }

func parse[T any](t *testing.T, text string) *T {
	t.Helper()
	out := new(T)
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), out))
	return out
}

// states are the GPUs of the nodes of an answer, a letter each: F free, A allocated, P partial, S stranded, U
// unavailable.
func states(c *Cluster) map[string]string {
	out := map[string]string{}
	for _, n := range c.Nodes {
		for _, g := range n.GPUs {
			out[n.Name] += string(g.State[0])
		}
	}
	return out
}

func TestTheStateOfGPUs(t *testing.T) {
	t.Parallel()
	share := func(milli, device int) func(*v1.Pod) {
		return func(p *v1.Pod) {
			p.Annotations["gpu-fraction"] = fmt.Sprint(float64(milli) / 1000)
			p.Status.Conditions = []v1.PodCondition{{Type: gpuview.GPUsAssigned, Status: v1.ConditionTrue, Reason: "Assigned",
				Message: fmt.Sprintf(`{"pod": %q, "node": %q, "devices": [%d], "milli": %d}`, p.UID, p.Spec.NodeName, device, milli)}}
		}
	}
	const anything = "cpu=1 nvidia.com/gpu=1"
	tests := map[string]struct {
		objects []any
		want    map[string]string
		totals  Totals
	}{
		"nothing": {want: map[string]string{}},
		"a node without GPUs is only count": {objects: []any{node("a", "")}, want: map[string]string{},
			totals: Totals{Nodes: 1, NodesWithoutPrice: 1}},
		"whole GPUs": {objects: []any{node("a", "nvidia.com/gpu=4"), pod("p", "a", "cpu=1 nvidia.com/gpu=3"),
			pod("q", "", anything)},
			want: map[string]string{"a": "AAAF"},
			totals: Totals{Nodes: 1, NodesWithGPUs: 1, NodesInUse: 1, GPUs: 4, AllocatedMilliGPU: 3000, IdleMilliGPU: 1000,
				NodesWithoutPrice: 1, PendingPods: 1}},
		"no pod says what is needed": {objects: []any{node("a", "nvidia.com/gpu=2")}, want: map[string]string{"a": "FF"},
			totals: Totals{Nodes: 1, NodesWithGPUs: 1, GPUs: 2, IdleMilliGPU: 2000, NodesWithoutPrice: 1}},
		"no CPU is left for any request": {objects: []any{node("a", "nvidia.com/gpu=2"),
			pod("p", "a", "cpu=16 nvidia.com/gpu=1")}, want: map[string]string{"a": "AS"},
			totals: Totals{Nodes: 1, NodesWithGPUs: 1, NodesInUse: 1, GPUs: 2, AllocatedMilliGPU: 1000, IdleMilliGPU: 1000,
				StrandedMilliGPU: 1000, NodesWithoutPrice: 1}},
		"a cordoned node": {objects: []any{node("a", "nvidia.com/gpu=2", func(n *v1.Node) { n.Spec.Unschedulable = true }),
			pod("p", "a", anything)},
			want: map[string]string{"a": "AU"},
			totals: Totals{Nodes: 1, NodesWithGPUs: 1, NodesInUse: 1, GPUs: 2, UnavailableGPUs: 1, AllocatedMilliGPU: 1000,
				NodesWithoutPrice: 1}},
		"a node that is not ready": {objects: []any{node("a", "nvidia.com/gpu=1",
			func(n *v1.Node) { n.Status.Conditions[0].Status = v1.ConditionUnknown })},
			want: map[string]string{"a": "U"}, totals: Totals{Nodes: 1, NodesWithGPUs: 1, GPUs: 1, UnavailableGPUs: 1,
				NodesWithoutPrice: 1}},
		"a pod that has ended holds nothing": {objects: []any{node("a", "nvidia.com/gpu=1"),
			pod("p", "a", anything, func(p *v1.Pod) { p.Status.Phase = v1.PodSucceeded })},
			want: map[string]string{"a": "F"}, totals: Totals{Nodes: 1, NodesWithGPUs: 1, GPUs: 1, IdleMilliGPU: 1000,
				NodesWithoutPrice: 1}},
		"time slices": {objects: []any{node("a", "nvidia.com/gpu=8",
			func(n *v1.Node) { n.Labels["nvidia.com/gpu.count"], n.Labels["nvidia.com/gpu.replicas"] = "2", "4" }),
			pod("p", "a", "cpu=1 nvidia.com/gpu=5")}, want: map[string]string{"a": "AP"},
			totals: Totals{Nodes: 1, NodesWithGPUs: 1, NodesInUse: 1, GPUs: 2, AllocatedMilliGPU: 1250, IdleMilliGPU: 750,
				NodesWithoutPrice: 1}},
		"shares": {objects: []any{node("a", "nvidia.com/gpu=2", shared), pod("p", "a", "cpu=1", share(700, 1)),
			pod("q", "a", "cpu=1", share(200, 1))},
			want: map[string]string{"a": "FS"},
			totals: Totals{Nodes: 1, NodesWithGPUs: 1, NodesInUse: 1, GPUs: 2, AllocatedMilliGPU: 900, IdleMilliGPU: 1100,
				StrandedMilliGPU: 100, NodesWithoutPrice: 1}},
		"a DaemonSet's pod does not use the node": {objects: []any{node("a", "nvidia.com/gpu=1"),
			pod("p", "a", "cpu=1", func(p *v1.Pod) {
				yes := true
				p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "agent",
					Controller: &yes}}
				p.Spec.Affinity = onlyOn("a")
			})}, want: map[string]string{"a": "F"}, totals: Totals{Nodes: 1, NodesWithGPUs: 1, GPUs: 1, IdleMilliGPU: 1000,
			NodesWithoutPrice: 1}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newStore(test.objects...).Cluster(now)
			assert.Equal(t, "GPUs", test.want, states(c))
			assert.Equal(t, "totals", test.totals, c.Totals)
		})
	}
}

func TestWhatWaits(t *testing.T) {
	t.Parallel()
	at := func(age time.Duration) func(*v1.Pod) {
		return func(p *v1.Pod) { p.CreationTimestamp = metav1.NewTime(now.Add(-age)) }
	}
	priority := func(value int32) func(*v1.Pod) { return func(p *v1.Pod) { p.Spec.Priority = &value } }
	group := parse[schedulingv1alpha1.PodGroup](t, `
metadata: {namespace: team, name: train, creationTimestamp: "2026-03-01T11:00:00Z"}
spec: {minMember: 3}
status: {phase: PreScheduling, conditions: [{type: Scheduled, status: "False", reason: NotEnoughRoom, message: "needs 3 nodes,\n\e[31mfits 2"}, {type: Reserved, status: "True", message: "2 nodes reserved"}]}`)
	b := newStore(group,
		pod("young", "", "cpu=1", at(time.Minute), refused("0/3 nodes are available")),
		pod("old", "", "cpu=1", at(time.Hour)),
		pod("important", "", "cpu=1", at(time.Second), priority(100), func(p *v1.Pod) { p.Status.NominatedNodeName = "a" }),
		pod("gated", "", "cpu=1", func(p *v1.Pod) { p.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: "quota"}} }),
		pod("train-10", "", "cpu=1 nvidia.com/gpu=4", inGang("train"), at(10*time.Minute)),
		pod("train-9", "", "cpu=1 nvidia.com/gpu=4", inGang("train"), at(20*time.Minute)),
		pod("elsewhere", "", "cpu=1", func(p *v1.Pod) { p.Spec.SchedulerName = "another" }),
	)
	c := b.Cluster(now)
	want := []Waiting{
		{Position: 1, Namespace: "team", Name: "elsewhere", Pods: 1, Pod: "elsewhere", Scheduler: "another",
			WaitSeconds: 3600},
		{Position: 1, Namespace: "team", Name: "important", Pods: 1, Pod: "important", Priority: 100,
			Scheduler: "berth-scheduler", WaitSeconds: 1, Nominated: "a"},
		{Position: 2, Namespace: "team", Name: "old", Pods: 1, Pod: "old", Scheduler: "berth-scheduler", WaitSeconds: 3600},
		{Position: 3, Namespace: "team", Name: "train", Gang: true, Pods: 2, Pod: "train-9", MilliGPU: 8000,
			Scheduler: "berth-scheduler", WaitSeconds: 1200, Reason: "needs 3 nodes, [31mfits 2"},
		{Position: 4, Namespace: "team", Name: "young", Pods: 1, Pod: "young", Scheduler: "berth-scheduler", WaitSeconds: 60,
			Reason: "0/3 nodes are available"},
		{Namespace: "team", Name: "gated", Pods: 1, Pod: "gated", Scheduler: "berth-scheduler", WaitSeconds: 3600,
			Reason: "held back by scheduling gates: quota"},
	}
	assert.Equal(t, "queue", want, c.Queue)
	gangs := []Gang{{Namespace: "team", Name: "train", MinMember: 3, Members: 2, MilliGPU: 8000, Phase: "PreScheduling",
		WaitSeconds: 3600, Reason: "needs 3 nodes, [31mfits 2", Reserved: "2 nodes reserved"}}
	assert.Equal(t, "gangs", gangs, c.Gangs)
	for _, name := range []string{"train-9", "train-10", "train-11"} {
		b.Set(pod(name, "a", "cpu=1 nvidia.com/gpu=4", inGang("train")))
	}
	gangs[0].Scheduled, gangs[0].Members, gangs[0].Running, gangs[0].MilliGPU, gangs[0].Nodes, gangs[0].Started, gangs[0].
		WaitSeconds, gangs[0].Reason, gangs[0].Reserved = 3, 3, 3, 12000, 1, true, 0, "", ""
	assert.Equal(t, "gangs that have started", gangs, b.Cluster(now).Gangs)
	for _, name := range []string{"train-9", "train-10", "train-11"} {
		b.Set(pod(name, "a", "cpu=1", inGang("train"), func(p *v1.Pod) { p.Status.Phase = v1.PodSucceeded }))
	}
	// Members that come after the minimum has succeeded wait, whatever the PodGroup says.
	b.Set(pod("train-12", "", "cpu=1", inGang("train")))
	if got := b.Cluster(now); got.Totals.PendingGangs != 1 || len(got.Gangs) != 1 || got.Gangs[0].Started {
		t.Errorf("%d gangs pending, want 1: %+v", got.Totals.PendingGangs, got.Gangs)
	}
	b.Set(pod("train-12", "a", "cpu=1", inGang("train")))
	if got := b.Cluster(now); got.Totals.PendingGangs != 0 || len(got.Gangs) != 1 || !got.Gangs[0].Started {
		t.Errorf("%d gangs pending, want none: %+v", got.Totals.PendingGangs, got.Gangs)
	}
	b.Set(pod("train-12", "a", "cpu=1", inGang("train"), func(p *v1.Pod) { p.Status.Phase = v1.PodSucceeded }))
	if got := b.Cluster(now).Gangs; len(got) != 0 {
		t.Errorf("a gang that has ended is shown: %+v", got)
	}
}

func TestWarningsAreCountedOnceAndBounded(t *testing.T) {
	t.Parallel()
	b := newStore()
	for i := range 3 * mostWarnings {
		b.addWarning(Warning{Time: now.Add(time.Duration(i) * time.Second), Object: fmt.Sprint("Pod/p-", i),
			Reason: "FailedScheduling", Message: "m", Count: 1})
	}
	last := Warning{Time: now.Add(time.Hour), Object: fmt.Sprint("Pod/p-", 3*mostWarnings-1), Reason: "FailedScheduling",
		Message: "again\x1b[2J", Count: 2}
	b.addWarning(last)
	got := b.Cluster(now).Warnings
	last.Message = "again [2J"
	if len(got) != mostWarnings || got[0] != last || got[1].Object != fmt.Sprint("Pod/p-", 3*mostWarnings-2) {
		t.Errorf("%d warnings, the first %+v, then %+v", len(got), got[0], got[1])
	}
}

// Whatever the order of events, the answer is that of the objects that there are in the end.
func TestAStoreForgetsNothingAndKeepsNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b, nodes, pods := newStore(), map[string]*v1.Node{}, map[string]*v1.Pod{}
		groups := map[string]*schedulingv1alpha1.PodGroup{}
		name := rapid.SampledFrom([]string{"a", "b", "c"})
		for range rapid.IntRange(0, 60).Draw(t, "events") {
			switch n := name.Draw(t, "name"); rapid.IntRange(0, 5).Draw(t, "event") {
			case 0:
				nodes[n] = node(n, fmt.Sprintf("nvidia.com/gpu=%d", rapid.IntRange(0, 4).Draw(t, "gpus")))
				b.Set(nodes[n])
			case 1:
				delete(nodes, n)
				b.Delete(node(n, ""))
			case 2:
				p := pod(n, rapid.SampledFrom([]string{"", "a", "b", "gone"}).Draw(t, "node"),
					fmt.Sprintf("cpu=%d nvidia.com/gpu=%d", rapid.IntRange(1, 16).Draw(t, "cpu"),
						rapid.IntRange(0, 2).Draw(t, "asks")))
				if rapid.Bool().Draw(t, "member") {
					inGang(name.Draw(t, "gang"))(p)
				}
				p.Status.Phase = rapid.SampledFrom([]v1.PodPhase{v1.PodPending, v1.PodRunning, v1.PodSucceeded}).Draw(t, "phase")
				pods[n] = p
				b.Set(p)
			case 3:
				delete(pods, n)
				b.Delete(pod(n, "", ""))
			case 4:
				groups[n] = &schedulingv1alpha1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: n},
					Spec: schedulingv1alpha1.PodGroupSpec{MinMember: 2}}
				b.Set(groups[n])
			case 5:
				delete(groups, n)
				b.Delete(&schedulingv1alpha1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: n}})
			}
			if rapid.Bool().Draw(t, "look") {
				b.Cluster(now)
			}
		}
		var all []any
		for _, n := range nodes {
			all = append(all, n)
		}
		for _, p := range pods {
			all = append(all, p)
		}
		for _, g := range groups {
			all = append(all, g)
		}
		rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		fresh := newStore(all...)
		if diff := cmp.Diff(fresh.Cluster(now), b.Cluster(now)); diff != "" {
			t.Fatalf("against a fresh store (-fresh +old):\n%s", diff)
		}
		if len(b.objects) != len(fresh.objects) {
			t.Fatalf("the store keeps %d objects, a fresh one %d", len(b.objects), len(fresh.objects))
		}
	})
}

func TestThePodsOnANode(t *testing.T) {
	t.Parallel()
	b := newStore(node("a", "nvidia.com/gpu=4"), pod("p", "a", "cpu=1"),
		pod("q", "a", "cpu=1 nvidia.com/gpu=2", inGang("g")), pod("r", "b", "cpu=1"))
	want := []Row{{Kind: "pod", Namespace: "team", Name: "q", Cells: []any{"team/q", gpus(2000), "", "g", int32(0),
		seconds(3600)}}, {Kind: "pod", Namespace: "team", Name: "p", Cells: []any{"team/p", gpus(0), "", "", int32(0),
		seconds(3600)}}}
	assert.Equal(t, "pods", want, b.PodsOn("a", now).Rows)
	if got := b.PodsOn("nowhere", now).Rows; len(got) != 0 {
		t.Errorf("a node that does not exist has %v", got)
	}
}

func TestNamesAreInTheOrderOfTheirNumbers(t *testing.T) {
	t.Parallel()
	names := []string{"b-1", "a-10", "a-9", "a", "a-09"}
	slices.SortFunc(names, compareNames)
	assert.Equal(t, "order", []string{"a", "a-9", "a-09", "a-10", "b-1"}, names)
}

// onlyOn is the affinity that the DaemonSet controller gives the pod of a node.
func onlyOn(node string) *v1.Affinity {
	return &v1.Affinity{NodeAffinity: &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{
		NodeSelectorTerms: []v1.NodeSelectorTerm{{
			MatchFields: []v1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: v1.NodeSelectorOpIn,
				Values: []string{node}}}}}}}}
}
