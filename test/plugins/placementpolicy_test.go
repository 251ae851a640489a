package plugins_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	berthv1alpha1 "berth.dev/berth/pkg/apis/berth/v1alpha1"
	"berth.dev/berth/pkg/plugins/placementpolicy"
	"berth.dev/berth/test/harness/framework"
	"berth.dev/berth/test/harness/objects"
	"berth.dev/berth/test/harness/require"
)

const (
	onlyPoolA = `compliance: {rules: [{name: a, pods: {selector: {matchLabels: {tenant: acme}}}, nodes: {selector: {matchLabels: {pool: a}}}}]}`
	twoMatlab = `licenses: [{name: matlab, count: 2}]`
)

// specs are policies by name.
type specs = map[string]string

// governed is a scheduler with PlacementPolicy alone.
type governed struct {
	*framework.Scheduler
	plugin *placementpolicy.Plugin
}

// govern starts the plugin with policies and other objects.
func govern(tb testing.TB, policies specs, others ...runtime.Object) *governed {
	tb.Helper()
	setup := framework.Setup{
		Profile: framework.Alone("berth-scheduler", placementpolicy.Name, nil),
		Plugins: frameworkruntime.Registry{placementpolicy.Name: placementpolicy.New},
		API:     customAPI(tb),
		Objects: others,
	}
	for name, spec := range policies {
		setup.Objects = append(setup.Objects, objects.Custom(tb, "PlacementPolicy", name, spec))
	}
	s := framework.Start(tb, setup)
	return &governed{s, framework.Plugin[*placementpolicy.Plugin](tb, s)}
}

// apply creates a policy, or puts another in its place.
func (g *governed) apply(tb testing.TB, name, spec string) {
	tb.Helper()
	g.Apply(tb, policiesResource, objects.Custom(tb, "PlacementPolicy", name, spec))
}

// status is what the plugin has written of a policy.
func (g *governed) status(tb testing.TB, name string) *berthv1alpha1.PlacementPolicyStatus {
	tb.Helper()
	known, _ := g.API.Get(policiesResource, types.NamespacedName{Name: name}).(*unstructured.Unstructured)
	policy := &berthv1alpha1.PlacementPolicy{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(known.Object, policy); err != nil {
		tb.Fatal(err)
	}
	return &policy.Status
}

// licensed makes a pod that asks for a license of matlab.
func licensed(name string) *st.PodWrapper {
	return objects.Pod(name).SchedulerName("berth-scheduler").Annotation("berth.dev/licenses", "matlab")
}

func ofTenant(name string) *st.PodWrapper {
	return objects.Pod(name).SchedulerName("berth-scheduler").Label("tenant", "acme")
}

func pooled(name string, labels ...string) *v1.Node {
	return objects.Labelled(objects.Node(name, "cpu", "8", "memory", "8Gi"), labels...)
}

func twoPools(others ...runtime.Object) []runtime.Object {
	return append(others, pooled("a", "pool", "a", "data", "imagenet"), pooled("b", "pool", "b"),
		objects.Namespace("default", "kind", "plain"))
}

// woken returns the names of the pods that plugins have woken since it was asked last.
func woken(s *framework.Scheduler) []string {
	pass(second)
	return s.Woken()
}

func TestAPodThatNoRuleConcernsIsSkippedAndBatched(t *testing.T) {
	t.Parallel()
	for name, policies := range map[string]specs{"no policies": nil, "policies about others": {"tenants": onlyPoolA,
		"tools": twoMatlab}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				g := govern(t, policies, twoPools()...)
				state := g.Cycle(t, objects.Pod("p").Obj()).State
				if !state.GetSkipFilterPlugins().Has(placementpolicy.Name) ||
					!state.GetSkipScorePlugins().Has(placementpolicy.Name) {
					t.Errorf("skipped are %v and %v", state.GetSkipFilterPlugins(), state.GetSkipScorePlugins())
				}
				sign := func(p *st.PodWrapper) string {
					fragments, status := g.plugin.SignPod(t.Context(), p.Obj())
					if !status.IsSuccess() {
						t.Fatal(status)
					}
					text, err := json.Marshal(fragments)
					require.NoError(t, err)
					return string(text)
				}
				if sign(objects.Pod("p").Label("index", "1")) != sign(objects.Pod("q").Label("index", "2")) {
					t.Error("a label that no rule reads tells pods apart")
				}
				if (sign(objects.Pod("p")) == sign(ofTenant("r"))) != (policies == nil) {
					t.Error("a rule that concerns one of two pods tells them apart, and nothing else does")
				}
			})
		})
	}
}

