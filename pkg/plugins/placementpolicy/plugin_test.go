package placementpolicy

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/pkg/candidates"
)

type specs = map[string]string

const (
	onlyPoolA = `compliance: {rules: [{name: a, pods: {selector: {matchLabels: {tenant: acme}}}, nodes: {selector: {matchLabels: {pool: a}}}}]}`
	twoMatlab = `licenses: [{name: matlab, count: 2}]`
)

func twoPools() []runtime.Object {
	return []runtime.Object{node("a", "pool", "a", "data", "imagenet"), node("b", "pool", "b"), namespace("default", "kind", "plain")}
}

func TestWhatBecomesOfAPod(t *testing.T) {
	t.Parallel()
	open := outcome{Scores: map[string]int64{"a": 0, "b": 0}, Reasons: map[string]string{}}
	tests := map[string]struct {
		policies specs
		pod      *v1.Pod
		want     outcome
	}{
		"no policy":                        {pod: pod("p").Obj(), want: open},
		"a policy that is not about it":    {policies: specs{"tenants": onlyPoolA}, pod: pod("p").Obj(), want: open},
		"a license that is free":           {policies: specs{"tools": twoMatlab}, pod: pod("p", "berth.dev/licenses", "matlab").Obj(), want: open},
		"a license that no policy defines": {pod: pod("p", "berth.dev/licenses", "matlab").Obj(), want: outcome{Refused: "pod annotation berth.dev/licenses: no placement policy has a license matlab"}},
		"a rule that binds it": {policies: specs{"tenants": onlyPoolA}, pod: pod("p").Label("tenant", "acme").Obj(), want: outcome{
			Scores: map[string]int64{"a": 0}, Reasons: map[string]string{"b": "node(s) that rule a of placement policy tenants does not allow"}}},
		"a dataset on a node": {policies: specs{"data": `datasets: [{name: imagenet, nodes: {selector: {matchLabels: {data: imagenet}}}}]`},
			pod: pod("p", "berth.dev/datasets", "imagenet").Obj(), want: outcome{Scores: map[string]int64{"a": 100, "b": 0}, Reasons: map[string]string{}}},
		"a namespace that is not known yet, and no rule that reads its labels": {policies: specs{"n": `compliance: {rules: [{name: other, pods: {expression: "pod.namespace == 'other'"}, nodes: {expression: "true"}}]}`},
			pod: pod("p").Namespace("new").Obj(), want: open},
		"a namespace that is not known yet, and an expression that reads its labels": {policies: specs{"n": `compliance: {rules: [{name: other, pods: {expression: "'x' in pod.namespaceLabels"}, nodes: {expression: "true"}}]}`},
			pod: pod("p").Namespace("new").Obj(), want: outcome{Refused: "reading namespace new for placement policies: the namespace is not known to the scheduler yet"}},
		"a namespace that is not known yet": {policies: specs{"n": `compliance: {rules: [{name: secret, pods: {namespaceSelector: {matchLabels: {kind: secret}}}, nodes: {expression: "true"}}]}`},
			pod: pod("p").Namespace("new").Obj(), want: outcome{Refused: "reading namespace new for placement policies: the namespace is not known to the scheduler yet"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, _ := newCluster(t, options{}, test.policies, twoPools()...).schedule(t, test.pod)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("outcome (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAPodThatNoRuleConcernsIsSkippedAndBatched(t *testing.T) {
	t.Parallel()
	for name, policies := range map[string]specs{"no policies": nil, "policies about others": {"tenants": onlyPoolA, "tools": twoMatlab}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, options{}, policies, twoPools()...)
			_, state := c.schedule(t, pod("p").Obj())
			if !state.GetSkipFilterPlugins().Has(Name) || !state.GetSkipScorePlugins().Has(Name) {
				t.Errorf("skipped are %v and %v", state.GetSkipFilterPlugins(), state.GetSkipScorePlugins())
			}
			sign := func(p *v1.Pod) string {
				fragments, status := c.plugin.SignPod(t.Context(), p)
				if !status.IsSuccess() {
					t.Fatal(status)
				}
				text, err := json.Marshal(fragments)
				if err != nil {
					t.Fatal(err)
				}
				return string(text)
			}
			if sign(pod("p").Label("index", "1").Obj()) != sign(pod("q").Label("index", "2").Obj()) {
				t.Error("a label that no rule reads tells pods apart")
			}
			if (sign(pod("p").Obj()) == sign(pod("r").Label("tenant", "acme").Obj())) != (policies == nil) {
				t.Error("a rule that concerns one of two pods tells them apart, and nothing else does")
			}
		})
	}
}

func TestALicenseIsHeldUntilThePodIsGone(t *testing.T) {
	t.Parallel()
	user := func(name string) *v1.Pod { return pod(name, "berth.dev/licenses", "matlab").Obj() }
	const none = "node(s) without a free license matlab: 2 of 2 in use, the pod uses 1 (rule matlab of placement policy tools)"
	tests := map[string]struct {
		// free is what happens to the second of two pods that have licenses; a third is to get one then.
		free func(t *testing.T, c *cluster, state fwk.CycleState, second *v1.Pod)
		want string
	}{
		"nothing happens": {func(*testing.T, *cluster, fwk.CycleState, *v1.Pod) {}, none},
		"its reservation is ended": {func(t *testing.T, c *cluster, s fwk.CycleState, p *v1.Pod) {
			c.framework.RunReservePluginsUnreserve(t.Context(), s, p, "b")
		}, ""},
		"it is bound, then its reservation is ended, because the answer was lost": {func(t *testing.T, c *cluster, s fwk.CycleState, p *v1.Pod) {
			p.Spec.NodeName = "b"
			c.create(t, p)
			await(t, "the binding", func() bool { return c.bound(p) })
			c.framework.RunReservePluginsUnreserve(t.Context(), s, p, "b")
		}, none},
		"it is bound, then deleted": {func(t *testing.T, c *cluster, _ fwk.CycleState, p *v1.Pod) {
			p.Spec.NodeName = "b"
			c.create(t, p)
			await(t, "the binding", func() bool { return c.bound(p) })
			c.api.Delete(v1.SchemeGroupVersion.WithResource("pods"), types.NamespacedName{Namespace: "default", Name: p.Name})
			await(t, "the deletion", func() bool { return c.used()[0] == 1 })
		}, ""},
		"it is bound and has failed": {func(t *testing.T, c *cluster, _ fwk.CycleState, p *v1.Pod) {
			p.Spec.NodeName, p.Status.Phase = "b", v1.PodFailed
			c.create(t, p)
			await(t, "the failure", func() bool { return c.used()[0] == 1 })
		}, ""},
		"it is bound and has succeeded": {func(t *testing.T, c *cluster, _ fwk.CycleState, p *v1.Pod) {
			p.Spec.NodeName, p.Status.Phase = "b", v1.PodSucceeded
			c.create(t, p)
			await(t, "the end", func() bool { return c.used()[0] == 1 })
		}, ""},
		"there are three licenses": {func(t *testing.T, c *cluster, _ fwk.CycleState, _ *v1.Pod) {
			c.apply(t, "tools", 2, `licenses: [{name: matlab, count: 3}]`)
			await(t, "the policy", func() bool { return c.plugin.book.current().set.Limits()[0].Count == 3 })
		}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, options{}, specs{"tools": twoMatlab}, twoPools()...)
			if _, reason := c.place(t, user("first"), "a"); reason != "" {
				t.Fatal(reason)
			}
			second := user("second")
			state, reason := c.place(t, second, "b")
			if reason != "" {
				t.Fatal(reason)
			}
			test.free(t, c, state, second)
			if _, reason := c.place(t, user("third"), "a"); reason != test.want {
				t.Errorf("the third pod: %q, want %q", reason, test.want)
			}
		})
	}
}

