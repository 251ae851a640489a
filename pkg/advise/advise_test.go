package advise

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"berth.dev/berth/pkg/schedulerconfig"
	"berth.dev/berth/pkg/wellknown"
	"berth.dev/berth/test/harness/assert"
	"berth.dev/berth/test/harness/leak"
	"berth.dev/berth/test/harness/require"
)

func TestMain(m *testing.M) { leak.Main(m) }

var now = time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)

func resources(cpu, gpus string) v1.ResourceList {
	return v1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse("64Gi"),
		"nvidia.com/gpu": resource.MustParse(gpus), "pods": resource.MustParse("110")}
}

func node(name, gpus, dollars string) *v1.Node {
	return &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("node-" + name),
			Annotations: map[string]string{"berth.dev/price-per-hour": dollars},
			Labels: map[string]string{v1.LabelHostname: name, "nvidia.com/gpu.product": "NVIDIA-L4",
				"nvidia.com/gpu.count": gpus}},
		Status: v1.NodeStatus{Capacity: resources("32", gpus), Allocatable: resources("32", gpus),
			Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}},
	}
}

// pod is one of a ReplicaSet; pending without a node.
func pod(name, on, gpus string, change ...func(*v1.Pod)) *v1.Pod {
	requests := resources("1", gpus)
	delete(requests, "pods")
	requests["memory"] = resource.MustParse("1Gi")
	p := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID("pod-" + name),
			CreationTimestamp: metav1.NewTime(now.Add(-time.Hour)), Labels: map[string]string{"app": name},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "rs-" + name,
				UID: types.UID("rs-" + name), Controller: ptr.To(true)}}},
		Spec: v1.PodSpec{NodeName: on, SchedulerName: "berth-scheduler", Priority: ptr.To[int32](0),
			Containers: []v1.Container{{Name: "c", Image: "i", Resources: v1.ResourceRequirements{Requests: requests,
				Limits: requests}}}},
		Status: v1.PodStatus{Phase: map[bool]v1.PodPhase{true: v1.PodPending, false: v1.PodRunning}[on == ""]},
	}
	for _, f := range change {
		f(p)
	}
	return p
}

func priority(n int32) func(*v1.Pod) { return func(p *v1.Pod) { p.Spec.Priority = &n } }

func bare(p *v1.Pod) { p.OwnerReferences = nil }

func ofApp(name string) func(*v1.Pod) { return func(p *v1.Pod) { p.Labels["app"] = name } }

// saves has the pod save its work that often.
func saves(every string) func(*v1.Pod) {
	return func(p *v1.Pod) { metav1.SetMetaDataAnnotation(&p.ObjectMeta, wellknown.CheckpointEveryKey, every) }
}

func daemon(p *v1.Pod) {
	p.OwnerReferences[0].Kind = "DaemonSet"
	p.Spec.Affinity = onlyOn(p.Spec.NodeName)
}

// member makes the pod one of the gang g of two.
func member(p *v1.Pod) {
	p.Labels["pod-group.scheduling.sigs.k8s.io/name"], p.Labels["pod-group.scheduling.sigs.k8s.io/min-available"] = "g",
		"2"
}

func budgetOf(app string, allowed int32) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "budget", Namespace: "default"},
		Spec:   policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}},
		Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: allowed}}
}

func ask(t *testing.T, target Unit, objects ...runtime.Object) *Advice {
	t.Helper()
	c, err := schedulerconfig.Shipped()
	require.NoError(t, err)
	advice, err := Cluster(Question{Configuration: c, Objects: objects, Now: now,
		Target: target, Most: 5})
	require.NoError(t, err)
	return advice
}

// moved names the pods that a plan moves and starts.
func moved(p *Plan) string {
	if p == nil {
		return ""
	}
	var s strings.Builder
	for _, m := range p.Moves {
		for _, pod := range m.Pods {
			fmt.Fprintf(&s, "%s from %s to %s; ", pod.Name, pod.From, pod.To)
		}
	}
	for i, start := range p.Starts {
		if i > 0 {
			s.WriteString(", ")
		}
		s.WriteString(start.Name + " on " + start.Node)
	}
	return s.String()
}

