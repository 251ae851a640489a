package plugins_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"
	upstream "k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/pkg/candidates"
	"berth.dev/berth/pkg/schedulerconfig"
	"berth.dev/berth/test/harness/require"
)

// seen is how many nodes the framework is given for a pod: all or some.
func (r *rig) seen(tb testing.TB, state fwk.CycleState, pod *v1.Pod) int {
	tb.Helper()
	result, status, _ := r.best.RunPreFilterPlugins(r.ctx, state, pod)
	if !status.IsSuccess() {
		tb.Fatalf("PreFilter: %v", status)
	}
	if result.AllNodes() {
		return r.snapshot.NumNodesInPlacement()
	}
	return len(result.NodeNames)
}

func term(key string) v1.PodAffinityTerm {
	return v1.PodAffinityTerm{TopologyKey: key,
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}}}
}

func TestAllNodesAreLookedAtWhereClassesDoNotDecide(t *testing.T) {
	t.Parallel()
	preferred := []v1.WeightedPodAffinityTerm{{Weight: 1, PodAffinityTerm: term(v1.LabelTopologyZone)}}
	selectorTerm := v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{
		{Key: v1.LabelTopologyZone, Operator: v1.NodeSelectorOpIn, Values: []string{"z1"}},
	}}
	spread := func(when v1.UnsatisfiableConstraintAction) func(*v1.Pod) {
		return func(p *v1.Pod) {
			p.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{{
				MaxSkew: 1, TopologyKey: v1.LabelTopologyZone, WhenUnsatisfiable: when,
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}},
			}}
		}
	}
	affinity := func(a v1.Affinity) func(*v1.Pod) { return func(p *v1.Pod) { p.Spec.Affinity = &a } }
	r := newRig(t, nodesOf(200))
	for _, test := range []struct {
		name string
		tune func(*v1.Pod)
		all  bool
	}{
		{name: "a plain pod", tune: func(*v1.Pod) {}},
		{name: "a pod without requests", tune: func(p *v1.Pod) { p.Spec.Containers[0].Resources.Requests = nil }},
		{name: "a pod that selects nodes",
			tune: func(p *v1.Pod) { p.Spec.NodeSelector = map[string]string{v1.LabelTopologyZone: "z1"} }},
		{name: "a pod that requires a zone", tune: affinity(v1.Affinity{NodeAffinity: &v1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{
				selectorTerm}},
		}})},
		{name: "a pod that is never spread unevenly", tune: spread(v1.DoNotSchedule)},
		{name: "a pod that is kept apart", tune: affinity(v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{term(v1.LabelHostname)},
		}})},
		{name: "a pod that prefers to be spread", tune: spread(v1.ScheduleAnyway), all: true},
		{name: "a pod that prefers a zone", all: true, tune: affinity(v1.Affinity{NodeAffinity: &v1.NodeAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []v1.PreferredSchedulingTerm{{Weight: 1, Preference: selectorTerm}},
		}})},
		{name: "a pod that prefers company", all: true, tune: affinity(v1.Affinity{PodAffinity: &v1.PodAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: preferred,
		}})},
		{name: "a pod that prefers to be apart", all: true, tune: affinity(v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: preferred,
		}})},
		{name: "a pod that is nominated to a node", all: true,
			tune: func(p *v1.Pod) { p.Status.NominatedNodeName = "n00001" }},
		{name: "a pod that fits nowhere", all: true, tune: func(p *v1.Pod) {
			p.Spec.Containers[0].Resources.Requests[v1.ResourceCPU] = resource.MustParse("1000")
		}},
	} {
		pod := podOf("p", 1000, 1024, 1)
		pod.Labels = map[string]string{"app": "a"}
		test.tune(pod)
		if got := r.seen(t, upstream.NewCycleState(), pod); (got == 200) != test.all || got == 0 {
			t.Errorf("%s: the framework is given %d of 200 nodes, want all: %t", test.name, got, test.all)
		}
	}
	state := upstream.NewCycleState()
	state.SetPodGroupSchedulingCycle(upstream.NewCycleState())
	if got := r.seen(t, state, podOf("p", 1000, 1024, 1)); got != 200 {
		t.Errorf("in the cycle of a pod group the framework is given %d nodes, want all 200", got)
	}
}

