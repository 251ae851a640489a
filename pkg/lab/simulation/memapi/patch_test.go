package memapi

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

func TestAPatchChangesWhatItNamesAndNotTheStoredObject(t *testing.T) {
	t.Parallel()
	stored := func() *v1.Pod {
		p := pod("p")
		p.SetGroupVersionKind(v1.SchemeGroupVersion.WithKind("Pod"))
		p.UID = "u"
		p.Annotations = map[string]string{"keep": "1", "drop": "2"}
		p.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}}
		return p
	}
	patched := func(change func(*v1.Pod)) *v1.Pod {
		p := stored()
		change(p)
		return p
	}
	custom := func(spec map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.dev/v1", "kind": "Widget", "metadata": map[string]any{"name": "w"}, "spec": spec,
		}}
	}
	for _, tc := range []struct {
		name  string
		kind  types.PatchType
		old   runtime.Object
		patch string
		want  runtime.Object // nil where it is refused
	}{
		{"a merge patch adds, replaces and deletes", types.MergePatchType, stored(), `{"metadata":{"annotations":{"new":"3","keep":"4","drop":null}}}`,
			patched(func(p *v1.Pod) { p.Annotations = map[string]string{"new": "3", "keep": "4"} })},
		{"a merge patch replaces lists", types.MergePatchType, stored(), `{"status":{"conditions":[{"type":"PodScheduled","status":"False"}]}}`,
			patched(func(p *v1.Pod) {
				p.Status.Conditions = []v1.PodCondition{{Type: v1.PodScheduled, Status: v1.ConditionFalse}}
			})},
		{"a strategic patch merges lists by their key", types.StrategicMergePatchType, stored(), `{"status":{"conditions":[{"type":"PodScheduled","status":"False"}]}}`,
			patched(func(p *v1.Pod) {
				p.Status.Conditions = []v1.PodCondition{{Type: v1.PodScheduled, Status: v1.ConditionFalse}, p.Status.Conditions[0]}
			})},
		{"a strategic patch deletes what it names and leaves the rest", types.StrategicMergePatchType, stored(), `{"metadata":{"annotations":null}}`,
			patched(func(p *v1.Pod) { p.Annotations = nil })},
		{"a directive concerns all fields", types.StrategicMergePatchType, stored(), `{"$patch":"replace","apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"default","uid":"u"}}`,
			patched(func(p *v1.Pod) {
				p.ObjectMeta = metav1.ObjectMeta{Name: "p", Namespace: "default", UID: "u"}
				p.Spec, p.Status = v1.PodSpec{}, v1.PodStatus{}
			})},
		{"an apply patch is merged", types.ApplyYAMLPatchType, stored(), `{"metadata":{"annotations":{"new":"3"}}}`,
			patched(func(p *v1.Pod) { p.Annotations["new"] = "3" })},
		{"operations are applied one by one", types.JSONPatchType, stored(), `[{"op":"remove","path":"/metadata/annotations/drop"}]`,
			patched(func(p *v1.Pod) { delete(p.Annotations, "drop") })},
		{"a custom resource", types.MergePatchType, custom(map[string]any{"n": int64(1), "deep": map[string]any{"a": "b"}}), `{"spec":{"deep":{"a":null,"c":{"d":null,"e":1}}}}`,
			custom(map[string]any{"n": int64(1), "deep": map[string]any{"c": map[string]any{"e": int64(1)}}})},
		{"another name", types.MergePatchType, stored(), `{"metadata":{"name":"q"}}`, nil},
		{"another name of a custom resource", types.MergePatchType, custom(nil), `{"metadata":{"name":"q"}}`, nil},
		{"a value of another type", types.MergePatchType, stored(), `{"spec":{"containers":"none"}}`, nil},
		{"a list", types.MergePatchType, stored(), `[]`, nil},
		{"no JSON", types.StrategicMergePatchType, stored(), `{`, nil},
		{"an operation on what is not there", types.JSONPatchType, stored(), `[{"op":"remove","path":"/metadata/labels/none"}]`, nil},
		{"a type that is not known", types.PatchType("application/unknown"), stored(), `{}`, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			before := tc.old.DeepCopyObject()
			got, err := applyPatch(tc.old, tc.kind, []byte(tc.patch))
			if (err == nil) != (tc.want != nil) {
				t.Fatalf("error %v, want one: %v", err, tc.want == nil)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("patched (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, tc.old); diff != "" {
				t.Errorf("the stored object changed:\n%s", diff)
			}
		})
	}
}
