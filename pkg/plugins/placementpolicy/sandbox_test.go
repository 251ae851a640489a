package placementpolicy

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"berth.dev/berth/pkg/sandbox"
	"berth.dev/berth/test/harness/box"
)

// regions is a node in Europe and one in America.
const regions = `shapes:
- {name: eu, count: 1, labels: {region: eu, pool: a}, allocatable: {cpu: "16", memory: 64Gi}}
- {name: us, count: 1, labels: {region: us, pool: b}, allocatable: {cpu: "16", memory: 64Gi}}
`

// world is a real control plane with the shipped configuration.
type world struct {
	*box.Box
	dynamic dynamic.Interface
}

func (w *world) policies() dynamic.ResourceInterface { return w.dynamic.Resource(policyKind.Resource) }

// apply creates a policy or changes its spec.
func (w *world) apply(t *testing.T, name, spec string) error {
	t.Helper()
	var fields map[string]any
	if err := yaml.Unmarshal([]byte(spec), &fields); err != nil {
		t.Fatal(err)
	}
	known, err := w.policies().Get(t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "berth.dev/v1alpha1", "kind": "PlacementPolicy", "spec": fields}}
		object.SetName(name)
		_, err = w.policies().Create(t.Context(), object, metav1.CreateOptions{})
		return err
	}
	if err != nil {
		t.Fatal(err)
	}
	known.Object["spec"] = fields
	_, err = w.policies().Update(t.Context(), known, metav1.UpdateOptions{})
	return err
}

// mustApply returns when the scheduler has read the policy: pods that come later are judged by it.
func (w *world) mustApply(t *testing.T, name, spec string) {
	t.Helper()
	if err := w.apply(t, name, spec); err != nil {
		t.Fatal(err)
	}
	w.Await(t, "the scheduler to read "+name, func(ctx context.Context) (bool, error) {
		p, err := w.policies().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		seen, _, _ := unstructured.NestedInt64(p.Object, "status", "observedGeneration")
		return seen == p.GetGeneration(), nil
	})
}

// run creates a pod of the tests without a server, as a tenant writes it.
func (w *world) run(t *testing.T, p *v1.Pod) {
	t.Helper()
	p.UID = ""
	p.Spec.Containers = []v1.Container{{Name: "main", Image: "image"}}
	w.Create(t, p)
}

// status waits until the policy's status says so.
func (w *world) status(t *testing.T, name, what string, holds func(status map[string]any) bool) {
	t.Helper()
	w.Await(t, "the status of "+name+" to say "+what, func(ctx context.Context) (bool, error) {
		p, err := w.policies().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		status, _ := p.Object["status"].(map[string]any)
		return holds(status), nil
	})
}

// TestPoliciesOnARealControlPlane tells of licenses, regions and mistakes, over a kill of the scheduler and a CRD that goes
// and comes back.
//
//nolint:tparallel // the parts of the story follow each other on one control plane
func TestPoliciesOnARealControlPlane(t *testing.T) {
	t.Parallel()
	box := box.Start(t, regions, sandbox.Options{NoKubelet: true})
	client, err := dynamic.NewForConfig(box.Config)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{box, client}

	t.Run("the API server refuses what makes no sense", w.refuses)
	t.Run("licenses are given, returned and kept over a restart", w.licenses)
	t.Run("a pod of higher priority takes the license of another", w.preempts)
	t.Run("a gang starts when there are licenses for all of it", w.gang)
	t.Run("tenants keep to their region, and a broken policy says so", w.tenants)
	t.Run("a CRD goes and comes back", w.crd)
}