// bound reports whether the ledger has heard that the pod is bound: a cycle would not say.
func (c *cluster) bound(p *v1.Pod) bool {
	known, err := c.plugin.book.pods.Pods(p.Namespace).Get(p.Name)
	if err != nil || known.Spec.NodeName == "" {
		return false
	}
	// What the handler does when its turn comes; twice is as good as once.
	c.plugin.book.bind(known)
	return true
}

func TestLicensesAreCountedAgainAfterARestart(t *testing.T) {
	t.Parallel()
	objects := twoPools()
	for i := range 2 {
		objects = append(objects, pod(fmt.Sprint("running-", i), "berth.dev/licenses", "matlab").Node("a").Obj())
	}
	objects = append(objects, pod("ended", "berth.dev/licenses", "matlab").Node("a").Phase(v1.PodSucceeded).Obj(), pod("waiting", "berth.dev/licenses", "matlab").Obj())
	c := newCluster(t, options{}, specs{"tools": twoMatlab}, objects...)
	// The first cycle already knows, whatever the handlers of informers have done by then.
	if _, reason := c.place(t, pod("p", "berth.dev/licenses", "matlab").Obj(), "b"); !strings.Contains(reason, "2 of 2 in use") {
		t.Errorf("a third pod: %q", reason)
	}
}

