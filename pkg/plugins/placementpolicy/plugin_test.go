package placementpolicy

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/candidates"

	"berth.dev/berth/pkg/simulation/plugintest"
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
			got, _ := newCluster(t, test.policies, twoPools()...).schedule(t, test.pod)
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
			c := newCluster(t, policies, twoPools()...)
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
			c := newCluster(t, specs{"p": broken(failure)}, twoPools()...)
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
			plugintest.Await(t, "the condition", func() bool { return condition()["status"] == "False" })
			for _, part := range []string{"spec.compliance.rules[0].nodes.expression", "undefined field 'lables'", "failurePolicy " + failure} {
				if !strings.Contains(fmt.Sprint(condition()["message"]), part) {
					t.Errorf("%q does not say %q", condition()["message"], part)
				}
			}
			if event := <-c.framework.Recorder.Events; !strings.Contains(event, "Warning Invalid") || !strings.Contains(event, "lables") {
				t.Errorf("the event is %q", event)
			}
			c.apply(t, "p", onlyPoolA)
			plugintest.Await(t, "the condition of the good policy", func() bool { return condition()["status"] == "True" })
		})
	}
}

func TestPodsWakeWhenRulesChange(t *testing.T) {
	t.Parallel()
	tests := map[string]func(t *testing.T, c *cluster){
		"a policy is edited": func(t *testing.T, c *cluster) {
			c.apply(t, "tenants", strings.Replace(onlyPoolA, "pool: a", "pool: b", 1))
		},
		"a policy is deleted": func(_ *testing.T, c *cluster) {
			c.api.Delete(policyKind.Resource, types.NamespacedName{Name: "tenants"})
		},
		"a policy comes": func(t *testing.T, c *cluster) {
			c.apply(t, "more", `compliance: {rules: [{name: x, pods: {selector: {matchLabels: {tenant: acme}}}, nodes: {expression: "true"}}]}`)
		},
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, specs{"tenants": onlyPoolA},
					append(twoPools(), pod("concerned").Label("tenant", "acme").Obj(), pod("other").Obj(), pod("bound").Label("tenant", "acme").Node("a").Obj())...)
				c.schedule(t, pod("any").Obj())
				c.woken()
				change(t, c)
				if diff := cmp.Diff([]string{"concerned"}, c.woken()); diff != "" {
					t.Errorf("woken (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// The loop finds no view yet, the first cycle makes one, and a policy changes, all before the loop makes a view: that of the cycle is
// the one that pods were judged by.
func TestPodsOfTheFirstCycleWakeWhenRulesChange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, specs{"tenants": onlyPoolA}, append(twoPools(), pod("concerned").Label("tenant", "acme").Obj(), pod("other").Obj())...)
		book := c.plugin.book
		ofTheCycle := book.current()
		c.apply(t, "tenants", strings.Replace(onlyPoolA, "pool: a", "pool: b", 1))
		c.woken()
		book.view.Store(ofTheCycle)
		book.catchUp(t.Context(), nil, true, nil)
		if diff := cmp.Diff([]string{"concerned"}, c.woken()); diff != "" {
			t.Errorf("woken (-want +got):\n%s", diff)
		}
	})
}

func TestPodsWakeWhenTheirNamespaceComes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, namespaceComes)
}

func namespaceComes(t *testing.T) {
	const secret = `compliance: {rules: [{name: secret, pods: {namespaceSelector: {matchLabels: {kind: secret}}}, nodes: {selector: {matchLabels: {pool: a}}}}]}`
	p := pod("p").Namespace("new").Obj()
	c := newCluster(t, specs{"n": secret}, append(twoPools(), p)...)
	if o, _ := c.schedule(t, p); o.Refused == "" {
		t.Errorf("a pod of an unknown namespace: %v", o)
	}
	c.woken()
	c.create(t, namespace("new", "kind", "secret"))
	if diff := cmp.Diff([]string{"p"}, c.woken()); diff != "" {
		t.Errorf("woken (-want +got):\n%s", diff)
	}
	want := outcome{Scores: map[string]int64{"a": 0}, Reasons: map[string]string{"b": "node(s) that rule secret of placement policy n does not allow"}}
	if o, _ := c.schedule(t, p); !cmp.Equal(want, o) {
		t.Errorf("once it is known (-want +got):\n%s", cmp.Diff(want, o))
	}
}

func TestHints(t *testing.T) {
	t.Parallel()
	c := newCluster(t, specs{"tenants": onlyPoolA, "tools": `licenses: [{name: matlab, count: 1, nodes: {selector: {matchLabels: {pool: b}}}}]`}, twoPools()...)
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

// Nodes with the same key are judged alike, and as Filter and Score judge each of them.
func TestAClassIsJudgedAsItsNodesAre(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 1))
	objects := []runtime.Object{namespace("default")}
	for i := range 100 {
		objects = append(objects, node(fmt.Sprint("n", i), "pool", []string{"a", "b", "c"}[random.IntN(3)], "data", []string{"imagenet", "laion"}[random.IntN(2)], "i", fmt.Sprint(i)))
	}
	c := newCluster(t, specs{"tenants": onlyPoolA, "tools": `licenses: [{name: matlab, count: 1, nodes: {selector: {matchLabels: {pool: b}}}}]`,
		"data": `datasets: [{name: imagenet, nodes: {selector: {matchLabels: {data: imagenet}}}}]`}, objects...)
	if _, reason := c.place(t, pod("holder", "berth.dev/licenses", "matlab").Obj(), c.framework.Infos(t)[0].Node().Name); reason != "" && !strings.Contains(reason, "outside") {
		t.Fatal(reason)
	}
	for _, p := range []*v1.Pod{pod("plain").Obj(), pod("acme").Label("tenant", "acme").Obj(), pod("user", "berth.dev/licenses", "matlab").Obj(),
		pod("reader", "berth.dev/datasets", "imagenet").Obj(), pod("all", "berth.dev/datasets", "imagenet", "berth.dev/licenses", "matlab").Obj()} {
		o, state := c.schedule(t, p)
		judge, first := c.plugin.Judge(t.Context(), state, p), map[string]any{}
		for _, info := range c.framework.Infos(t) {
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
