package plugins_test

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"berth.dev/berth/test/harness/box"
)

// policies is a test's part of a control plane with the shipped configuration.
type policies struct{ *box.Box }

func (p *policies) resource() dynamic.ResourceInterface {
	return p.Dynamic.Resource(schema.GroupVersionResource{Group: "berth.dev", Version: "v1alpha1",
		Resource: "placementpolicies"})
}

// apply creates a policy.
func (p *policies) apply(t *testing.T, name, spec string) error {
	t.Helper()
	var fields map[string]any
	if err := yaml.Unmarshal([]byte(spec), &fields); err != nil {
		t.Fatal(err)
	}
	policy := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "berth.dev/v1alpha1",
		"kind": "PlacementPolicy", "spec": fields}}
	policy.SetName(name)
	_, err := p.resource().Create(t.Context(), policy, metav1.CreateOptions{})
	return err
}

// testPolicies is about what the API in memory does not have: the rules of the CRD, and a CRD that goes and comes back.
func testPolicies(t *testing.T, b *box.Box) {
	p := &policies{b.Part(t, "policies", "shapes: [{name: policies, count: 1, allocatable: {cpu: \"16\", memory: 64Gi}}]")}
	t.Run("the API server refuses what makes no sense", p.refuses)
	t.Run("a CRD goes and comes back", p.crd)
}

// customResources are the definitions of custom resources.
var customResources = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1",
	Resource: "customresourcedefinitions"}

func (p *policies) refuses(t *testing.T) {
	for name, spec := range map[string]string{
		"licenses, datasets or compliance": `{}`,
		"perPod needs pods":                `{licenses: [{name: m, count: 1, perPod: 2}]}`,
		"weight needs mode Preferred":      `{datasets: [{name: d, mode: Required, weight: 2, nodes: {expression: "true"}}]}`,
		"needs selector or expression":     `{datasets: [{name: d, nodes: {}}]}`,
		"needs namespaceSelector":          `{licenses: [{name: m, count: 1, pods: {}}]}`,
		"needs rules or defaultAction":     `{compliance: {pods: {expression: "true"}}}`,
		"greater than or equal to 0":       `{licenses: [{name: m, count: -1}]}`,
		"Duplicate value":                  `{licenses: [{name: m, count: 1}, {name: m, count: 2}]}`,
		"Unsupported value":                `{compliance: {defaultAction: Maybe}}`,
	} {
		if err := p.apply(t, "bad", spec); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v, want one that says %q", spec, err, name)
		}
	}
}

func (p *policies) crd(t *testing.T) {
	crds := p.Dynamic.Resource(customResources)
	const name = "placementpolicies.berth.dev"
	crd, err := crds.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := crds.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	p.AwaitGone(t, crds, name)
	// A scheduler that starts without the CRD works all the same.
	p.KillScheduler(t)
	p.Create(t, pod("plain", "berth-scheduler"))
	p.Bound(t, "plain", "")
	p.Create(t, pod("user", "berth-scheduler", annotated(strs{"berth.dev/licenses": "ansys"})))
	p.Pending(t, "user", "no placement policy has a license ansys")
	fresh := &unstructured.Unstructured{Object: map[string]any{"apiVersion": crd.GetAPIVersion(), "kind": crd.GetKind(),
		"spec": crd.Object["spec"]}}
	fresh.SetName(name)
	fresh.SetAnnotations(crd.GetAnnotations())
	if _, err := crds.Create(t.Context(), fresh, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	p.Await(t, "a policy under the new CRD", func(context.Context) (bool, error) {
		return p.apply(t, "ansys", `{licenses: [{name: ansys, count: 1}]}`) == nil, nil
	})
	p.Bound(t, "user", "")
}