func pendingPods(objects []runtime.Object) int {
	n := 0
	for _, obj := range objects {
		if p, ok := obj.(*v1.Pod); ok && p.Spec.NodeName == "" {
			n++
		}
	}
	return n
}

func TestPodsAreMovedForWorkThatWaits(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		objects []runtime.Object
		want    []string // what each plan moves
		verdict string
	}{
		{"nothing waits", []runtime.Object{node("a", "8", "1"), pod("p", "a", "2")}, nil, ""},
		{"what the scheduler starts by itself needs no advice", []runtime.Object{node("a", "8", "1"), pod("p", "", "2")}, nil,
			""},
		{"free GPUs are on two nodes", []runtime.Object{node("a", "8", "1"), node("b", "8", "1"), pod("x", "a", "5"),
			pod("y", "a", "1"), pod("z", "b", "6"), pod("p", "", "3")},
			[]string{"y from a to b; p on a"}, "no cheaper plan of those tried"},
		{"the fewest pods are moved", []runtime.Object{node("a", "8", "1"), node("b", "8", "1"), node("c", "8", "1"),
			pod("x1", "a", "1"), pod("x2", "a", "1"), pod("x", "a", "4"),
			pod("y", "b", "2"), pod("y2", "b", "4"), pod("z", "c", "6"), pod("p", "", "4")}, []string{"y from b to "}, ""},
		{"two small pods move where the large one cannot", []runtime.Object{node("a", "8", "1"), node("b", "8", "1"),
			pod("x", "a", "4"), pod("y1", "a", "1"), pod("y2", "a", "1"), pod("z", "b", "6", bare), pod("p", "", "4")},
			[]string{"y1 from a to b; y2 from a to b; p on a"}, ""},
		{"of two plans that move as many pods the one goes that loses less work",
			[]runtime.Object{node("a", "8", "1"), node("b", "8", "1"), node("c", "8", "1"), pod("x", "a", "5", bare),
				pod("y", "a", "1"),
				pod("v", "b", "5", bare), pod("w", "b", "1", saves("30m")), pod("z", "c", "6", bare), pod("p", "", "3")},
			[]string{"w from b to a; p on b"}, "starts when 1 pod is moved, which loses 0.5 GPU hours of work; no cheaper"},
		{"two pods move that lose less than one", []runtime.Object{node("a", "8", "1"), node("b", "8", "1"),
			node("c", "8", "1"), pod("x", "a", "4", bare), pod("y", "a", "2"),
			pod("v", "b", "4", bare), pod("w1", "b", "1", saves("15m")), pod("w2", "b", "1", saves("15m")),
			pod("z", "c", "5", bare), pod("p", "", "4")},
			[]string{"w1 from b to "}, "starts when 2 pods are moved, which loses 0.5 GPU hours of work"},
		{"no node is large enough", []runtime.Object{node("a", "8", "1"), pod("x", "a", "1"), pod("p", "", "9")},
			[]string{""}, "moving pods does not help"},
		{"what moves has nowhere to go", []runtime.Object{node("a", "8", "1"), node("b", "8", "1"), pod("x", "a", "8"),
			pod("y", "b", "6"), pod("p", "", "4")},
			[]string{""}, "moving pods does not help"},
		{"a budget forbids it", []runtime.Object{node("a", "8", "1"), node("b", "8", "1"), pod("x", "a", "5", bare),
			pod("y", "a", "1"), pod("z", "b", "6", bare), pod("p", "", "3"), budgetOf("y", 0)},
			[]string{""}, "1 pod may not move. Of each: PodDisruptionBudget budget allows 0 disruptions"},
		{"a budget allows it", []runtime.Object{node("a", "8", "1"), node("b", "8", "1"), pod("x", "a", "5", bare),
			pod("y", "a", "1"), pod("z", "b", "6", bare), pod("p", "", "3"), budgetOf("y", 1)},
			[]string{"y from a to b; p on a"}, ""},
		{"a budget allows one of two", []runtime.Object{node("a", "8", "1"), node("b", "8", "1"),
			pod("x", "a", "4", bare), pod("y1", "a", "1", ofApp("y")), pod("y2", "a", "1", ofApp("y")),
			pod("z", "b", "6", bare), pod("p", "", "4"), budgetOf("y", 1)},
			[]string{""}, "PodDisruptionBudgets do not allow all that have to move"},
		{"a pod without a controller stays", []runtime.Object{node("a", "8", "1"), node("b", "8", "1"),
			pod("x", "a", "5", bare), pod("y", "a", "1", bare), pod("z", "b", "6", bare), pod("p", "", "3")},
			[]string{""}, "nothing would replace it"},
		{"a pod of its node stays", []runtime.Object{node("a", "8", "1"), node("b", "8", "1"), pod("x", "a", "5", bare),
			pod("y", "a", "1", daemon), pod("z", "b", "6", bare), pod("p", "", "3")},
			[]string{""}, "nothing would replace it"},
		{"pods of higher priority move where they run again", []runtime.Object{node("a", "8", "1"), node("b", "8", "1"),
			pod("x", "a", "5", bare), pod("y", "a", "1", priority(9)), pod("z", "b", "6", bare), pod("p", "", "3")},
			[]string{"y from a to b; p on a"}, ""},
		{"a gang waits for one place", []runtime.Object{node("a", "8", "1"), node("b", "8", "1"), node("c", "8", "1"),
			pod("x", "a", "5", bare), pod("y", "a", "1"), pod("z", "b", "5", bare), pod("v", "c", "7", bare),
			pod("g1", "", "3", member), pod("g2", "", "3", member)}, []string{"y from a to c; g"}, ""},
		{"a gang that runs moves as a whole", []runtime.Object{node("a", "8", "1"), node("b", "8", "1"),
			pod("x", "a", "4", bare), pod("g1", "a", "1", member), pod("g2", "a", "1", member), pod("z", "b", "6", bare),
			pod("p", "", "4")},
			[]string{"g1 from a to b; g2 from a to b; p on a"}, ""},
		{"the plan for the second of two equal pods builds on that for the first",
			[]runtime.Object{node("a", "8", "1"), node("b", "8", "1"), node("c", "8", "1"),
				pod("x", "a", "5", bare), pod("y", "a", "1"), pod("v", "b", "5", bare), pod("w", "b", "1"),
				pod("z", "c", "6", bare), pod("p1", "", "3"), pod("p2", "", "3")},
			[]string{"y from a to b; p1 on a", "y from b to c; w from b to c; p2 on b"}, ""},
		{"the order is that of priorities", []runtime.Object{node("a", "1", "1"), pod("x", "a", "1", bare, priority(100)),
			pod("p", "", "1"), pod("q", "", "1", priority(5))}, []string{"", ""}, ""},
		{"a pod with a scheduling gate is not tried",
			[]runtime.Object{node("a", "8", "1"),
				pod("p", "", "1", func(p *v1.Pod) { p.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: "quota"}} })},
			[]string{""}, "the scheduler does not try it"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := ask(t, Unit{}, tt.objects...)
			if len(a.Pending) != len(tt.want) {
				t.Fatalf("%d units wait, want %d: %+v", len(a.Pending), len(tt.want), a.Pending)
			}
			if pending := pendingPods(tt.objects); a.PendingPods != pending {
				t.Errorf("%d pods are pending, want %d", a.PendingPods, pending)
			}
			for i, p := range a.Pending {
				got := moved(p.Plan)
				if tt.want[i] == "" && got != "" || !strings.HasPrefix(got, tt.want[i]) {
					t.Errorf("%s: moves %q, want %q (%s)", p.Unit, got, tt.want[i], p.Verdict)
				}
				if said := p.Verdict + "; " + strings.Join(a.Notes, "; "); i == 0 && !strings.Contains(said, tt.verdict) {
					t.Errorf("%s: %q, want %q", p.Unit, said, tt.verdict)
				}
			}
		})
	}
}

