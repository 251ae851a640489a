package policy

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	berthv1alpha1 "berth.dev/berth/pkg/apis/berth/v1alpha1"
	"berth.dev/berth/test/harness/require"
)

type fataler interface {
	Helper()
	Fatal(args ...any)
}

// policies reads specs by the names of their policies.
func policies(t fataler, specs map[string]string) []*berthv1alpha1.PlacementPolicy {
	t.Helper()
	var list []*berthv1alpha1.PlacementPolicy
	for name, spec := range specs {
		p := &berthv1alpha1.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name),
			Generation: 1}}
		require.NoError(t, yaml.UnmarshalStrict([]byte(spec), &p.Spec))
		list = append(list, p)
	}
	return list
}

func setOf(t testing.TB, specs map[string]string) *Set {
	t.Helper()
	s, problems := NewSet(policies(t, specs))
	for name, errs := range problems {
		for _, err := range errs {
			if !strings.Contains(err.Error(), "the expression fails for") {
				t.Fatalf("policy %s: %v", name, err)
			}
		}
	}
	return s
}

func podWith(labels, annotations map[string]string) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p", UID: "p", Labels: labels,
		Annotations: annotations}}
}

func namespaceWith(labels map[string]string) *v1.Namespace {
	return &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default", Labels: labels}}
}

func nodeWith(name string, labels map[string]string) *v1.Node {
	return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
}

type set = map[string]string

// The nodes of the tables: two pools, two zones in Europe and one in America.
var nodes = []*v1.Node{
	nodeWith("eu-a", set{"zone": "eu-1", "pool": "a", "data": "imagenet"}),
	nodeWith("eu-b", set{"zone": "eu-2", "pool": "b"}),
	nodeWith("us-b", set{"zone": "us-1", "pool": "b", "certified": "pci"}),
	nodeWith("bare", nil),
}