// tuned is the shipped configuration with another number of candidates.
func tuned(t *testing.T, n int32, tune func(*schedulerapi.KubeSchedulerConfiguration)) *schedulerconfig.Configuration {
	t.Helper()
	c := shipped(t)
	for _, p := range c.Component.Profiles {
		for _, plugin := range p.PluginConfig {
			switch args := plugin.Args.(type) {
			case *config.GPUAwareArgs:
				args.Candidates = &n
			case *config.CostOptimizedArgs:
				args.Candidates = &n
			}
		}
	}
	tune(c.Component)
	return c
}

func TestAProfileWithoutCandidatesStaysAsItIs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]*schedulerconfig.Configuration{
		"candidates are switched off": tuned(t, 0, func(*schedulerapi.KubeSchedulerConfiguration) {}),
		"one of two plugins wants all nodes": tuned(t, 64, func(c *schedulerapi.KubeSchedulerConfiguration) {
			for _, p := range c.Profiles {
				for _, plugin := range p.PluginConfig {
					if args, ok := plugin.Args.(*config.CostOptimizedArgs); ok {
						args.Candidates = new(int32(0))
					}
				}
			}
		}),
		"there is an extender": tuned(t, 64, func(c *schedulerapi.KubeSchedulerConfiguration) {
			c.Extenders = []schedulerapi.Extender{{URLPrefix: "http://127.0.0.1:1", FilterVerb: "filter"}}
		}),
	} {
		r := newRigWith(t, c, profileName, nodesOf(10))
		if r.best != r.all {
			t.Errorf("%s, but the profile is wrapped", name)
		}
	}
	stock, err := schedulerconfig.Load(schedulerconfig.Stock)
	require.NoError(t, err)
	if r := newRigWith(t, stock, v1.DefaultSchedulerName, nodesOf(10)); r.best != r.all {
		t.Error("the stock profile is wrapped")
	}
}

func TestASmallClusterIsLookedAtWhole(t *testing.T) {
	t.Parallel()
	for _, nodes := range []int{63, 64, 127} {
		if got := newRig(t, nodesOf(nodes)).seen(t, upstream.NewCycleState(), podOf("p", 1000, 1024, 1)); got != nodes {
			t.Errorf("of %d nodes the framework is given %d, want all", nodes, got)
		}
	}
}

func TestANodeWithTheImageWinsAmongManyEqualNodes(t *testing.T) {
	t.Parallel()
	nodes := make([]*v1.Node, 300)
	for i := range nodes {
		nodes[i] = nodeOf(i * len(kinds))
	}
	image := []v1.ContainerImage{{Names: []string{"registry.example/work:1"}, SizeBytes: 900 << 30}}
	nodes[217].Status.Images, nodes[44].Status.Images = image, image
	r := newRig(t, nodes)
	for i := range 20 {
		pod := podOf(fmt.Sprint(i), 100, 128, 1)
		result, err := r.choose(t, r.best, pod)
		require.NoError(t, err)
		if got := result.SuggestedHost; got != nodes[217].Name && got != nodes[44].Name {
			t.Fatalf("pod %d is on %s, which does not have its image", i, got)
		}
	}
}