func (w *world) refuses(t *testing.T) {
	for name, spec := range map[string]string{
		"licenses, datasets or compliance": `{}`,
		"perPod needs pods":                `{licenses: [{name: m, count: 1, perPod: 2}]}`,
		"weight needs mode Preferred":      `{datasets: [{name: d, mode: Required, weight: 2, nodes: {expression: "true"}}]}`,
		"needs selector or expression":     `{datasets: [{name: d, nodes: {}}]}`,
		"needs namespaceSelector":          `{licenses: [{name: m, count: 1, pods: {}}]}`,
		"needs rules or defaultAction":     `{compliance: {pods: {expression: "true"}}}`,
		"greater than or equal to 0":       `{licenses: [{name: m, count: -1}]}`,
		"Duplicate value":                  `{licenses: [{name: m, count: 1}, {name: m, count: 2}]}`,
		"Unsupported value":                `{failurePolicy: Maybe, compliance: {defaultAction: Deny}}`,
	} {
		if err := w.apply(t, "bad", spec); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v, want one that says %q", spec, err, name)
		}
	}
}

func (w *world) licenses(t *testing.T) {
	user := func(name string) *v1.Pod { return pod(name, "berth.dev/licenses", "matlab").Obj() }
	used := func(n int64) func(map[string]any) bool {
		return func(status map[string]any) bool {
			licenses, _, _ := unstructured.NestedSlice(status, "licenses")
			return len(licenses) == 1 && licenses[0].(map[string]any)["used"] == n
		}
	}
	w.run(t, user("early"))
	w.Pending(t, "early", "no placement policy has a license matlab")
	w.mustApply(t, "tools", `{licenses: [{name: matlab, count: 1, nodes: {selector: {matchLabels: {pool: a}}}}]}`)
	w.Bound(t, "early", "eu-0")
	w.run(t, user("second"))
	w.Pending(t, "second", "node(s) without a free license matlab: 1 of 1 in use, the pod uses 1 (rule matlab of placement policy tools)")
	w.Pending(t, "second", "node(s) outside the pools of license matlab (rule matlab of placement policy tools)")
	w.status(t, "tools", "that one is in use", used(1))
	w.KillScheduler(t)
	w.run(t, user("third"))
	w.Pending(t, "third", "1 of 1 in use")
	w.Remove(t, "third")
	w.Remove(t, "early")
	w.Bound(t, "second", "eu-0")
	w.Remove(t, "second")
	w.status(t, "tools", "that none is in use", used(0))
}

func (w *world) preempts(t *testing.T) {
	urgent := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "urgent"}, Value: 1000}
	if err := box.CreatePriorityClass(t.Context(), w.Client, urgent); err != nil {
		t.Fatal(err)
	}
	w.run(t, pod("patient", "berth.dev/licenses", "matlab").TerminationGracePeriodSeconds(0).Obj())
	w.Bound(t, "patient", "eu-0")
	p := pod("hasty", "berth.dev/licenses", "matlab").Obj()
	p.Spec.PriorityClassName, p.Spec.Priority = "urgent", nil
	w.run(t, p)
	w.Bound(t, "hasty", "eu-0")
	if _, err := w.Client.CoreV1().Pods("default").Get(t.Context(), "patient", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the pod that had the license: %v", err)
	}
	w.Remove(t, "hasty")
}

func (w *world) gang(t *testing.T) {
	w.mustApply(t, "tools", `{licenses: [{name: matlab, count: 2}]}`)
	group := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup",
		"metadata": map[string]any{"name": "g", "namespace": "default"}, "spec": map[string]any{"minMember": int64(3)}}}
	groups := w.dynamic.Resource(schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "podgroups"}).Namespace("default")
	if _, err := groups.Create(t.Context(), group, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		w.run(t, pod(fmt.Sprint("g-", i), "berth.dev/licenses", "matlab").Label("scheduling.x-k8s.io/pod-group", "g").Obj())
	}
	w.Pending(t, "g-0", "without a free license matlab")
	for i := range 3 {
		if node := w.Pod(t, fmt.Sprint("g-", i)).Spec.NodeName; node != "" {
			t.Errorf("member %d of a gang that cannot start is on %s", i, node)
		}
	}
	w.mustApply(t, "tools", `{licenses: [{name: matlab, count: 3}]}`)
	for i := range 3 {
		w.Bound(t, fmt.Sprint("g-", i), "")
		w.Remove(t, fmt.Sprint("g-", i))
	}
	// One that waits for a single pod's license starts when that pod is gone.
	w.run(t, pod("single", "berth.dev/licenses", "matlab").Obj())
	w.Bound(t, "single", "")
	for i := 3; i < 6; i++ {
		w.run(t, pod(fmt.Sprint("g-", i), "berth.dev/licenses", "matlab").Label("scheduling.x-k8s.io/pod-group", "g").Obj())
	}
	w.Pending(t, "g-3", "without a free license matlab")
	w.Remove(t, "single")
	since := time.Now()
	for i := 3; i < 6; i++ {
		w.Bound(t, fmt.Sprint("g-", i), "")
	}
	t.Logf("the gang started %s after the pod was deleted", time.Since(since).Round(time.Millisecond))
}