// ofJob makes the pod one of a Job.
func ofJob(name string) func(*v1.Pod) {
	return func(p *v1.Pod) {
		p.OwnerReferences[0] = metav1.OwnerReference{APIVersion: "batch/v1", Kind: "Job", Name: name, UID: types.UID(name),
			Controller: ptr.To(true)}
		p.Labels = map[string]string{"job-name": name}
	}
}

func TestEqualPodsAreOneUnit(t *testing.T) {
	t.Parallel()
	objects := []runtime.Object{node("a", "8", "1"), node("b", "8", "1"), pod("x", "a", "5", bare), pod("y", "a", "1"),
		pod("z", "b", "6", bare), pod("other", "", "3", ofJob("other"))}
	for i := range 6 {
		objects = append(objects, pod(fmt.Sprint("p", i), "", "3", ofJob("sweep"), func(p *v1.Pod) {
			p.Labels["batch.kubernetes.io/job-completion-index"] = fmt.Sprint(i)
			p.CreationTimestamp = metav1.NewTime(now.Add(-2 * time.Hour))
		}))
	}
	a := ask(t, Unit{}, objects...)
	if len(a.Pending) != 2 {
		t.Fatalf("%d units wait, want 2: %+v", len(a.Pending), a.Pending)
	}
	const want = "one of these 6 pods of Job sweep starts when 1 pod is moved"
	p := a.Pending[0]
	if p.Name != "p0" || p.Members != 6 || p.Needs != 1 || !strings.HasPrefix(p.Verdict, want) ||
		moved(p.Plan) != "y from a to b; p0 on a" {
		t.Errorf("%+v moves %q, want %q", p, moved(p.Plan), want)
	}
	if one := ask(t, Unit{KindPod, "default", "p4"}, objects...); one.Pending[0].Verdict != p.Verdict {
		t.Errorf("of one of them: %q, want %q", one.Pending[0].Verdict, p.Verdict)
	}
}