func TestWhereAPodMayRun(t *testing.T) {
	t.Parallel()
	const europe = `compliance: {rules: [{name: eu, pods: {selector: {matchLabels: {tenant: acme}}}, nodes: {expression: "node.labels[?'zone'].orValue('').startsWith('eu-')"}}]}`
	const pci = `compliance: {rules: [{name: pci, pods: {selector: {matchLabels: {data: cards}}}, nodes: {selector: {matchLabels: {certified: pci}}}, exclusive: true}]}`
	const notAllowed = " of placement policy p does not allow"
	tests := map[string]struct {
		specs               map[string]string
		labels, annotations set
		namespace           set
		daemon              bool
		// refusal is that of the pod; else want is by node, where nodes that are left out take the pod.
		refusal string
		want    map[string]string
	}{
		"no policies": {},
		"a rule that does not select the pod": {
			specs: set{"p": europe}, labels: set{"tenant": "other"},
		},
		"a rule by an expression on nodes": {
			specs: set{"p": europe}, labels: set{"tenant": "acme"},
			want: set{"us-b": "node(s) that rule eu" + notAllowed, "bare": "node(s) that rule eu" + notAllowed},
		},
		"a rule by the labels of the namespace": {
			specs:     set{"p": `compliance: {rules: [{name: a, pods: {namespaceSelector: {matchLabels: {kind: secret}}}, nodes: {selector: {matchLabels: {pool: a}}}}]}`},
			namespace: set{"kind": "secret"},
			want: set{"eu-b": "node(s) that rule a" + notAllowed, "us-b": "node(s) that rule a" + notAllowed,
				"bare": "node(s) that rule a" + notAllowed},
		},
		"a rule by an expression on namespace and annotations": {
			specs:       set{"p": `compliance: {rules: [{name: a, pods: {expression: "pod.namespace == 'default' && 'x' in pod.annotations && pod.namespaceLabels.kind == 'secret'"}, nodes: {selector: {matchLabels: {pool: a}}}}]}`},
			annotations: set{"x": ""}, namespace: set{"kind": "secret"},
			want: set{"eu-b": "node(s) that rule a" + notAllowed, "us-b": "node(s) that rule a" + notAllowed,
				"bare": "node(s) that rule a" + notAllowed},
		},
		"two rules that match, of which both hold": {
			specs: set{"p": europe, "q": `compliance: {rules: [{name: b, nodes: {selector: {matchLabels: {pool: b}}}}]}`}, labels: set{"tenant": "acme"},
			want: set{"eu-a": "node(s) that rule b of placement policy q does not allow", "us-b": "node(s) that rule eu" +
				notAllowed, "bare": "node(s) that rule eu" + notAllowed},
		},
		"nodes that are kept for others": {
			specs: set{"p": pci},
			want:  set{"us-b": "node(s) that rule pci of placement policy p keeps for other pods"},
		},
		"nodes that are kept for the pod": {
			specs: set{"p": pci}, labels: set{"data": "cards"},
			want: set{"eu-a": "node(s) that rule pci" + notAllowed, "eu-b": "node(s) that rule pci" + notAllowed,
				"bare": "node(s) that rule pci" + notAllowed},
		},
		"nodes that two rules of a policy keep, for pods of either": {
			specs:  set{"p": `compliance: {rules: [{name: x, pods: {selector: {matchLabels: {x: "1"}}}, nodes: {selector: {matchLabels: {pool: b}}}, exclusive: true}, {name: y, pods: {selector: {matchLabels: {y: "1"}}}, nodes: {selector: {matchLabels: {certified: pci}}}, exclusive: true}]}`},
			labels: set{"x": "1"},
			want:   set{"eu-a": "node(s) that rule x" + notAllowed, "bare": "node(s) that rule x" + notAllowed},
		},
		"a pod of a DaemonSet on nodes that are kept": {specs: set{"p": pci}, daemon: true},
		"a pod that no rule matches where that is denied": {
			specs:   set{"p": `compliance: {defaultAction: Deny}`},
			refusal: "placement policy p denies pods that none of its compliance rules matches",
		},
		"a pod out of the scope of a denial": {
			specs: set{"p": `compliance: {pods: {namespaceSelector: {matchLabels: {kind: secret}}}, defaultAction: Deny}`},
		},
		"a pod that a rule saves from a denial": {
			specs: set{"p": `compliance: {defaultAction: Deny, rules: [{name: all, pods: {selector: {matchLabels: {ok: "1"}}}, nodes: {expression: "true"}}]}`}, labels: set{"ok": "1"},
		},
		"a dataset that is required": {
			specs:       set{"p": `datasets: [{name: imagenet, mode: Required, nodes: {selector: {matchLabels: {data: imagenet}}}}, {name: mirror, dataset: imagenet, mode: Required, nodes: {selector: {matchLabels: {zone: us-1}}}}]`},
			annotations: set{"berth.dev/datasets": "imagenet"},
			want: set{"eu-b": "node(s) that do not hold dataset imagenet (rule imagenet of placement policy p)",
				"bare": "node(s) that do not hold dataset imagenet (rule imagenet of placement policy p)"},
		},
		"a dataset that is preferred": {
			specs: set{"p": `datasets: [{name: imagenet, nodes: {selector: {matchLabels: {data: imagenet}}}}]`}, annotations: set{"berth.dev/datasets": "imagenet"},
		},
		"a dataset that nobody knows":            {annotations: set{"berth.dev/datasets": "imagenet"}},
		"a list of datasets that cannot be read": {annotations: set{"berth.dev/datasets": "A"}, refusal: `pod annotation berth.dev/datasets: "A" is not a list of at most 16 datasets, each once, such as imagenet,laion`},
		"a license that nobody knows": {annotations: set{"berth.dev/licenses": "matlab"},
			refusal: "pod annotation berth.dev/licenses: no placement policy has a license matlab"},
		"a list of licenses that cannot be read": {annotations: set{"berth.dev/licenses": "m=0"}, refusal: `pod annotation berth.dev/licenses: "m=0" is not a list of at most 16 licenses, each once, such as matlab=2,ansys`},
		"more licenses than any policy has": {
			specs: set{"p": `licenses: [{name: m, count: 2, nodes: {selector: {matchLabels: {zone: eu-1}}}}]`}, annotations: set{"berth.dev/licenses": "m=3"},
			want: set{"eu-a": "node(s) without a free license m: 0 of 2 in use, the pod uses 3 (rule m of placement policy p)",
				"eu-b": "node(s) outside the pools of license m (rule m of placement policy p)",
				"us-b": "node(s) outside the pools of license m (rule m of placement policy p)",
				"bare": "node(s) outside the pools of license m (rule m of placement policy p)"},
		},
		"a license of a pool": {
			specs: set{"p": `licenses: [{name: m, count: 2, nodes: {selector: {matchLabels: {pool: b}}}}]`}, annotations: set{"berth.dev/licenses": "m"},
			want: set{"eu-a": "node(s) outside the pools of license m (rule m of placement policy p)",
				"bare": "node(s) outside the pools of license m (rule m of placement policy p)"},
		},
		"an expression that fails for a pod": {
			specs:   set{"p": `compliance: {rules: [{name: r, pods: {expression: "pod.labels.tenant == 'acme'"}, nodes: {expression: "true"}}]}`},
			refusal: "rule r of placement policy p cannot be evaluated: no such key: tenant",
		},
		"an expression that fails for nodes": {
			specs: set{"p": `compliance: {rules: [{name: r, nodes: {expression: "node.labels.zone == 'eu-1'"}}]}`},
			want: set{"eu-b": "node(s) that rule r" + notAllowed, "us-b": "node(s) that rule r" + notAllowed,
				"bare": "node(s) for which rule r of placement policy p cannot be evaluated"},
		},
		"an expression that fails for nodes that are kept": {
			specs: set{"p": `compliance: {rules: [{name: r, pods: {selector: {matchLabels: {x: "1"}}}, nodes: {expression: "node.labels.zone == 'eu-1'"}, exclusive: true}]}`},
			want: set{"eu-a": "node(s) that rule r of placement policy p keeps for other pods",
				"bare": "node(s) for which rule r of placement policy p cannot be evaluated"},
		},
		"an expression that fails for nodes of a license": {
			specs: set{"p": `licenses: [{name: m, count: 1, nodes: {expression: "node.labels.zone == 'eu-1'"}}]`}, annotations: set{"berth.dev/licenses": "m"},
			want: set{"eu-b": "node(s) outside the pools of license m (rule m of placement policy p)",
				"us-b": "node(s) outside the pools of license m (rule m of placement policy p)",
				"bare": "node(s) for which rule m of placement policy p cannot be evaluated"},
		},
		"an expression that costs too much": {
			specs:   set{"p": `compliance: {rules: [{name: r, pods: {expression: "[1,2,3,4,5,6,7,8,9].all(a, [1,2,3,4,5,6,7,8,9].all(b, [1,2,3,4,5,6,7,8,9].all(c, [1,2,3,4,5,6,7,8,9].all(d, a+b+c+d > 0))))"}, nodes: {expression: "true"}}]}`},
			refusal: "rule r of placement policy p cannot be evaluated: operation cancelled: actual cost limit exceeded",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setOf(t, test.specs)
			pod := podWith(test.labels, test.annotations)
			if test.daemon {
				pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "d",
					Controller: new(true)}}
				pod.Spec.Affinity = onlyOn("n")
			}
			d := s.DemandOf(pod, namespaceWith(test.namespace))
			if d.Refusal != test.refusal {
				t.Fatalf("refusal %q, want %q", d.Refusal, test.refusal)
			}
			if test.refusal != "" {
				return
			}
			free := NewLedger(s).FreeFor("p")
			got := map[string]string{}
			for _, n := range nodes {
				if reason, _ := d.Refuses(s.MarksOf(n), free); reason != "" {
					got[n.Name] = reason
				}
			}
			want := test.want
			if want == nil {
				want = map[string]string{}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("nodes that refuse the pod (-want +got):\n%s", diff)
			}
			if filters := d.Filters(); !filters && len(got) > 0 {
				t.Error("it has nothing to filter and refuses nodes")
			}
		})
	}
}

