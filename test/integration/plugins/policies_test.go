package plugins_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"berth.dev/berth/test/harness/box"
)

// regions is a node in Europe and one in America.
const regions = `shapes:
- {name: eu, count: 1, labels: {region: eu, pool: a}, allocatable: {cpu: "16", memory: 64Gi}}
- {name: us, count: 1, labels: {region: us, pool: b}, allocatable: {cpu: "16", memory: 64Gi}}
`

// policies is a test's part of a control plane with the shipped configuration.
type policies struct{ *box.Box }

func (p *policies) resource() dynamic.ResourceInterface {
	return p.Dynamic.Resource(schema.GroupVersionResource{Group: "berth.dev", Version: "v1alpha1",
		Resource: "placementpolicies"})
}

// apply creates a policy or changes its spec.
func (p *policies) apply(t *testing.T, name, spec string) error {
	t.Helper()
	var fields map[string]any
	if err := yaml.Unmarshal([]byte(spec), &fields); err != nil {
		t.Fatal(err)
	}
	known, err := p.resource().Get(t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "berth.dev/v1alpha1",
			"kind": "PlacementPolicy", "spec": fields}}
		object.SetName(name)
		_, err = p.resource().Create(t.Context(), object, metav1.CreateOptions{})
		return err
	}
	if err != nil {
		t.Fatal(err)
	}
	known.Object["spec"] = fields
	_, err = p.resource().Update(t.Context(), known, metav1.UpdateOptions{})
	return err
}

// mustApply returns when the scheduler has read the policy: pods that come later are judged by it.
func (p *policies) mustApply(t *testing.T, name, spec string) {
	t.Helper()
	if err := p.apply(t, name, spec); err != nil {
		t.Fatal(err)
	}
	p.AwaitObject(t, p.resource(), name, "to be read by the scheduler", func(policy *unstructured.Unstructured) (bool,
		error) {
		seen, _, err := unstructured.NestedInt64(policy.Object, "status", "observedGeneration")
		return seen == policy.GetGeneration(), err
	})
}

// using is a pod that uses a license.
func using(license, name string, changes ...func(*v1.Pod)) *v1.Pod {
	return pod(name, "berth-scheduler", append(changes, annotated(strs{"berth.dev/licenses": license}))...)
}

// status waits until the policy's status says so.
func (p *policies) status(t *testing.T, name, what string, holds func(status map[string]any) bool) {
	t.Helper()
	p.AwaitObject(t, p.resource(), name, "to say "+what, func(policy *unstructured.Unstructured) (bool, error) {
		status, _, err := unstructured.NestedMap(policy.Object, "status")
		return holds(status), err
	})
}

// testPolicies tells of licenses, regions and mistakes, over a kill of the scheduler and a CRD that goes and comes
// back.
func testPolicies(t *testing.T, b *box.Box) {
	p := &policies{b.Part(t, "policies", regions)}
	t.Run("the API server refuses what makes no sense", p.refuses)
	t.Run("licenses are given, returned and kept over a restart", p.licenses)
	t.Run("a pod of higher priority takes the license of another", p.preempts)
	t.Run("a gang starts when there are licenses for all of it", p.gang)
	t.Run("tenants keep to their region, and a broken policy says so", p.tenants)
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

func (p *policies) licenses(t *testing.T) {
	used := func(n int64) func(map[string]any) bool {
		return func(status map[string]any) bool {
			licenses, _, _ := unstructured.NestedSlice(status, "licenses")
			return len(licenses) == 1 && licenses[0].(map[string]any)["used"] == n
		}
	}
	p.Create(t, using("matlab", "early"))
	p.Pending(t, "early", "no placement policy has a license matlab")
	p.mustApply(t, "tools", `{licenses: [{name: matlab, count: 1, nodes: {selector: {matchLabels: {pool: a}}}}]}`)
	p.Bound(t, "early", "eu-0")
	p.Create(t, using("matlab", "second"))
	p.Pending(t, "second",
		"node(s) without a free license matlab: 1 of 1 in use, the pod uses 1 (rule matlab of placement policy tools)")
	p.Pending(t, "second", "node(s) outside the pools of license matlab (rule matlab of placement policy tools)")
	p.status(t, "tools", "that one is in use", used(1))
	p.KillScheduler(t)
	p.Create(t, using("matlab", "third"))
	p.Pending(t, "third", "1 of 1 in use")
	p.Remove(t, "third")
	p.Remove(t, "early")
	p.Bound(t, "second", "eu-0")
	p.Remove(t, "second")
	p.status(t, "tools", "that none is in use", used(0))
}

func (p *policies) preempts(t *testing.T) {
	urgent := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "urgent"}, Value: 1000}
	if err := box.CreatePriorityClass(t.Context(), p.Client, urgent); err != nil {
		t.Fatal(err)
	}
	p.Create(t, using("matlab", "patient"))
	p.Bound(t, "patient", "eu-0")
	p.Create(t, using("matlab", "hasty", func(pod *v1.Pod) { pod.Spec.PriorityClassName = "urgent" }))
	p.Bound(t, "hasty", "eu-0")
	if _, err := p.Client.CoreV1().Pods(p.Namespace).Get(t.Context(), "patient",
		metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the pod that had the license: %v", err)
	}
	p.Remove(t, "hasty")
}