// Two nodes are equally good for y1. Where it takes c, y2 finds no node.
func TestAPlanThatHangsOnATieIsNotShown(t *testing.T) {
	t.Parallel()
	for _, other := range []string{"b", "d"} {
		a, c := node("a", "8", "1"), node("c", "8", "1")
		a.Labels["disk"], c.Labels["disk"] = "ssd", "ssd"
		advice := ask(t, Unit{}, a, node(other, "8", "1"), c, pod("x", "a", "4", bare), pod("y1", "a", "2"),
			pod("y2", "a", "2", func(p *v1.Pod) { p.Spec.NodeSelector = map[string]string{"disk": "ssd"} }),
			pod("v", other, "6", bare), pod("w", "c", "6", bare), pod("p", "", "4"))
		if p := advice.Pending[0]; p.Plan != nil || p.Tried == 0 {
			t.Errorf("beside %s: %q after %d tries, want no plan: %s", other, moved(p.Plan), p.Tried, p.Verdict)
		}
	}
}

func TestAConfigurationWithExtendersIsRefused(t *testing.T) {
	t.Parallel()
	c, err := schedulerconfig.Parse("f.yaml",
		[]byte("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"+
			"extenders: [{urlPrefix: 'https://127.0.0.1:1', filterVerb: filter, tlsConfig: {caFile: absent.pem}}]\n"))
	require.NoError(t, err)
	_, err = Cluster(Question{Configuration: c, Objects: []runtime.Object{node("a", "8", "1")}, Now: now,
		Most: 5})
	if !errors.Is(err, schedulerconfig.ErrInvalid) ||
		!strings.HasPrefix(err.Error(), "f.yaml: extenders: https://127.0.0.1:1 ") {
		t.Errorf("error %v, want one that names file and extender", err)
	}
}

func TestTheTableSaysWhatTheSchedulerSays(t *testing.T) {
	t.Parallel()
	a := &Advice{Pending: []Pending{{Unit: Unit{KindPod, "team", "p"}, Why: "2 Insufficient nvidia.com/gpu",
		Verdict: "moving pods does not help"}}}
	var out strings.Builder
	require.NoError(t, a.WriteTable(&out))
	const want = "  pod team/p: moving pods does not help\n    the scheduler says: 2 Insufficient nvidia.com/gpu\n"
	assert.Contains(t, out.String(), want)
}

