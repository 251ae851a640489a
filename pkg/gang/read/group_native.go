package read

import (
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"berth.dev/berth/pkg/gang/read/fields"
	"berth.dev/berth/pkg/gang/read/grouptree"
)

// NativeGroup is the kind of the groups in scheduling.k8s.io, which spec.schedulingGroup of a pod names, and
// CompositeGroup that of trees of them. With the feature gate GenericWorkload, kube-scheduler itself plans them;
// otherwise they are gangs like others.
const (
	NativeGroup    = "Native"
	CompositeGroup = "Composite"
)

// nativeOf returns the native PodGroup, or the tree that contains it, as the owner of the pod.
func (p *OwnerPolicy) nativeOf(pod *v1.Pod, name string) Owner {
	if p != nil && p.Trees != nil {
		if root := p.Trees.RootOf(pod.Namespace, name); root != "" {
			return groupOwner(pod, CompositeGroup, root)
		}
	}
	return groupOwner(pod, NativeGroup, name)
}

func readNativeGroup(r *fields.Reader, minimum string) OwnerState {
	n := grouptree.Node{Parent: r.Text("spec.parentCompositePodGroupName"), Least: max(r.Number(minimum, 1), 1),
		All: r.Has("spec.disruptionMode.all"), Basic: !r.Has(minimum)}
	var levels []string
	for _, level := range r.Items("spec.schedulingConstraints.topology") {
		levels = append(levels, level.Text("key"))
	}
	n.Required = strings.Join(levels, ",")
	s := groupState(r, n.Least)
	s.within(n.Required, "")
	s.Node = n
	if len(r.Items("spec.resourceClaims")) > 0 {
		s.notKept("resourceClaims: devices are reserved for pods, not for the group")
	}
	if r.Text("spec.preemptionPolicy") == "Never" {
		s.notKept("preemptionPolicy Never: that of the pods counts")
	}
	return s
}

// NativeName returns the name of the pod's native PodGroup, empty for none.
func NativeName(pod *v1.Pod) string {
	if g := pod.Spec.SchedulingGroup; g != nil && g.PodGroupName != nil {
		return *g.PodGroupName
	}
	return ""
}

// TreesOf returns how pods are in gangs by the native groups among the objects: each tree of groups is one gang. The
// scheduler follows the same objects in pkg/gang/status.
func TreesOf(objects []runtime.Object) *OwnerPolicy {
	forest := grouptree.New()
	for _, obj := range objects {
		addTo(forest, obj)
	}
	return &OwnerPolicy{Trees: forest}
}

// addTo adds an object to the trees. It ignores those of other kinds.
func addTo(forest *grouptree.Forest, obj runtime.Object) {
	kind, known := GroupKindOf(obj.GetObjectKind().GroupVersionKind())
	if !known || kind.Kind != NativeGroup && kind.Kind != CompositeGroup {
		return
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return
	}
	group := &unstructured.Unstructured{Object: content}
	node := kind.States(group)[""].Node
	forest.Set(grouptree.Key{Namespace: group.GetNamespace(), Name: group.GetName(),
		Composite: kind.Kind == CompositeGroup}, &node)
}
