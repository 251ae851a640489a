package explain

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/ptr"

	"berth.dev/berth/test/harness/assert"
)

func TestASentenceSaysWhatIsTrueAndWhatHelps(t *testing.T) {
	t.Parallel()
	labelled := func(name, key, value string) *v1.Node {
		n := node(name, "8")
		n.Labels[key] = value
		return n
	}
	selecting := func(pairs ...string) *v1.Pod {
		p := pod("p", "", "1", 0)
		p.Spec.NodeSelector = map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			p.Spec.NodeSelector[pairs[i]] = pairs[i+1]
		}
		return p
	}
	required := pod("p", "", "1", 0)
	required.Spec.Affinity = &v1.Affinity{
		NodeAffinity: &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{
			NodeSelectorTerms: []v1.NodeSelectorTerm{
				{MatchExpressions: []v1.NodeSelectorRequirement{{Key: "disk", Operator: v1.NodeSelectorOpIn,
					Values: []string{"ssd", "nvme"}}}},
				{MatchExpressions: []v1.NodeSelectorRequirement{{Key: "zone", Operator: v1.NodeSelectorOpExists}}}}}}}
	newer := pod("p", "", "1", 0)
	newer.Spec.Affinity = &v1.Affinity{
		NodeAffinity: &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{
			NodeSelectorTerms: []v1.NodeSelectorTerm{
				{MatchExpressions: []v1.NodeSelectorRequirement{{Key: "generation", Operator: v1.NodeSelectorOpGt,
					Values: []string{"8"}}}}}}}}
	misspelt := pod("p", "", "0", 0)
	for _, list := range []v1.ResourceList{misspelt.Spec.Containers[0].Resources.Requests,
		misspelt.Spec.Containers[0].Resources.Limits} {
		delete(list, "nvidia.com/gpu")
		list["nvidia.com/gpus"] = resource.MustParse("1")
	}
	cordoned := node("c", "8")
	cordoned.Spec.Unschedulable = true
	on := func(p *v1.Pod, node string) *v1.Pod {
		p.Spec.NodeName, p.Status.Phase = node, v1.PodRunning
		return p
	}
	for _, tt := range []struct {
		name    string
		pod     *v1.Pod
		objects []runtime.Object
		want    string
	}{
		{"a pod that runs where it would not go today", pod("p", "b", "1", 0),
			[]runtime.Object{node("a", "8"), node("b", "8"), pod("q", "a", "7", 0)},
			"It runs on b. Today the scheduler would choose a, because it wastes "},
		{"a pod that runs on a node as good as the best", pod("p", "b", "1", 0),
			[]runtime.Object{node("a", "8"), node("b", "8")}, "It runs on b. Today a would do as well."},
		{"a pod that runs on a node that would reject it", pod("p", "c", "1", 0), []runtime.Object{node("a", "8"), cordoned},
			"It runs on c. Today NodeUnschedulable would reject that node (node(s) were unschedulable), and a would be chosen."},
		{"a pod for which no node would do", on(selecting("team", "x"), "a"), []runtime.Object{node("a", "8")},
			"It runs on a. Today it would not be placed there. No node could take it, even if it was empty: of 1 node, 1 " +
				"didn't match Pod's node affinity/selector (NodeAffinity); no node has the label team=x."},
		{"a resource that no node has", misspelt, []runtime.Object{node("a", "8")},
			"; no node has nvidia.com/gpus. Did you mean nvidia.com/gpu?"},
		{"a label that no node has", selecting("disk", "ssd"), []runtime.Object{node("a", "8")},
			"; no node has the label disk=ssd."},
		{"a label with other values", selecting("disk", "ssd"), []runtime.Object{labelled("a", "disk", "hdd"),
			node("b", "8")}, "; no node has the label disk=ssd (nodes have hdd)."},
		{"labels that no node has together", selecting("disk", "ssd", "zone", "x"),
			[]runtime.Object{labelled("a", "disk", "ssd"), labelled("b", "zone", "x")},
			"; no node has all of disk=ssd, zone=x."},
		{"labels of a required affinity", required, []runtime.Object{labelled("a", "disk", "hdd")},
			"; no node has the label disk=ssd or nvme (nodes have hdd), and no node has the label zone."},
		{"a label that is too small on each node", newer, []runtime.Object{labelled("a", "generation", "7"), node("b", "8")},
			"; no node meets generation Gt 8 (nodes have 7)."},
		{"a label that one node has, which is full", selecting("disk", "ssd"), []runtime.Object{labelled("a", "disk", "ssd"),
			node("b", "8"), pod("q", "a", "8", 0)},
			"; a comes closest"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := ask(t, tt.pod, tt.objects...).Verdict; !strings.Contains(got, tt.want) {
				t.Errorf("got  %q\nwant %q in it", got, tt.want)
			}
		})
	}
}

// What comes free on a node helps no pod that the node would reject when empty.
// What claims and addresses lack may come free elsewhere, whatever their plugins call it.
func TestRejectionsThatHoldOfAnEmptyNode(t *testing.T) {
	t.Parallel()
	for plugin, want := range map[string]bool{"NodeAffinity": true, "TaintToleration": true, "GPUAware": true,
		"DynamicResources": false, "IPReservation": false, "Coscheduling": false, "VolumeBinding": false} {
		status := fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "no").WithPlugin(plugin)
		assert.Equal(t, plugin+": final", want, ruledOut(status))
	}
}