func (w *world) tenants(t *testing.T) {
	const good = `{compliance: {rules: [{name: europe, pods: {selector: {matchLabels: {tenant: acme}}}, nodes: {expression: "node.labels[?'region'].orValue('') == 'eu'"}}]}}`
	accepted := func(want, says string) func(map[string]any) bool {
		return func(status map[string]any) bool {
			conditions, _, _ := unstructured.NestedSlice(status, "conditions")
			return len(conditions) == 1 && conditions[0].(map[string]any)["status"] == want && strings.Contains(fmt.Sprint(conditions[0].(map[string]any)["message"]), says)
		}
	}
	w.mustApply(t, "tenants", strings.Replace(good, "node.labels[", "node.lables[", 1))
	w.run(t, pod("acme").Label("tenant", "acme").Obj())
	w.Pending(t, "acme", "node(s) for which rule europe of placement policy tenants cannot be evaluated")
	w.status(t, "tenants", "what is wrong", accepted("False", "undefined field 'lables'"))
	w.Told(t, "tenants", "lables")
	w.run(t, pod("other").Obj())
	w.Bound(t, "other", "")
	w.mustApply(t, "tenants", good)
	w.Bound(t, "acme", "eu-0")
	w.status(t, "tenants", "that all is well", accepted("True", "all rules can be evaluated"))
	w.mustApply(t, "tenants", strings.Replace(good, "'eu'", "'asia'", 1))
	w.run(t, pod("late").Label("tenant", "acme").Obj())
	w.Pending(t, "late", "node(s) that rule europe of placement policy tenants does not allow")
	if err := w.policies().Delete(t.Context(), "tenants", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.Bound(t, "late", "")
}

func (w *world) crd(t *testing.T) {
	crds := w.dynamic.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	const name = "placementpolicies.berth.dev"
	crd, err := crds.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := crds.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.Await(t, "the CRD to go", func(ctx context.Context) (bool, error) {
		_, err := crds.Get(ctx, name, metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	})
	// A scheduler that starts without the CRD works all the same.
	w.KillScheduler(t)
	w.run(t, pod("plain").Obj())
	w.Bound(t, "plain", "")
	w.run(t, pod("user", "berth.dev/licenses", "ansys").Obj())
	w.Pending(t, "user", "no placement policy has a license ansys")
	fresh := &unstructured.Unstructured{Object: map[string]any{"apiVersion": crd.GetAPIVersion(), "kind": crd.GetKind(), "spec": crd.Object["spec"]}}
	fresh.SetName(name)
	fresh.SetAnnotations(crd.GetAnnotations())
	if _, err := crds.Create(t.Context(), fresh, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.Await(t, "a policy under the new CRD", func(ctx context.Context) (bool, error) {
		object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "berth.dev/v1alpha1", "kind": "PlacementPolicy",
			"spec": map[string]any{"licenses": []any{map[string]any{"name": "ansys", "count": int64(1)}}}}}
		object.SetName("ansys")
		_, err := w.policies().Create(ctx, object, metav1.CreateOptions{})
		return err == nil, nil
	})
	w.Bound(t, "user", "")
}
