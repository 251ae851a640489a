package subject

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/plural"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/schedulerconfig"
)

// The kinds of objects whose pods can be explained.
const (
	KindPod         = "pod"
	KindPodGroup    = "podgroup"
	KindJob         = "job"
	KindDeployment  = "deployment"
	KindStatefulSet = "statefulset"
	KindReplicaSet  = "replicaset"
)

// kinds have a resource of the API, and words are further names that users may type.
var kinds = []struct {
	name     string
	resource schema.GroupVersionResource
	words    []string
}{
	{KindPod, v1.SchemeGroupVersion.WithResource("pods"), []string{"po"}},
	{KindPodGroup, schedulingv1alpha1.SchemeGroupVersion.WithResource("podgroups"), []string{"pg",
		"podgroup.scheduling.k8s.io", "podgroups.scheduling.k8s.io", "podgroup.scheduling.volcano.sh",
		"podgroups.scheduling.volcano.sh", "podgroup.scheduling.run.ai", "podgroups.scheduling.run.ai", "podgang", "podgangs",
		"podgang.scheduler.grove.io", "podgangs.scheduler.grove.io", "compositepodgroup", "compositepodgroups",
		"compositepodgroup.scheduling.k8s.io", "compositepodgroups.scheduling.k8s.io"}},
	{KindJob, batchv1.SchemeGroupVersion.WithResource("jobs"), nil},
	{KindDeployment, appsv1.SchemeGroupVersion.WithResource("deployments"), []string{"deploy"}},
	{KindStatefulSet, appsv1.SchemeGroupVersion.WithResource("statefulsets"), []string{"sts"}},
	{KindReplicaSet, appsv1.SchemeGroupVersion.WithResource("replicasets"), []string{"rs"}},
}

// Resource is the resource of the kind that a user has typed, and whether there is one.
func Resource(word string) (schema.GroupVersionResource, bool) {
	kind := kindOf(word)
	for i := range kinds {
		if kinds[i].name == kind {
			return kinds[i].resource, true
		}
	}
	return schema.GroupVersionResource{}, false
}

// Kinds returns the names of the kinds, as users type them.
func Kinds() []string {
	names := make([]string, len(kinds))
	for i := range kinds {
		names[i] = kinds[i].name
	}
	return names
}

// Target is an object by kind and name. The name may be empty.
type Target struct{ Kind, Name string }

// ParseTarget reads KIND NAME, KIND/NAME or KIND, as kubectl has them.
func ParseTarget(args []string) (Target, error) {
	if len(args) == 0 {
		return Target{Kind: KindPod}, nil
	}
	word, name, joined := strings.Cut(args[0], "/")
	switch {
	case joined && len(args) > 1:
		return Target{}, fmt.Errorf("%q already has a name: %q is too much", args[0], args[1])
	case len(args) > 2:
		return Target{}, fmt.Errorf("one object is explained at a time: %q is too much", args[2])
	case len(args) == 2:
		var of string
		if of, name, joined = strings.Cut(args[1], "/"); !joined {
			name = of
		} else if kindOf(of) != kindOf(word) {
			return Target{}, fmt.Errorf("%q is not a %s", args[1], word)
		}
	}
	kind := kindOf(word)
	switch {
	case kind == "" && len(args) == 1 && !joined:
		return Target{}, fmt.Errorf("%q is not a kind that is explained: name one of %s before it, such as pod %s",
			word, strings.Join(Kinds(), ", "), word)
	case kind == "":
		return Target{}, fmt.Errorf("%q is not a kind that is explained: those are %s", word, strings.Join(Kinds(), ", "))
	case name == "" && (joined || len(args) == 2):
		return Target{}, fmt.Errorf("name a %s", kind)
	}
	return Target{Kind: kind, Name: name}, nil
}

func kindOf(word string) string {
	word = strings.ToLower(word)
	for _, k := range kinds {
		group := "." + k.resource.Group
		if slices.Contains(append([]string{k.name, k.resource.Resource, k.name + group, k.resource.Resource + group},
			k.words...), word) {
			return k.name
		}
	}
	return ""
}

// Pods returns the pods of the target in the order of Find, with the objects of the cluster. With a manifest, the pods
// are those of the manifest, and its objects are added.
func (t Target) Pods(objects []runtime.Object, manifest *Manifest, namespace string) ([]runtime.Object, []*v1.Pod,
	error) {
	if manifest == nil {
		pods, err := t.Find(objects, namespace)
		return objects, pods, err
	}
	objects, err := manifest.onto(objects)
	if err != nil {
		return nil, nil, err
	}
	if t.Name == "" {
		return objects, manifest.Pods, nil
	}
	pod, err := manifest.Pod(t.Name)
	return objects, []*v1.Pod{pod}, err
}