func TestAPolicyThatComesLaterCountsPodsThatAreAboutToRun(t *testing.T) {
	t.Parallel()
	c := newCluster(t, options{}, nil, twoPools()...)
	user := pod("first").Label("app", "matlab").Obj()
	c.create(t, user)
	await(t, "the pod", func() bool { _, err := c.plugin.book.pods.Pods("default").Get("first"); return err == nil })
	if _, reason := c.place(t, user, "a"); reason != "" {
		t.Fatal(reason)
	}
	c.apply(t, "tools", 1, `licenses: [{name: matlab, count: 1, pods: {selector: {matchLabels: {app: matlab}}}}]`)
	await(t, "the policy", func() bool { return len(c.plugin.book.current().set.Limits()) == 1 })
	if _, reason := c.place(t, pod("second").Label("app", "matlab").Obj(), "a"); !strings.Contains(reason, "1 of 1 in use") {
		t.Errorf("the second pod: %q", reason)
	}
}

func TestEvictingAHolderFreesALicense(t *testing.T) {
	t.Parallel()
	holder := pod("holder", "berth.dev/licenses", "matlab=2").Node("a").Obj()
	c := newCluster(t, options{}, specs{"tools": twoMatlab}, append(twoPools(), holder)...)
	ctx, state := t.Context(), framework.NewCycleState()
	p := pod("p", "berth.dev/licenses", "matlab").Priority(10).Obj()
	if _, status, _ := c.framework.RunPreFilterPlugins(ctx, state, p); !status.IsSuccess() {
		t.Fatal(status)
	}
	info := c.nodeInfos(t)[slices.IndexFunc(c.nodeInfos(t), func(n fwk.NodeInfo) bool { return n.Node().Name == "a" })]
	filter := func(state fwk.CycleState) *fwk.Status { return c.framework.RunFilterPlugins(ctx, state, p, info) }
	if status := filter(state); status.Code() != fwk.Unschedulable {
		t.Fatalf("before: %v, want one that evicting pods may help", status)
	}
	trial := state.Clone()
	victim, _ := framework.NewPodInfo(holder)
	if status := c.framework.RunPreFilterExtensionRemovePod(ctx, trial, p, victim, info); !status.IsSuccess() {
		t.Fatal(status)
	}
	if status := filter(trial); !status.IsSuccess() {
		t.Errorf("without the holder: %v", status)
	}
	if status := filter(state); status.IsSuccess() {
		t.Error("what was tried on a copy of the state changed the state")
	}
	if status := c.framework.RunPreFilterExtensionAddPod(ctx, trial, p, victim, info); !status.IsSuccess() {
		t.Fatal(status)
	}
	if status := filter(trial); status.IsSuccess() {
		t.Error("with the holder back it fits")
	}
	if diff := cmp.Diff([]int64{2}, c.used()); diff != "" {
		t.Errorf("used after trials (-want +got):\n%s", diff)
	}
}

