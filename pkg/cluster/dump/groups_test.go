package dump

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"berth.dev/berth/pkg/cluster/inputs"
	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/gang/read/numbering"
	"berth.dev/berth/pkg/wellknown"
	"berth.dev/berth/test/harness/require"
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
			require.NoError(t, obj.UnmarshalJSON([]byte(pod)))
			var before v1.Pod
			require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &before))
			kept := keptOf(t, pod).(*v1.Pod)
			want, _, err := read.Of(&before)
			if err != nil || want.Name == "" {
				t.Fatalf("the pod itself is in gang %q: %v", want, err)
			}
			if got, _, err := read.Of(kept); err != nil || got != want {
				t.Errorf("what is kept of it is in gang %q, want %q: %v", got, want, err)
			}
			if got, _ := numbering.IndexOf(kept); got.Number != 3 {
				t.Errorf("what is kept of it has the number %d, want 3", got.Number)
			}
			hashed, err := NewNameHasher([]byte("key"), usualKeys()).Hash(kept)
			require.NoError(t, err)
			got, _, err := read.Of(hashed.(*v1.Pod))
			if err != nil || got.Name == "" || got == want {
				t.Errorf("with its names hashed it is in gang %q, want one of another name: %v", got, err)
			}
		})
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
		obj, err := inputs.Keep(pod)
		require.NoError(t, err)
		if kept := obj.(*v1.Pod); (kept.Annotations[key] == "") != notForPlacement[key] {
			t.Errorf("%s: kept %t, want %t", key, kept.Annotations[key] != "", !notForPlacement[key])
		}
	}
}