func TestNodesAreGivenBack(t *testing.T) {
	t.Parallel()
	keep := func(n *v1.Node) *v1.Node {
		n.Annotations["karpenter.sh/do-not-disrupt"] = "true"
		return n
	}
	waitsForMore := []runtime.Object{node("a", "8", "8"), node("b", "8", "8"), node("c", "8", "8"), pod("x", "c", "2")}
	for i := range 4 {
		waitsForMore = append(waitsForMore, pod(fmt.Sprint("g", i), "", "8", gangOf("4")))
	}
	selecting := func(p *v1.Pod) { p.Spec.NodeSelector = map[string]string{"no-node": "has-it"} }
	manyIdle := []runtime.Object{pod("x", "used", "2"), node("used", "8", "9"), keep(node("kept", "8", "1"))}
	for i := range 7 {
		manyIdle = append(manyIdle, node(fmt.Sprint("idle", i), "8", "8"))
	}
	for _, tt := range []struct {
		name    string
		objects []runtime.Object
		want    string
	}{
		{"the dearest first, for as long as the pods fit", []runtime.Object{node("a", "8", "8"), node("b", "8", "9"),
			node("c", "8", "7"), pod("x", "a", "2"), pod("y", "b", "3"), pod("z", "c", "2")},
			"b 9000000 1, a 8000000 1"},
		{"what nothing uses needs no move", []runtime.Object{node("a", "8", "8"), node("b", "8", "9"), pod("x", "a", "8"),
			pod("d", "b", "0", daemon)}, "b 9000000 0"},
		{"none that a gang could use that waits for more of them", waitsForMore, ""},
		{"none that a pod could use that waits, once it was empty", []runtime.Object{node("a", "8", "8"), node("b", "8", "9"),
			pod("x", "a", "2"), pod("y", "b", "1", bare), pod("p", "", "16"), pod("q", "", "8")}, ""},
		{"one that the work that waits cannot use", []runtime.Object{node("a", "8", "8"), node("b", "8", "9"),
			pod("x", "a", "2", bare), pod("p", "", "1", selecting), pod("q", "", "16")},
			"b 9000000 0"},
		{"nothing is moved while nodes are empty", manyIdle,
			"idle0 8000000 0, idle1 8000000 0, idle2 8000000 0, idle3 8000000 0, idle4 8000000 0"},
		{"a gang is moved once, and all that it leaves is given back",
			[]runtime.Object{node("a", "8", "8"), node("b", "8", "8"), node("c", "8", "8"), keep(node("d", "8", "8")),
				pod("g0", "a", "2", gangOf("3")), pod("g1", "b", "2", gangOf("3")), pod("g2", "c", "2", gangOf("3"))},
			"a 8000000 3, b 8000000 0, c 8000000 0"},
		{"not with a pod that may not move", []runtime.Object{node("a", "8", "8"), node("b", "8", "9"),
			pod("x", "a", "2", bare), pod("y", "b", "2", bare)}, ""},
		{"not one that its owner keeps", []runtime.Object{func() *v1.Node {
			n := node("a", "8", "8")
			n.Annotations["karpenter.sh/do-not-disrupt"] = "true"
			return n
		}(), node("b", "8", "9"), pod("y", "b", "2", bare)}, ""},
		{"not the last one", []runtime.Object{node("a", "8", "8"), pod("x", "a", "2")}, ""},
		{"not one that starts what waits", []runtime.Object{node("a", "8", "8"), node("b", "8", "8"),
			pod("x", "a", "8", bare), pod("p", "", "8")}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, g := range ask(t, Unit{}, tt.objects...).GiveBack {
				got = append(got, fmt.Sprint(g.Node, " ", g.PriceMicroDollarsPerHour, " ", g.Plan.pods()))
			}
			if strings.Join(got, ", ") != tt.want {
				t.Errorf("given back: %v, want %s", got, tt.want)
			}
		})
	}
}

// onlyOn is the affinity that the DaemonSet controller gives the pod of a node.
func onlyOn(node string) *v1.Affinity {
	return &v1.Affinity{NodeAffinity: &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{
		NodeSelectorTerms: []v1.NodeSelectorTerm{{
			MatchFields: []v1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: v1.NodeSelectorOpIn,
				Values: []string{node}}}}}}}}
}