func TestALicenseThatWasFreedByEvictionIsKept(t *testing.T) {
	t.Parallel()
	preemptor := pod("preemptor", "berth.dev/licenses", "matlab").Priority(10).NominatedNodeName("a").Obj()
	c := newCluster(t, options{}, specs{"tools": `licenses: [{name: matlab, count: 1}]`}, append(twoPools(), preemptor)...)
	await(t, "the nomination", func() bool { _, ok := c.plugin.book.nominated.Load(preemptor.UID); return ok })
	for priority, free := range map[int32]bool{0: false, 10: true, 20: true} {
		o, _ := c.schedule(t, pod(fmt.Sprint("p", priority), "berth.dev/licenses", "matlab").Priority(priority).Obj())
		if fits := len(o.Scores) == 2; fits != free {
			t.Errorf("a pod of priority %d: %v, want it to fit: %t", priority, o, free)
		}
	}
	if _, reason := c.place(t, preemptor, "a"); reason != "" {
		t.Errorf("the pod for which others were evicted: %s", reason)
	}
	c.api.Delete(v1.SchemeGroupVersion.WithResource("pods"), types.NamespacedName{Namespace: "default", Name: "preemptor"})
	await(t, "its end", func() bool { _, ok := c.plugin.book.nominated.Load(preemptor.UID); return !ok && c.used()[0] == 0 })
	if o, _ := c.schedule(t, pod("last", "berth.dev/licenses", "matlab").Obj()); len(o.Scores) != 2 {
		t.Errorf("a pod after its end: %v", o)
	}
}

// The dry run of a gang adds members to the state of their class, and says that it is a simulation when it reserves.
func TestADryRunSeesItsMembersAndLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	c := newCluster(t, options{}, specs{"tools": twoMatlab}, twoPools()...)
	ctx, state := t.Context(), framework.NewCycleState()
	state.SetPodGroupSchedulingCycle(framework.NewCycleState())
	p := pod("p", "berth.dev/licenses", "matlab").Obj()
	if _, status, _ := c.framework.RunPreFilterPlugins(ctx, state, p); !status.IsSuccess() {
		t.Fatal(status)
	}
	info := c.nodeInfos(t)[0]
	for i, fits := range []bool{true, true, false} {
		if status := c.framework.RunFilterPlugins(ctx, state, p, info); status.IsSuccess() != fits {
			t.Errorf("with %d members placed: %v, want it to fit: %t", i, status, fits)
		}
		member, _ := framework.NewPodInfo(pod(fmt.Sprint("member-", i), "berth.dev/licenses", "matlab").Obj())
		if status := c.framework.RunPreFilterExtensionAddPod(ctx, state, p, member, info); !status.IsSuccess() {
			t.Fatal(status)
		}
		c.framework.RunReservePluginsReserve(ctx, state, member.Pod, info.Node().Name)
	}
	if diff := cmp.Diff([]int64{0}, c.used()); diff != "" {
		t.Errorf("used after the dry run (-want +got):\n%s", diff)
	}
}