func TestHowFarTheDataIs(t *testing.T) {
	t.Parallel()
	s := setOf(t, set{
		"a": `datasets: [{name: local, dataset: imagenet, nodes: {selector: {matchLabels: {data: imagenet}}}}, {name: near, dataset: imagenet, weight: 40, nodes: {selector: {matchExpressions: [{key: zone, operator: In, values: [eu-1, eu-2]}]}}}]`,
		"b": `datasets: [{name: laion, weight: 50, pods: {selector: {matchLabels: {app: train}}}, nodes: {selector: {matchLabels: {zone: us-1}}}}]`,
	})
	tests := map[string]struct {
		labels, annotations set
		want                map[string]int64
	}{
		"no dataset": {want: map[string]int64{"eu-a": 0, "eu-b": 0, "us-b": 0, "bare": 0}},
		"a dataset on nodes and near them": {annotations: set{"berth.dev/datasets": "imagenet"},
			want: map[string]int64{"eu-a": 0, "eu-b": 60, "us-b": 100, "bare": 100}},
		"a dataset that the labels tell": {labels: set{"app": "train"},
			want: map[string]int64{"eu-a": 100, "eu-b": 100, "us-b": 0, "bare": 100}},
		"two datasets that are never on one node": {labels: set{"app": "train"},
			annotations: set{"berth.dev/datasets": "imagenet"}, want: map[string]int64{"eu-a": 34, "eu-b": 74, "us-b": 67,
				"bare": 100}},
		"a dataset that is named and told, counted": {labels: set{"app": "train"},
			annotations: set{"berth.dev/datasets": "laion"}, want: map[string]int64{"eu-a": 100, "eu-b": 100, "us-b": 0,
				"bare": 100}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := s.DemandOf(podWith(test.labels, test.annotations), namespaceWith(nil))
			got := map[string]int64{}
			for _, n := range nodes {
				got[n.Name] = d.Distance(s.MarksOf(n))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("distances (-want +got):\n%s", diff)
			}
			if d.Scores() != (len(test.labels)+len(test.annotations) > 0) {
				t.Errorf("it scores: %t", d.Scores())
			}
		})
	}
}