// ServedFirst moves the pods for which the configuration has a profile to the front, and counts the others.
func ServedFirst(pods []*v1.Pod, c *schedulerconfig.Configuration) (ordered []*v1.Pod, foreign int) {
	var others []*v1.Pod
	for _, pod := range pods {
		if _, err := c.Profile(cmp.Or(pod.Spec.SchedulerName, v1.DefaultSchedulerName)); err == nil {
			ordered = append(ordered, pod)
		} else {
			others = append(others, pod)
		}
	}
	return append(ordered, others...), len(others)
}

// AboutFile says which of several pods of a file an explanation is about; empty for one pod.
func AboutFile(pods, foreign int, pod string) string {
	if pods < 2 {
		return ""
	}
	others := ""
	if foreign > 0 {
		others = fmt.Sprintf(", %d of them for other schedulers", foreign)
	}
	return fmt.Sprintf("The file makes %d pods%s; this is about %s.", pods, others, pod)
}

// Find returns the pods of the target: first those that are pending, then those that have not ended, then the others.
func (t Target) Find(objects []runtime.Object, namespace string) ([]*v1.Pod, error) {
	elsewhere, trees := map[string]bool{}, read.TreesOf(objects)
	var pods []*v1.Pod
	for _, obj := range objects {
		p, ok := obj.(*v1.Pod)
		switch {
		case !ok || !t.has(p, trees):
		case p.Namespace != namespace:
			elsewhere[p.Namespace] = true
		default:
			pods = append(pods, p)
		}
	}
	if len(pods) == 0 {
		what, hint := fmt.Sprintf("pod of %s %s", t.Kind, t.Name), ""
		if t.Kind == KindPod {
			what = "pod " + t.Name
		}
		switch {
		case len(elsewhere) > 0:
			hint = "; there are some in " + strings.Join(slices.Sorted(maps.Keys(elsewhere)), ", ")
		case slices.ContainsFunc(objects, func(obj runtime.Object) bool { return t.isGroup(obj, namespace) }):
			hint = fmt.Sprintf("; the podgroup exists and waits for pods with the label %s=%s", schedulingv1alpha1.PodGroupLabel,
				t.Name)
		case t.Kind == KindPodGroup:
			hint = ", and no such podgroup"
		}
		return nil, fmt.Errorf("there is no %s in namespace %s%s", what, namespace, hint)
	}
	rank := func(p *v1.Pod) int {
		switch {
		case podview.Finished(p):
			return 2
		case p.Spec.NodeName != "":
			return 1
		default:
			return 0
		}
	}
	slices.SortFunc(pods, func(a, b *v1.Pod) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(len(a.Name), len(b.Name)), cmp.Compare(a.Name, b.Name))
	})
	return pods, nil
}

// isGroup reports whether the object is the PodGroup that the target names.
func (t Target) isGroup(obj runtime.Object, namespace string) bool {
	group, custom := obj.(*unstructured.Unstructured)
	return custom && t.Kind == KindPodGroup &&
		group.GroupVersionKind().GroupKind() == schedulingv1alpha1.SchemeGroupVersion.WithKind("PodGroup").GroupKind() &&
		group.GetNamespace() == namespace && group.GetName() == t.Name
}

// About says which of several pods of a target an explanation is about; empty for one pod.
func (t Target) About(pods []*v1.Pod, pod string) string {
	if len(pods) < 2 {
		return ""
	}
	pending, run := 0, 0
	for _, p := range pods {
		switch {
		case podview.Finished(p):
		case p.Spec.NodeName == "":
			pending++
		case p.Status.Phase == v1.PodRunning:
			run++
		}
	}
	if run == len(pods) {
		return fmt.Sprintf("All %d pods of %s %s run. Example: %s.", run, t.Kind, t.Name, pod)
	}
	return fmt.Sprintf("%s %s has %s, and %d %s pending; this is about %s.", t.Kind, t.Name, plural.Of(len(pods), "pod"),
		pending, plural.Choose(pending, "is", "are"), pod)
}

// has reports whether the pod belongs to the target, which may be a tree of groups.
func (t Target) has(pod *v1.Pod, trees *read.OwnerPolicy) bool {
	if t.Kind == KindPod {
		return pod.Name == t.Name
	}
	if t.Kind == KindPodGroup {
		alone := (*read.OwnerPolicy)(nil)
		for _, gangOf := range []func(*v1.Pod) (read.Membership, error){alone.GangOf, trees.GangOf} {
			m, err := gangOf(pod)
			if err != nil {
				return false
			}
			kind, known := read.OwnerKindOf(m.Owner.Kind)
			if m.ID.Name == t.Name || known && kind.Object != "" && m.Owner.Name == t.Name {
				return true // by the name of the gang, or of the group that its pods name
			}
		}
		return false
	}
	owner := metav1.GetControllerOf(pod)
	if owner == nil {
		return false
	}
	if t.Kind == KindDeployment {
		kind, name := podview.WorkloadOf(pod)
		return kind == "Deployment" && name == t.Name
	}
	return strings.ToLower(owner.Kind) == t.Kind && owner.Name == t.Name
}