func (p *policies) gang(t *testing.T) {
	p.mustApply(t, "tools", `{licenses: [{name: matlab, count: 2}]}`)
	if _, err := p.Dynamic.Resource(podGroups).Namespace(p.Namespace).Create(t.Context(), podGroup("g", 3),
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	member := labeled(strs{"scheduling.x-k8s.io/pod-group": "g"})
	for _, name := range numbered("g", 3) {
		p.Create(t, using("matlab", name, member))
	}
	p.Pending(t, "g-0", "without a free license matlab")
	for i := range 3 {
		if node := p.Pod(t, fmt.Sprint("g-", i)).Spec.NodeName; node != "" {
			t.Errorf("member %d of a gang that cannot start is on %s", i, node)
		}
	}
	p.mustApply(t, "tools", `{licenses: [{name: matlab, count: 3}]}`)
	for i := range 3 {
		p.Bound(t, fmt.Sprint("g-", i), "")
		p.Remove(t, fmt.Sprint("g-", i))
	}
	// One that waits for a single pod's license starts when that pod is gone.
	p.Create(t, using("matlab", "single"))
	p.Bound(t, "single", "")
	for i := 3; i < 6; i++ {
		p.Create(t, using("matlab", fmt.Sprint("g-", i), member))
	}
	p.Pending(t, "g-3", "without a free license matlab")
	p.Remove(t, "single")
	for i := 3; i < 6; i++ {
		p.Bound(t, fmt.Sprint("g-", i), "")
	}
}

func (p *policies) tenants(t *testing.T) {
	defer p.Steady()()
	const good = `{compliance: {rules: [{name: europe, pods: {selector: {matchLabels: {tenant: acme}}}, nodes: {expression: "node.labels[?'region'].orValue('') == 'eu'"}}]}}`
	accepted := func(want, says string) func(map[string]any) bool {
		return func(status map[string]any) bool {
			conditions, _, _ := unstructured.NestedSlice(status, "conditions")
			return len(conditions) == 1 && conditions[0].(map[string]any)["status"] == want &&
				strings.Contains(fmt.Sprint(conditions[0].(map[string]any)["message"]), says)
		}
	}
	acme := labeled(strs{"tenant": "acme"})
	p.mustApply(t, "tenants", strings.Replace(good, "node.labels[", "node.lables[", 1))
	p.Create(t, pod("acme", "berth-scheduler", acme))
	p.Pending(t, "acme", "node(s) for which rule europe of placement policy tenants cannot be evaluated")
	p.status(t, "tenants", "what is wrong", accepted("False", "undefined field 'lables'"))
	p.Told(t, "tenants", "lables")
	p.Create(t, pod("other", "berth-scheduler"))
	p.Bound(t, "other", "")
	p.mustApply(t, "tenants", good)
	p.Bound(t, "acme", "eu-0")
	p.status(t, "tenants", "that all is well", accepted("True", "all rules can be evaluated"))
	p.mustApply(t, "tenants", strings.Replace(good, "'eu'", "'asia'", 1))
	p.Create(t, pod("late", "berth-scheduler", acme))
	p.Pending(t, "late", "node(s) that rule europe of placement policy tenants does not allow")
	if err := p.resource().Delete(t.Context(), "tenants", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	p.Bound(t, "late", "")
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
	p.Create(t, using("ansys", "user"))
	p.Pending(t, "user", "no placement policy has a license ansys")
	fresh := &unstructured.Unstructured{Object: map[string]any{"apiVersion": crd.GetAPIVersion(), "kind": crd.GetKind(),
		"spec": crd.Object["spec"]}}
	fresh.SetName(name)
	fresh.SetAnnotations(crd.GetAnnotations())
	if _, err := crds.Create(t.Context(), fresh, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	p.Await(t, "a policy under the new CRD", func(ctx context.Context) (bool, error) {
		object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "berth.dev/v1alpha1",
			"kind": "PlacementPolicy",
			"spec": map[string]any{"licenses": []any{map[string]any{"name": "ansys", "count": int64(1)}}}}}
		object.SetName("ansys")
		_, err := p.resource().Create(ctx, object, metav1.CreateOptions{})
		return err == nil, nil
	})
	p.Bound(t, "user", "")
}