func TestWhatIsWrongWithAPolicyIsSaid(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		spec string
		want string
	}{
		"an expression that is not CEL":             {spec: `compliance: {rules: [{name: r, pods: {expression: "pod.labels ="}, nodes: {expression: "true"}}]}`, want: "spec.compliance.rules[0].pods.expression"},
		"a misspelt field of a pod":                 {spec: `compliance: {rules: [{name: r, pods: {expression: "pod.lables.size() > 0"}, nodes: {expression: "true"}}]}`, want: "undefined field 'lables'"},
		"an expression on nodes that reads the pod": {spec: `compliance: {rules: [{name: r, nodes: {expression: "pod.namespace == node.name"}}]}`, want: "no such attribute(s): pod"},
		"an expression that is no condition":        {spec: `compliance: {rules: [{name: r, nodes: {expression: "node.name"}}]}`, want: "the expression yields string, want bool"},
		"an operator that does not exist":           {spec: `licenses: [{name: m, count: 1, pods: {selector: {matchExpressions: [{key: a, operator: Is}]}}}]`, want: "spec.licenses[0].pods.selector"},
		"a label that is taken for granted":         {spec: `compliance: {rules: [{name: r, pods: {expression: "pod.labels.tenant == 'a'"}, nodes: {expression: "true"}}]}`, want: "fails for a pod without labels: no such key: tenant"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, problems := NewSet(policies(t, set{"p": test.spec}))
			errs := problems["p"]
			if len(errs) != 1 || !strings.Contains(errs[0].Error(), test.want) {
				t.Errorf("problems are %v, want one with %q", errs, test.want)
			}
			if strings.Contains(fmt.Sprint(errs), "\n") {
				t.Errorf("problems have more than a line: %v", errs)
			}
		})
	}
}

// A rule that cannot be read refuses the pods that its other parts select.
func TestABrokenRuleConcernsThePodsThatItsOtherPartsSelect(t *testing.T) {
	t.Parallel()
	s, problems := NewSet(policies(t, set{"p": `compliance: {rules: [{name: r, pods: {selector: {matchLabels: {tenant: acme}}, expression: "pod.nothing"}, nodes: {expression: "true"}}]}`}))
	if len(problems["p"]) != 1 {
		t.Fatalf("problems are %v", problems)
	}
	for tenant, refused := range map[string]bool{"acme": true, "other": false} {
		d := s.DemandOf(podWith(set{"tenant": tenant}, nil), namespaceWith(nil))
		if strings.Contains(d.Refusal, "rule r of placement policy p cannot be evaluated") != refused {
			t.Errorf("tenant %s: refusal %q, want one that names the rule: %t", tenant, d.Refusal, refused)
		}
	}
}

func TestPodsThatRulesTreatAlikeHaveOneKey(t *testing.T) {
	t.Parallel()
	specs := set{"p": `{licenses: [{name: m, count: 9}], datasets: [{name: d, nodes: {expression: "true"}}], compliance: {rules: [{name: eu, pods: {selector: {matchLabels: {tenant: acme}}}, nodes: {expression: "true"}}]}}`}
	s := setOf(t, specs)
	key := func(s *Set, labels, annotations set) string {
		return s.DemandOf(podWith(labels, annotations), namespaceWith(nil)).Key()
	}
	if key(s, set{"index": "1"}, nil) != key(s, set{"index": "2"}, nil) {
		t.Error("a label that no rule reads tells pods apart")
	}
	keys := map[string]string{}
	for name, k := range map[string]string{
		"nothing": key(s, nil, nil), "tenant": key(s, set{"tenant": "acme"}, nil),
		"license":      key(s, nil, set{"berth.dev/licenses": "m"}),
		"two licenses": key(s, nil, set{"berth.dev/licenses": "m=2"}), "dataset": key(s, nil, set{"berth.dev/datasets": "d"}),
		"refusal": key(s, nil, set{"berth.dev/licenses": "x"}),
	} {
		if other, ok := keys[k]; ok {
			t.Errorf("%s and %s have one key %q", name, other, k)
		}
		keys[k] = name
	}
	edited := policies(t, specs)
	edited[0].Generation = 2
	after, _ := NewSet(edited)
	if key(s, set{"tenant": "acme"}, nil) == key(after, set{"tenant": "acme"}, nil) {
		t.Error("an edit of the policy does not change the key of a pod that it concerns")
	}
	if key(s, nil, nil) != key(after, nil, nil) {
		t.Error("an edit of the policy changes the key of a pod that it does not concern")
	}
}

// onlyOn is the affinity that the DaemonSet controller gives the pod of a node.
func onlyOn(node string) *v1.Affinity {
	return &v1.Affinity{NodeAffinity: &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{
		NodeSelectorTerms: []v1.NodeSelectorTerm{{
			MatchFields: []v1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: v1.NodeSelectorOpIn,
				Values: []string{node}}}}}}}}
}
