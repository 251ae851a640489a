package dump

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gangview"
	"berth.dev/berth/pkg/inputs"
	"berth.dev/berth/pkg/wellknown"
)

// memberOf is a pod of the group train, by what its metadata and its spec say.
func memberOf(metadata, spec string) string {
	return `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"default",` + metadata + `},"spec":{` + spec + `"containers":[]}}`
}

func TestPodsStayInTheirGroupsAndKeepTheirNumbers(t *testing.T) {
	t.Parallel()
	for name, pod := range map[string]string{
		"a PodGroup of Berth":      memberOf(`"labels":{"scheduling.x-k8s.io/pod-group":"train","apps.kubernetes.io/pod-index":"3"}`, ""),
		"a group of Kubernetes":    memberOf(`"labels":{"apps.kubernetes.io/pod-index":"3"}`, `"schedulingGroup":{"podGroupName":"train"},`),
		"Volcano":                  memberOf(`"annotations":{"scheduling.k8s.io/group-name":"train","volcano.sh/task-index":"3"}`, ""),
		"Volcano by the other key": memberOf(`"annotations":{"scheduling.volcano.sh/group-name":"train","volcano.sh/task-index":"3"}`, ""),
		"KAI":                      memberOf(`"annotations":{"pod-group-name":"train","batch.kubernetes.io/job-completion-index":"3"}`, ""),
		"Grove":                    memberOf(`"labels":{"grove.io/podgang":"train","grove.io/podclique-pod-index":"3"}`, ""),
		"Kueue": memberOf(`"labels":{"kueue.x-k8s.io/pod-group-name":"train"},
			"annotations":{"kueue.x-k8s.io/pod-group-total-count":"4","kueue.x-k8s.io/pod-group-pod-index":"3"}`, ""),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			obj := &unstructured.Unstructured{}
			if err := obj.UnmarshalJSON([]byte(pod)); err != nil {
				t.Fatal(err)
			}
			var before v1.Pod
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &before); err != nil {
				t.Fatal(err)
			}
			kept := keptOf(t, pod).(*v1.Pod)
			want, _, err := gangview.Of(&before)
			if err != nil || want.Name == "" {
				t.Fatalf("the pod itself is in gang %q: %v", want, err)
			}
			if got, _, err := gangview.Of(kept); err != nil || got != want {
				t.Errorf("what is kept of it is in gang %q, want %q: %v", got, want, err)
			}
			if got := gangview.Rank(kept); got != "3" {
				t.Errorf("what is kept of it has the number %q, want 3", got)
			}
			hashed, err := NewNameHasher([]byte("key"), usualKeys()).Hash(kept)
			if err != nil {
				t.Fatal(err)
			}
			got, _, err := gangview.Of(hashed.(*v1.Pod))
			if err != nil || got.Name == "" || got == want {
				t.Errorf("with its names hashed it is in gang %q, want one of another name: %v", got, err)
			}
		})
	}
}

func TestAHashedTaskOfVolcanoIsOneOfItsGroup(t *testing.T) {
	t.Parallel()
	h := NewNameHasher([]byte("key"), usualKeys())
	hashed := func(text string) runtime.Object {
		t.Helper()
		out, err := h.Hash(keptOf(t, text))
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	group := hashed(`{"apiVersion":"scheduling.volcano.sh/v1beta1","kind":"PodGroup","metadata":{"name":"train","namespace":"default"},
		"spec":{"minMember":2,"minTaskMember":{"acme":2}}}`).(*unstructured.Unstructured)
	tasks, _, err := unstructured.NestedMap(group.Object, "spec", "minTaskMember")
	if err != nil {
		t.Fatal(err)
	}
	for name, metadata := range map[string]string{"a label": `"labels":{"volcano.sh/task-spec":"acme"}`,
		"an annotation": `"annotations":{"volcano.sh/task-spec":"acme"}`} {
		pod := hashed(memberOf(metadata, "")).(*v1.Pod)
		task := pod.Labels["volcano.sh/task-spec"] + pod.Annotations["volcano.sh/task-spec"]
		if task == "acme" || tasks[task] == nil {
			t.Errorf("in %s: task %q is none of %v", name, task, tasks)
		}
	}
}

func TestAHashedTreeHasItsMembers(t *testing.T) {
	t.Parallel()
	h := NewNameHasher([]byte("key"), usualKeys())
	hashed := func(text string) runtime.Object {
		t.Helper()
		out, err := h.Hash(keptOf(t, text))
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	const tree = `[{name: acme, copies: 2, minCopies: 1, required: example.com/rack, roles: {leader: 1}, groups: [{name: acme-2, copies: 3, pods: 1, ` +
		`groups: [{name: deep, groups: [{name: deepest, pods: 2}]}]}]}, {name: router, pods: 1}]`
	group := func(annotations string) *schedulingv1alpha1.PodGroup {
		obj := hashed(`{"apiVersion":"scheduling.x-k8s.io/v1alpha1","kind":"PodGroup","metadata":{"name":"train","namespace":"default","annotations":{` +
			annotations + `}},"spec":{"minMember":2}}`).(*unstructured.Unstructured)
		pg := &schedulingv1alpha1.PodGroup{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, pg); err != nil {
			t.Fatal(err)
		}
		return pg
	}
	pg := group(`"berth.dev/groups":"` + tree + `"`)
	text := pg.Annotations[wellknown.GroupsKey]
	for _, name := range []string{"acme", "deep", "router"} {
		if strings.Contains(text, name) {
			t.Errorf("name %q is in %s", name, text)
		}
	}
	spec, err := gangview.Spec(pg, 0)
	if err != nil {
		t.Fatal(err)
	}
	roles := map[string]int{}
	for _, g := range spec.Minimum.Tree.Groups {
		g.Least = len(g.Groups)
		g.Always(roles)
	}
	for _, labels := range []string{`"berth.dev/group":"acme-1","berth.dev/role":"leader"`, `"berth.dev/group":"acme-0.acme-2-2"`,
		`"berth.dev/group":"acme-0.acme-2-0.deepest"`, `"berth.dev/group":"router"`} {
		for _, metadata := range []string{`"labels":{` + labels + `}`, `"annotations":{` + labels + `}`} {
			if strings.Contains(labels, "role") && strings.HasPrefix(metadata, `"annotations"`) {
				continue // a role is a label
			}
			role := gangview.Role(hashed(memberOf(metadata, "")).(*v1.Pod), pg)
			if roles[role] == 0 {
				t.Errorf("%s: role %q is none of %v", metadata, role, roles)
			}
		}
	}
	pg = group(`"berth.dev/group-label":"team","berth.dev/groups":"` + tree + `"`)
	if text := pg.Annotations[wellknown.GroupsKey]; text != "" {
		t.Errorf("a tree whose groups another label names is kept: %s", text)
	}
}

// notForPlacement are the keys of Berth's own that have no say in where pods go, or are no annotations of pods.
var notForPlacement = map[string]bool{
	wellknown.GPUAgentKey: true, wellknown.GPUModeKey: true, wellknown.IPAddressKey: true, wellknown.RoleKey: true,
	wellknown.SchedulerKey: true,
}

func TestEveryAnnotationThatDecidesAboutPlacementIsKept(t *testing.T) {
	t.Parallel()
	for _, key := range wellknown.Own() {
		pod := &v1.Pod{}
		pod.Annotations = map[string]string{key: "x"}
		if kept := inputs.KeepPod(pod); (kept.Annotations[key] == "") != notForPlacement[key] {
			t.Errorf("%s: kept %t, want %t", key, kept.Annotations[key] != "", !notForPlacement[key])
		}
	}
}