func TestANodeIsNotGivenAwayThatAnotherPodIsNominatedTo(t *testing.T) {
	t.Parallel()
	nodes := nodesOf(200)
	left := nodes[100]
	// A pod of higher priority has made room for itself on every other node with GPUs.
	priority := int32(1000)
	var rivals []*v1.Pod
	for _, node := range nodes {
		if node == left || node.Labels["nvidia.com/gpu.product"] == "" {
			continue
		}
		rival := podOf("rival-"+node.Name, 1000, 1024, 1)
		rival.Spec.Priority = &priority
		rival.Status.NominatedNodeName = node.Name
		rivals = append(rivals, rival)
	}
	r := newRig(t, nodes, rivals...)
	for _, rival := range rivals {
		info, err := upstream.NewPodInfo(rival)
		require.NoError(t, err)
		r.sched.SchedulingQueue.AddNominatedPod(klog.Logger{}, info,
			&fwk.NominatingInfo{NominatedNodeName: rival.Status.NominatedNodeName, NominatingMode: fwk.ModeOverride})
	}
	result, err := r.choose(t, r.best, podOf("p", 1000, 1024, 8))
	require.NoError(t, err)
	if result.SuggestedHost != left.Name {
		t.Errorf("the pod is on %s, want %s, for which no pod is nominated", result.SuggestedHost, left.Name)
	}
}

func TestPreemptionAndDryRunsSeeAllNodes(t *testing.T) {
	t.Parallel()
	r := newRig(t, nodesOf(200))
	var handle fwk.Handle = r.all
	wrapped := map[string]upstream.Framework{profileName: r.all}
	candidates.Wrap(wrapped)
	if wrapped[profileName] == r.all {
		t.Fatal("the profile is not wrapped")
	}
	result, status, _ := handle.(upstream.Framework).RunPreFilterPlugins(r.ctx, upstream.NewCycleState(),
		podOf("p", 1000, 1024, 1))
	if !status.IsSuccess() || !result.AllNodes() {
		t.Errorf("the handle that plugins have gives %v, %v, want all nodes", result, status)
	}
}

// What is measured of a node is not known of its class: a pod with an objective sees all nodes, and the one that meets
// it is found wherever it is. Pods without one see the best nodes as ever.
func TestTheNodeThatMeetsAnObjectiveIsFoundAmongMany(t *testing.T) {
	t.Parallel()
	const only = "n00199"
	server := prometheus(t, func(string) map[string]string { return ofNodes(map[string]string{only: "90"}) })
	text := fmt.Sprintf(`apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
percentageOfNodesToScore: 100
profiles:
- schedulerName: %s
  plugins: {multiPoint: {enabled: [{name: GPUAware, weight: 20}, {name: SLAAware, weight: 100}]}}
  pluginConfig:
  - {name: PodTopologySpread, args: {defaultingType: List}}
  - {name: SLAAware, args: {signals: {prometheus: {url: %q}, latencyMsQuery: x}}}
`, profileName, server.URL)
	c, err := schedulerconfig.Parse("with objectives", []byte(text))
	require.NoError(t, err)
	r := newRigWith(t, c, profileName, nodesOf(200))
	plain, picky := podOf("plain", 1000, 1024, 0), podOf("picky", 1000, 1024, 0)
	picky.Annotations = map[string]string{"berth.dev/slo-latency-ms": "100"}
	err = wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 2*time.Minute, true,
		func(context.Context) (bool, error) {
			return r.totals(t, picky)[only] >= r.totals(t, plain)[only]+9000, nil
		})
	if err != nil {
		t.Fatalf("waiting for the figure: %v", err)
	}
	if got := r.seen(t, upstream.NewCycleState(), plain); got == 200 || got == 0 {
		t.Errorf("for a pod without an objective the framework is given %d of 200 nodes, want the best", got)
	}
	got, err := r.choose(t, r.best, picky)
	if err != nil || got.SuggestedHost != only {
		t.Errorf("the pod with an objective goes to %s, %v; want %s", got.SuggestedHost, err, only)
	}
	spread := preferring(0)
	spread.Annotations = picky.Annotations
	if seen := r.namesSeen(t, spread); seen != nil {
		t.Errorf("for a pod with an objective and a preference the framework is given %d nodes, want all", len(seen))
	}
	if got, err = r.choose(t, r.best, plain); err != nil || got.SuggestedHost == only {
		t.Errorf("a pod without an objective goes to %s, too, %v: the test shows nothing", got.SuggestedHost, err)
	}
}