func TestPodsWakeWhenRulesChange(t *testing.T) {
	t.Parallel()
	tests := map[string]func(t *testing.T, g *governed){
		"a policy is edited": func(t *testing.T, g *governed) {
			g.apply(t, "tenants", strings.Replace(onlyPoolA, "pool: a", "pool: b", 1))
		},
		"a policy is deleted": func(t *testing.T, g *governed) { g.Delete(t, policiesResource, "", "tenants") },
		"a policy comes": func(t *testing.T, g *governed) {
			g.apply(t, "more", `compliance: {rules: [{name: x, pods: {selector: {matchLabels: {tenant: acme}}}, nodes: {expression: "true"}}]}`)
		},
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				g := govern(t, specs{"tenants": onlyPoolA},
					twoPools(ofTenant("concerned").Obj(), objects.Pod("other").Obj(), ofTenant("bound").Node("a").Obj())...)
				g.Cycle(t, objects.Pod("any").Obj())
				woken(g.Scheduler)
				change(t, g)
				if diff := cmp.Diff([]string{"concerned"}, woken(g.Scheduler)); diff != "" {
					t.Errorf("woken (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestPodsWakeWhenTheirNamespaceComes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const secret = `compliance: {rules: [{name: secret, pods: {namespaceSelector: {matchLabels: {kind: secret}}}, nodes: {selector: {matchLabels: {pool: a}}}}]}`
		p := objects.Pod("p").Namespace("new").Obj()
		g := govern(t, specs{"n": secret}, twoPools(p)...)
		if o := g.Cycle(t, p); o.Rejected == nil {
			t.Errorf("a pod of an unknown namespace: %v", o)
		}
		woken(g.Scheduler)
		g.Create(t, objects.Namespace("new", "kind", "secret"))
		if diff := cmp.Diff([]string{"p"}, woken(g.Scheduler)); diff != "" {
			t.Errorf("woken (-want +got):\n%s", diff)
		}
		want := map[string]string{"b": "node(s) that rule secret of placement policy n does not allow"}
		if diff := cmp.Diff(want, g.Cycle(t, p).Reasons()); diff != "" {
			t.Errorf("once it is known (-want +got):\n%s", diff)
		}
	})
}

// The labels of a namespace say which of its pods use a license, and those of other namespaces wait for it.
func TestPodsWakeWhenANamespaceUsesLessOfALicense(t *testing.T) {
	t.Parallel()
	const tools = `licenses: [{name: matlab, count: 1, pods: {namespaceSelector: {matchLabels: {team: vision}}}, perPod: 1}]`
	for name, test := range map[string]struct {
		labels []string
		want   []string
	}{
		"the namespace leaves the rule":            {nil, []string{"waits"}},
		"the namespace gets another label as well": {[]string{"team", "vision", "x", "y"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				waits := licensed("waits").Obj()
				g := govern(t, specs{"tools": tools}, twoPools(objects.Namespace("vision", "team", "vision"),
					objects.Pod("holder").Namespace("vision").Node("a").Obj(), waits, objects.Pod("plain").Obj())...)
				if reasons := g.Cycle(t, waits).Reasons(); !strings.Contains(reasons["a"], "1 of 1 in use") {
					t.Fatalf("the license is free: %v", reasons)
				}
				woken(g.Scheduler)
				if _, err := g.Client.CoreV1().Namespaces().Update(t.Context(), objects.Namespace("vision", test.labels...),
					metav1.UpdateOptions{}); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(test.want, woken(g.Scheduler)); diff != "" {
					t.Errorf("woken (-want +got):\n%s", diff)
				}
				if reasons := g.Cycle(t, waits).Reasons(); (reasons["a"] == "") != (test.want != nil) {
					t.Errorf("refused: %v", reasons)
				}
			})
		})
	}
}

// hint asks what an event says of a pod that waits: by the number of the event in EventsToRegister.
func hint(t *testing.T, plugin fwk.EnqueueExtensions, event int, pod *v1.Pod, before, after any) fwk.QueueingHint {
	t.Helper()
	events, err := plugin.EventsToRegister(t.Context())
	require.NoError(t, err)
	got, err := events[event].QueueingHintFn(klog.Background(), pod, before, after)
	require.NoError(t, err)
	return got
}

func TestWhatWakesAPodThatPoliciesRefused(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const afterPod, afterNode, afterOwn = 0, 1, 2
		g := govern(t, specs{"tenants": onlyPoolA, "tools": `licenses: [{name: matlab, count: 1, nodes: {selector: {matchLabels: {pool: b}}}}]`}, twoPools()...)
		g.Cycle(t, objects.Pod("any").Obj())
		acme, user, plain, gone := ofTenant("acme").Obj(), licensed("user").Obj(), objects.Pod("plain").Obj(),
			licensed("gone").Node("b").Obj()
		for name, test := range map[string]struct {
			event    int
			pod      *v1.Pod
			old, new any
			want     fwk.QueueingHint
		}{
			"a holder goes":                       {afterPod, user, gone, nil, fwk.Queue},
			"a holder goes, and no license helps": {afterPod, acme, gone, nil, fwk.QueueSkip},
			"a pod goes that held nothing":        {afterPod, user, plain, nil, fwk.QueueSkip},
			"a holder gives its license back": {afterPod, user, gone,
				objects.Pod("gone").Node("b").ResourceVersion("2").Obj(), fwk.Queue},
			"a holder changes in nothing that matters": {afterPod, user, gone, licensed("gone").Node("b").Label("x",
				"y").ResourceVersion("3").Obj(), fwk.QueueSkip},
			"a node of the right pool comes": {afterNode, acme, nil, pooled("n", "pool", "a"), fwk.Queue},
			"a node of another pool comes":   {afterNode, acme, nil, pooled("n", "pool", "b"), fwk.QueueSkip},
			"a node joins the pool": {afterNode, acme, pooled("n", "pool", "b"), pooled("n", "pool", "a"),
				fwk.Queue},
			"a node leaves the pool": {afterNode, acme, pooled("n", "pool", "a"), pooled("n", "pool", "b"),
				fwk.QueueSkip},
			"a node changes in another label": {afterNode, acme, pooled("n", "pool", "a"),
				pooled("n", "pool", "a", "x", "y"), fwk.QueueSkip},
			"a node with holders leaves the pool": {afterNode, user, pooled("n", "pool", "b"), pooled("n"), fwk.Queue},
			"the pod changes tenants": {afterOwn, acme, acme, objects.Pod("acme").ResourceVersion("2").Obj(),
				fwk.Queue},
			"the pod changes in something else": {afterOwn, acme, acme,
				ofTenant("acme").Label("x", "y").ResourceVersion("3").Obj(), fwk.QueueSkip},
		} {
			if got := hint(t, g.plugin, test.event, test.pod, test.old, test.new); got != test.want {
				t.Errorf("%s: hint is %v, want %v", name, got, test.want)
			}
		}
	})
}
