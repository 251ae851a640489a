package read

import (
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

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

// Trees are the trees of native groups in the tool; each tree is one gang. The scheduler follows the same objects in
// pkg/gang/status. Trees is safe for concurrent use.
type Trees struct {
	forest *grouptree.Forest
	policy *OwnerPolicy
}

// TreesOf returns the trees of the native groups among the objects.
func TreesOf(objects []runtime.Object) *Trees {
	t := &Trees{forest: grouptree.New()}
	t.policy = &OwnerPolicy{Trees: t.forest}
	for _, obj := range objects {
		t.Set(obj)
	}
	return t
}

// Set adds or replaces an object, and returns the names of the PodGroups whose pods may be in another gang now. It
// ignores objects of other kinds.
func (t *Trees) Set(obj runtime.Object) []string {
	gvk := obj.GetObjectKind().GroupVersionKind()
	kind := kindOf(gvk)
	if kind == nil {
		return nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil
	}
	group := &unstructured.Unstructured{Object: content}
	node := kind.States(group)[""].Node
	return t.set(kind, group, &node)
}

// Delete removes an object, and returns what Set does.
func (t *Trees) Delete(group *unstructured.Unstructured) []string {
	if kind := kindOf(group.GroupVersionKind()); kind != nil {
		return t.set(kind, group, nil)
	}
	return nil
}

func (t *Trees) set(kind *OwnerKind, group *unstructured.Unstructured, node *grouptree.Node) (moved []string) {
	changes, _ := t.forest.Set(grouptree.Key{Namespace: group.GetNamespace(), Name: group.GetName(),
		Composite: kind.Kind == CompositeGroup}, node)
	for _, c := range changes {
		if c.From != c.To || c.Told {
			moved = append(moved, c.PodGroup)
		}
	}
	return moved
}

// kindOf returns the kind of native groups, nil if it is another.
func kindOf(gvk schema.GroupVersionKind) *OwnerKind {
	kind, known := GroupKindOf(gvk)
	if !known || kind.Kind != NativeGroup && kind.Kind != CompositeGroup {
		return nil
	}
	return kind
}

// GangOf returns the gang of the pod: its whole tree.
func (t *Trees) GangOf(pod *v1.Pod) (Membership, error) {
	return t.policy.GangOf(pod) //nolint:wrapcheck // it says what is wrong
}
