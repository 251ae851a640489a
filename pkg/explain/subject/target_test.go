package subject

import (
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/schedulerconfig"
	"berth.dev/berth/test/harness/assert"
	"berth.dev/berth/test/harness/require"
)

func TestAnObjectIsNamedAsKubectlDoes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ args, kind, name, err string }{
		{"", "pod", "", ""},
		{"pod", "pod", "", ""},
		{"pod p", "pod", "p", ""},
		{"po/p", "pod", "p", ""},
		{"pod pod/p", "pod", "p", ""},
		{"pg train", "podgroup", "train", ""},
		{"podgroups.scheduling.x-k8s.io/train", "podgroup", "train", ""},
		{"Job j", "job", "j", ""},
		{"deploy/d", "deployment", "d", ""},
		{"sts s", "statefulset", "s", ""},
		{"rs r", "replicaset", "r", ""},
		{"node n", "", "", `"node" is not a kind that is explained: those are pod, podgroup`},
		{"pod/", "", "", "name a pod"},
		{"pod/a b", "", "", `"pod/a" already has a name`},
		{"pod a b", "", "", `"b" is too much`},
		{"pod job/j", "", "", `"job/j" is not a pod`},
		{"p", "", "", `replicaset before it, such as pod p`},
	} {
		t.Run(tt.args, func(t *testing.T) {
			t.Parallel()
			got, err := ParseTarget(strings.Fields(tt.args))
			if tt.err != "" {
				assert.Contains(t, fmt.Sprint(err), tt.err)
				return
			}
			if err != nil || got != (Target{tt.kind, tt.name}) {
				t.Errorf("got %v and error %v, want %s %s", got, err, tt.kind, tt.name)
			}
		})
	}
}

func TestAPodStandsForItsController(t *testing.T) {
	t.Parallel()
	owned := func(name, on, kind, owner string) *v1.Pod {
		p := pod(name, on)
		p.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: owner, Controller: ptr.To(true)}}
		return p
	}
	ofDeployment := owned("d-7f-x", "", "ReplicaSet", "d-7f")
	ofDeployment.Labels = map[string]string{"pod-template-hash": "7f"}
	member := pod("m-0", "")
	member.Labels = map[string]string{"scheduling.x-k8s.io/pod-group": "g"}
	ended := owned("j-3", "a", "Job", "j")
	ended.Status.Phase = v1.PodFailed
	elsewhere := owned("j-0", "", "Job", "far")
	elsewhere.Namespace = "other"
	objects := []runtime.Object{ended, owned("j-0", "a", "Job", "j"), owned("j-10", "", "Job", "j"),
		owned("j-2", "", "Job", "j"),
		owned("s-0", "a", "StatefulSet", "s"), ofDeployment, member, elsewhere,
		podGroup("default", "empty"), podGroup("other", "none")}
	for _, tt := range []struct {
		target      Target
		want, about string
	}{
		{Target{KindPod, "j-0"}, "j-0", ""},
		{Target{KindJob, "j"}, "j-2 j-10 j-0 j-3", "job j has 4 pods, and 2 are pending; this is about j-2."},
		{Target{KindStatefulSet, "s"}, "s-0", ""},
		{Target{KindDeployment, "d"}, "d-7f-x", ""},
		{Target{KindReplicaSet, "d-7f"}, "d-7f-x", ""},
		{Target{KindPodGroup, "g"}, "m-0", ""},
	} {
		pods, err := tt.target.Find(objects, "default")
		require.NoError(t, err)
		var names []string
		for _, p := range pods {
			names = append(names, p.Name)
		}
		assert.Equal(t, fmt.Sprintf("pods of %v", tt.target), tt.want, strings.Join(names, " "))
		assert.Equal(t, fmt.Sprint(tt.target), tt.about, tt.target.About(pods, pods[0].Name))
	}
	for target, want := range map[Target]string{
		{KindJob, "none"}:      "there is no pod of job none in namespace default",
		{KindJob, "empty"}:     "there is no pod of job empty in namespace default",
		{KindJob, "far"}:       "; there are some in other",
		{KindPodGroup, "none"}: "there is no pod of podgroup none in namespace default, and no such podgroup",
		{KindPodGroup,
			"empty"}: "; the podgroup exists and waits for pods with the label scheduling.x-k8s.io/pod-group=empty",
	} {
		if _, err := target.Find(objects, "default"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got error %v, want %q in it", target, err, want)
		}
	}
}

