package policy

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	berthv1alpha1 "berth.dev/berth/pkg/apis/berth/v1alpha1"
)

// FuzzNewSet reads a policy as it stands in a file, and asks it of pods on nodes.
func FuzzNewSet(f *testing.F) {
	for _, seed := range []string{
		`compliance: {rules: [{name: eu, pods: {selector: {matchLabels: {a: b}}}, nodes: {expression: "node.labels[?'zone'].orValue('').startsWith('eu-')"}}]}`,
		`compliance: {defaultAction: Deny, rules: [{name: r, nodes: {selector: {matchLabels: {pool: a}}}, exclusive: true}]}`,
		`licenses: [{name: m, count: 3, nodes: {selector: {matchExpressions: [{key: pool, operator: Exists}]}}}]`,
		`datasets: [{name: d, dataset: imagenet, weight: 40, mode: Required, nodes: {selector: {matchLabels: {data: imagenet}}}}]`,
		`compliance: {rules: [{name: r, pods: {expression: "pod.labels.a == 'b'"}, nodes: {expression: "1/0 == 1"}}]}`,
		`licenses: [{name: m, count: 9223372036854775807}, {name: m, count: -1}]`,
	} {
		f.Add(seed, "m=2", "imagenet")
	}
	f.Fuzz(func(t *testing.T, spec, licenses, datasets string) {
		p := &berthv1alpha1.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p", Generation: 1}}
		if yaml.Unmarshal([]byte(spec), &p.Spec) != nil {
			return
		}
		s, problems := NewSet([]*berthv1alpha1.PlacementPolicy{p})
		for _, problem := range problems["p"] {
			if text := problem.Error(); !strings.HasPrefix(text, "spec") || strings.ContainsAny(text, "\n\r") {
				t.Fatalf("a problem is no line that names the field: %q", text)
			}
		}
		pod := podWith(set{"a": "b"}, set{"berth.dev/licenses": licenses, "berth.dev/datasets": datasets})
		d := s.DemandOf(pod, namespaceWith(nil))
		free := NewLedger(s).FreeFor("p")
		for _, n := range nodes {
			reason, _ := d.Refuses(s.MarksOf(n), free)
			if strings.ContainsAny(reason, "\n\r") {
				t.Fatalf("the reason is more than a line: %q", reason)
			}
			if reason != "" && !d.Filters() {
				t.Fatalf("it has nothing to filter and refuses: %q", reason)
			}
			if far := d.Distance(s.MarksOf(n)); far < 0 || far > 100 {
				t.Fatalf("the data is %d away", far)
			}
		}
	})
}