func TestABrokenPolicySaysSoAndRefusesAsItIsTold(t *testing.T) {
	t.Parallel()
	broken := func(failure string) string {
		return `{failurePolicy: ` + failure + `, compliance: {rules: [{name: r, pods: {selector: {matchLabels: {tenant: acme}}}, nodes: {expression: "node.lables.size() > 0"}}]}}`
	}
	for failure, want := range map[string]outcome{
		"Fail": {Scores: map[string]int64{}, Reasons: map[string]string{
			"a": "node(s) for which rule r of placement policy p cannot be evaluated", "b": "node(s) for which rule r of placement policy p cannot be evaluated"}},
		"Ignore": {Scores: map[string]int64{"a": 0, "b": 0}, Reasons: map[string]string{}},
	} {
		t.Run(failure, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, options{}, specs{"p": broken(failure)}, twoPools()...)
			got, _ := c.schedule(t, pod("p").Label("tenant", "acme").Obj())
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("outcome (-want +got):\n%s", diff)
			}
			if got, _ := c.schedule(t, pod("other").Obj()); len(got.Scores) != 2 {
				t.Errorf("a pod that the rule cannot concern: %v", got)
			}
			condition := func() map[string]any {
				obj, _ := c.api.Get(policyKind.Resource, types.NamespacedName{Name: "p"}).(*unstructured.Unstructured)
				conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
				if len(conditions) != 1 {
					return map[string]any{}
				}
				return conditions[0].(map[string]any)
			}
			await(t, "the condition", func() bool { return condition()["status"] == "False" })
			for _, part := range []string{"spec.compliance.rules[0].nodes.expression", "undefined field 'lables'", "failurePolicy " + failure} {
				if !strings.Contains(fmt.Sprint(condition()["message"]), part) {
					t.Errorf("%q does not say %q", condition()["message"], part)
				}
			}
			if event := <-c.recorder.Events; !strings.Contains(event, "Warning Invalid") || !strings.Contains(event, "lables") {
				t.Errorf("the event is %q", event)
			}
			c.apply(t, "p", 2, onlyPoolA)
			await(t, "the condition of the good policy", func() bool { return condition()["status"] == "True" })
		})
	}
}

func TestPodsWakeWhenRulesChange(t *testing.T) {
	t.Parallel()
	tests := map[string]func(t *testing.T, c *cluster){
		"a policy is edited": func(t *testing.T, c *cluster) {
			c.apply(t, "tenants", 2, strings.Replace(onlyPoolA, "pool: a", "pool: b", 1))
		},
		"a policy is deleted": func(_ *testing.T, c *cluster) {
			c.api.Delete(policyKind.Resource, types.NamespacedName{Name: "tenants"})
		},
		"a policy comes": func(t *testing.T, c *cluster) {
			c.apply(t, "more", 1, `compliance: {rules: [{name: x, pods: {selector: {matchLabels: {tenant: acme}}}, nodes: {expression: "true"}}]}`)
		},
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, options{}, specs{"tenants": onlyPoolA},
				append(twoPools(), pod("concerned").Label("tenant", "acme").Obj(), pod("other").Obj(), pod("bound").Label("tenant", "acme").Node("a").Obj())...)
			c.schedule(t, pod("any").Obj())
			change(t, c)
			if woken := <-c.woken; woken != "concerned" {
				t.Errorf("%s woke", woken)
			}
			if len(c.woken) > 0 {
				t.Errorf("%s woke as well", <-c.woken)
			}
		})
	}
}

func TestPodsWakeWhenTheirNamespaceComes(t *testing.T) {
	t.Parallel()
	const secret = `compliance: {rules: [{name: secret, pods: {namespaceSelector: {matchLabels: {kind: secret}}}, nodes: {selector: {matchLabels: {pool: a}}}}]}`
	p := pod("p").Namespace("new").Obj()
	c := newCluster(t, options{}, specs{"n": secret}, append(twoPools(), p)...)
	if o, _ := c.schedule(t, p); o.Refused == "" {
		t.Errorf("a pod of an unknown namespace: %v", o)
	}
	c.create(t, namespace("new", "kind", "secret"))
	if woken := <-c.woken; woken != "p" {
		t.Errorf("%s woke", woken)
	}
	want := outcome{Scores: map[string]int64{"a": 0}, Reasons: map[string]string{"b": "node(s) that rule secret of placement policy n does not allow"}}
	if o, _ := c.schedule(t, p); !cmp.Equal(want, o) {
		t.Errorf("once it is known (-want +got):\n%s", cmp.Diff(want, o))
	}
}