// A group of another scheduler is found by its own name and by that of its gang.
func TestTheGroupOfAnotherSchedulerIsFoundByBothNames(t *testing.T) {
	t.Parallel()
	member := pod("m-0", "a")
	member.Status.Phase = v1.PodRunning
	member.Annotations = map[string]string{"scheduling.k8s.io/group-name": "train"}
	second := member.DeepCopy()
	second.Name = "m-1"
	for _, name := range []string{"train", "volcano.train"} {
		target := Target{KindPodGroup, name}
		pods, err := target.Find([]runtime.Object{member, second}, "default")
		if err != nil || len(pods) != 2 {
			t.Fatalf("%s: got %d pods and error %v, want 2", name, len(pods), err)
		}
		if got, want := target.About(pods, "m-0"), "All 2 pods of podgroup "+name+" run. Example: m-0."; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// A tree of Kubernetes' own groups is found by the name of its root, and by those of its groups.
func TestATreeOfGroupsIsFoundByItsRoot(t *testing.T) {
	t.Parallel()
	root := &schedulingv1alpha3.CompositePodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "job"}}
	root.SetGroupVersionKind(schedulingv1alpha3.SchemeGroupVersion.WithKind("CompositePodGroup"))
	objects := []runtime.Object{root}
	for _, name := range []string{"a", "b"} {
		group := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
		group.SetGroupVersionKind(schedulingv1beta1.SchemeGroupVersion.WithKind("PodGroup"))
		group.Spec.ParentCompositePodGroupName = ptr.To("job")
		member := pod(name+"-0", "")
		member.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: ptr.To(name)}
		objects = append(objects, group, member)
	}
	for name, want := range map[string]int{"job": 2, "composite.job": 2, "a": 1, "native.b": 1} {
		if pods, err := (Target{KindPodGroup, name}).Find(objects, "default"); err != nil || len(pods) != want {
			t.Errorf("%s: got %d pods and error %v, want %d", name, len(pods), err, want)
		}
	}
}

func TestOfSeveralPodsInAFileTheFirstThatIsServedIsExplained(t *testing.T) {
	t.Parallel()
	foreign := pod("foreign", "")
	served := func(name string) *v1.Pod {
		p := pod(name, "")
		p.Spec.SchedulerName = "gpu-aware-scheduler"
		return p
	}
	shipped, err := schedulerconfig.Shipped()
	require.NoError(t, err)
	pods, others := ServedFirst([]*v1.Pod{foreign, served("a"), served("b")}, shipped)
	if got, want := AboutFile(len(pods), others,
		pods[0].Name), "The file makes 3 pods, 1 of them for other schedulers; this is about a."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := AboutFile(1, 0, "a"); got != "" {
		t.Errorf("of one pod it says %q", got)
	}
}

func pod(name, on string) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, Spec: v1.PodSpec{NodeName: on},
		Status: v1.PodStatus{Phase: v1.PodPending}}
}

// podGroup is a PodGroup as a dump or a cluster gives it.
func podGroup(namespace, name string) *unstructured.Unstructured {
	group := &unstructured.Unstructured{}
	group.SetGroupVersionKind(schedulingv1alpha1.SchemeGroupVersion.WithKind("PodGroup"))
	group.SetNamespace(namespace)
	group.SetName(name)
	return group
}

func TestEveryKindIsServedSomewhere(t *testing.T) {
	t.Parallel()
	for _, kind := range Kinds() {
		resource, ok := Resource(kind)
		if !ok || resource.Resource != kind+"s" || resource.Version == "" {
			t.Errorf("%s is served as %v, %t", kind, resource, ok)
		}
	}
	if short, ok := Resource("pg"); !ok || short.Group != "scheduling.x-k8s.io" {
		t.Errorf("pg is served as %v, %t", short, ok)
	}
	if other, ok := Resource("node"); ok {
		t.Errorf("node, which is not explained, is served as %v", other)
	}
}