func TestOnlyNodesThatAPodCouldUseComeClosest(t *testing.T) {
	t.Parallel()
	const b200, l4 = "NVIDIA-B200", "NVIDIA-L4"
	of := func(name, model, gpus string, change ...func(*v1.Node)) *v1.Node {
		n := node(name, gpus)
		n.Labels["nvidia.com/gpu.product"] = model
		for _, f := range change {
			f(n)
		}
		return n
	}
	asking := func(change func(*v1.Pod)) *v1.Pod {
		p := pod("p", "", "8", 0)
		change(p)
		return p
	}
	byModel := asking(func(p *v1.Pod) { p.Annotations = map[string]string{"berth.dev/gpu-models": b200} })
	bySelector := asking(func(p *v1.Pod) { p.Spec.NodeSelector = map[string]string{"nvidia.com/gpu.product": b200} })
	byAffinity := asking(func(p *v1.Pod) {
		p.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
				MatchExpressions: []v1.NodeSelectorRequirement{{Key: "nvidia.com/gpu.product", Operator: v1.NodeSelectorOpIn,
					Values: []string{b200}}}}}}}}
	})
	tainted := func(n *v1.Node) {
		n.Spec.Taints = []v1.Taint{{Key: "team", Value: "x", Effect: v1.TaintEffectNoSchedule}}
	}
	cordoned := func(n *v1.Node) { n.Spec.Unschedulable = true }
	agent := pod("agent", "b", "0", 0)
	agent.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "agent", UID: "agent",
		Controller: ptr.To(true)}}
	agent.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
			MatchFields: []v1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: v1.NodeSelectorOpIn,
				Values: []string{"b"}}}}}}}}
	allCores := asking(func(p *v1.Pod) {
		for _, list := range []v1.ResourceList{p.Spec.Containers[0].Resources.Requests,
			p.Spec.Containers[0].Resources.Limits} {
			list["cpu"] = resource.MustParse("32")
		}
	})
	onL4 := pod("q", "l4", "1", 0)
	for _, tt := range []struct {
		name    string
		pod     *v1.Pod
		objects []runtime.Object
		closest []string
		want    string
	}{
		{"another model by annotation", byModel, []runtime.Object{of("b", b200, "4"), of("l4", l4, "8"), onL4}, nil,
			"No node could take it, even if it was empty: of 2 nodes, 1 with another GPU model (NVIDIA-L4; GPUAware) and 1 "},
		{"another model with only a small node left", byModel, []runtime.Object{of("l4", l4, "4"), onL4},
			[]string{"l4"}, "No node could take it, even if it was empty: of 1 node, 1 with another GPU model"},
		{"another model by node selector", bySelector, []runtime.Object{of("b", b200, "4"), of("l4", l4, "8"), onL4}, nil,
			"No node could take it, even if it was empty: of 2 nodes, "},
		{"another model by required affinity", byAffinity, []runtime.Object{of("b", b200, "4"), of("l4", l4, "8"), onL4},
			nil, "No node could take it, even if it was empty: of 2 nodes, "},
		{"a taint and a cordon", pod("p", "", "8", 0), []runtime.Object{of("b", b200, "8", tainted),
			of("l4", l4, "8", cordoned), onL4}, nil,
			"No node could take it, even if it was empty: of 2 nodes, 1 had untolerated taint(s) (TaintToleration) and 1 were " +
				"unschedulable (NodeUnschedulable)."},
		{"a node of the model that is full", byModel, []runtime.Object{of("b", b200, "8"), of("l4", l4, "8"), onL4,
			pod("r", "b", "4", 0)}, []string{"b"}, "; b comes closest and would need 8 nvidia.com/gpu free instead of 4."},
		{"cores that a DaemonSet keeps", allCores, []runtime.Object{of("b", b200, "8"), agent}, nil,
			"No node fits: of 1 node, "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e := ask(t, tt.pod, tt.objects...)
			var closest []string
			for _, c := range e.Closest {
				closest = append(closest, c.Node)
			}
			if !slices.Equal(closest, tt.closest) || !strings.Contains(e.Verdict, tt.want) {
				t.Errorf("closest are %v, want %v: %q, want %q in it", closest, tt.closest, e.Verdict, tt.want)
			}
		})
	}
}

// One reason more than a sentence names is named, too: "for other reasons" would hide that it is one.
func TestOneOtherReasonIsNamed(t *testing.T) {
	t.Parallel()
	if got, want := counted(map[string]int{"x": 14, "y": 20, "z": 16}), "20 y, 16 z and 14 x"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := counted(map[string]int{"w": 1, "x": 14, "y": 20,
		"z": 16}), "20 y, 16 z and 15 for other reasons"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAPodOfAnotherSchedulerIsToldWhatToDo(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"gpu-aware-schedular": "did you mean gpu-aware-scheduler?",
		"":                    "a pod without schedulerName gets this one, which berth up --replace-default",
		"volcano":             `pod default/p: manifests/base/scheduler-config.yaml: there is no profile "volcano"; it has gpu-aware-scheduler, `,
	} {
		p := pod("p", "", "1", 0)
		p.Spec.SchedulerName = name
		_, err := Pod(Question{Configuration: shipped(t), Objects: []runtime.Object{node("a", "8"), p}, Pod: p, Now: now})
		assert.Contains(t, fmt.Sprint(err), want)
	}
}

// A gang that runs has no pending member, although the one that is explained is looked at as if it was.
func TestAGangThatRunsHasNoPendingMember(t *testing.T) {
	t.Parallel()
	objects := []runtime.Object{node("a", "8")}
	for _, name := range []string{"g-0", "g-1", "g-2"} {
		objects = append(objects, ofGang(name, "a", "1", "3"))
	}
	e := ask(t, objects[1].(*v1.Pod), objects...)
	if e.Gang.Bound != 3 || e.Gang.Pending != 0 || e.Verdict != "It runs on a, as one of 3 bound members of its gang." {
		t.Errorf("%d are bound, %d pending: %s", e.Gang.Bound, e.Gang.Pending, e.Verdict)
	}
}