func TestHints(t *testing.T) {
	t.Parallel()
	c := newCluster(t, options{}, specs{"tenants": onlyPoolA, "tools": `licenses: [{name: matlab, count: 1, nodes: {selector: {matchLabels: {pool: b}}}}]`}, twoPools()...)
	c.schedule(t, pod("any").Obj())
	acme, user, plain := pod("acme").Label("tenant", "acme").Obj(), pod("user", "berth.dev/licenses", "matlab").Obj(), pod("plain").Obj()
	gone := pod("gone", "berth.dev/licenses", "matlab").Node("b").Obj()
	tests := map[string]struct {
		hint     func(klog.Logger, *v1.Pod, any, any) (fwk.QueueingHint, error)
		pod      *v1.Pod
		old, new any
		want     fwk.QueueingHint
	}{
		"a holder goes":                       {c.plugin.afterPodChange, user, gone, nil, fwk.Queue},
		"a holder goes, and no license helps": {c.plugin.afterPodChange, acme, gone, nil, fwk.QueueSkip},
		"a pod goes that held nothing":        {c.plugin.afterPodChange, user, plain, nil, fwk.QueueSkip},
		"a holder gives its license back":     {c.plugin.afterPodChange, user, gone, pod("gone").Node("b").ResourceVersion("2").Obj(), fwk.Queue},
		"a holder changes in nothing that matters": {c.plugin.afterPodChange, user, gone,
			pod("gone", "berth.dev/licenses", "matlab").Node("b").Label("x", "y").ResourceVersion("3").Obj(), fwk.QueueSkip},
		"a node of the right pool comes":      {c.plugin.afterNodeChange, acme, nil, node("n", "pool", "a"), fwk.Queue},
		"a node of another pool comes":        {c.plugin.afterNodeChange, acme, nil, node("n", "pool", "b"), fwk.QueueSkip},
		"a node joins the pool":               {c.plugin.afterNodeChange, acme, node("n", "pool", "b"), node("n", "pool", "a"), fwk.Queue},
		"a node leaves the pool":              {c.plugin.afterNodeChange, acme, node("n", "pool", "a"), node("n", "pool", "b"), fwk.QueueSkip},
		"a node changes in another label":     {c.plugin.afterNodeChange, acme, node("n", "pool", "a"), node("n", "pool", "a", "x", "y"), fwk.QueueSkip},
		"a node with holders leaves the pool": {c.plugin.afterNodeChange, user, node("n", "pool", "b"), node("n"), fwk.Queue},
		"the pod changes tenants":             {c.plugin.afterOwnChange, acme, acme, pod("acme").ResourceVersion("2").Obj(), fwk.Queue},
		"the pod changes in something else":   {c.plugin.afterOwnChange, acme, acme, pod("acme").Label("tenant", "acme").Label("x", "y").ResourceVersion("3").Obj(), fwk.QueueSkip},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := test.hint(klog.Background(), test.pod, test.old, test.new)
			if err != nil || got != test.want {
				t.Errorf("hint is %v (%v), want %v", got, err, test.want)
			}
		})
	}
}

// The queue may hear of a deletion before the ledger does: the pod that it wakes must find the license free.
func TestAHintFreesTheLicenseOfAPodThatIsGone(t *testing.T) {
	t.Parallel()
	c := newCluster(t, options{}, specs{"tools": `licenses: [{name: matlab, count: 1}]`}, twoPools()...)
	holder, user := pod("holder", "berth.dev/licenses", "matlab").Obj(), pod("user", "berth.dev/licenses", "matlab").Obj()
	if _, reason := c.place(t, holder, "a"); reason != "" {
		t.Fatal(reason)
	}
	if hint, err := c.plugin.afterPodChange(klog.Background(), user, holder, nil); err != nil || hint != fwk.Queue {
		t.Fatalf("hint is %v (%v)", hint, err)
	}
	if _, reason := c.place(t, user, "a"); reason != "" {
		t.Errorf("after the hint: %s", reason)
	}
	// A binding that failed for the scheduler alone is told in the same way, and the pod runs.
	user.Spec.NodeName = "a"
	c.create(t, user)
	await(t, "the binding", func() bool { return c.bound(user) })
	if _, err := c.plugin.afterPodChange(klog.Background(), pod("next", "berth.dev/licenses", "matlab").Obj(), user, nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int64{1}, c.used()); diff != "" {
		t.Errorf("used while the pod runs (-want +got):\n%s", diff)
	}
}

// Nodes with the same key are judged alike, and as Filter and Score judge each of them.
func TestAClassIsJudgedAsItsNodesAre(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 1))
	objects := []runtime.Object{namespace("default")}
	for i := range 100 {
		objects = append(objects, node(fmt.Sprint("n", i), "pool", []string{"a", "b", "c"}[random.IntN(3)], "data", []string{"imagenet", "laion"}[random.IntN(2)], "i", fmt.Sprint(i)))
	}
	c := newCluster(t, options{}, specs{"tenants": onlyPoolA, "tools": `licenses: [{name: matlab, count: 1, nodes: {selector: {matchLabels: {pool: b}}}}]`,
		"data": `datasets: [{name: imagenet, nodes: {selector: {matchLabels: {data: imagenet}}}}]`}, objects...)
	if _, reason := c.place(t, pod("holder", "berth.dev/licenses", "matlab").Obj(), c.nodeInfos(t)[0].Node().Name); reason != "" && !strings.Contains(reason, "outside") {
		t.Fatal(reason)
	}
	for _, p := range []*v1.Pod{pod("plain").Obj(), pod("acme").Label("tenant", "acme").Obj(), pod("user", "berth.dev/licenses", "matlab").Obj(),
		pod("reader", "berth.dev/datasets", "imagenet").Obj(), pod("all", "berth.dev/datasets", "imagenet", "berth.dev/licenses", "matlab").Obj()} {
		o, state := c.schedule(t, p)
		judge, first := c.plugin.Judge(t.Context(), state, p), map[string]any{}
		for _, info := range c.nodeInfos(t) {
			key, class := c.plugin.Class(candidates.Key{}, info)
			name := string(key.Fixed) + "|" + string(key.All)
			if known, ok := first[name]; ok {
				class = known
			} else {
				first[name] = class
			}
			score, passes := o.Scores[info.Node().Name]
			if refuses := judge.Refuses(class); refuses == passes {
				t.Errorf("pod %s, node %s: Filter passes %t, the judge refuses %t", p.Name, info.Node().Name, passes, refuses)
			}
			if state.GetSkipScorePlugins().Has(Name) || !passes {
				continue
			}
			if got, _ := judge.Score(class, info); fwk.MaxScore-got != score {
				t.Errorf("pod %s, node %s: distance %d of its class, score %d of the node", p.Name, info.Node().Name, got, score)
			}
		}
		if len(first) != 6 {
			t.Errorf("%d classes of nodes in 3 pools with 2 datasets", len(first))
		}
	}
}

func TestPoliciesChangeWhilePodsAreReserved(t *testing.T) {
	t.Parallel()
	c := newCluster(t, options{}, specs{"tools": twoMatlab}, twoPools()...)
	var wg sync.WaitGroup
	stop := make(chan struct{})
	wg.Go(func() {
		for generation := int64(2); ; generation++ {
			select {
			case <-stop:
				return
			default:
				c.plugin.book.build(false)
			}
		}
	})
	for i := range 200 {
		p := pod(fmt.Sprint("p", i), "berth.dev/licenses", "matlab").Obj()
		c.create(t, p)
		state := framework.NewCycleState()
		if status := c.plugin.Reserve(t.Context(), state, p, "a"); status.IsSuccess() != (i < 2) {
			t.Errorf("pod %d: %v", i, status)
		}
	}
	close(stop)
	wg.Wait()
	if diff := cmp.Diff([]int64{2}, c.used()); diff != "" {
		t.Errorf("used (-want +got):\n%s", diff)
	}
}
