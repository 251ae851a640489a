package read

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/read/fields"
	"berth.dev/berth/pkg/gang/read/grouptree"
	"berth.dev/berth/pkg/gang/read/numbering"
	"berth.dev/berth/pkg/plural"
	"berth.dev/berth/pkg/wellknown"
)

// groupKinds are the objects by which Kubernetes itself and other schedulers declare groups. Their pods name them, so
// that no policy has to cover the pods; the gang is called after the kind, "volcano.train". Each has a file of its own.
var groupKinds = []OwnerKind{
	groupKind(NativeGroup, "PodGroup", "scheduling.k8s.io", nil, "v1beta1", "v1alpha3"),
	groupKind(CompositeGroup, "CompositePodGroup", "scheduling.k8s.io", nil, "v1alpha3"),
	groupKind(VolcanoGroup, "PodGroup", "scheduling.volcano.sh", []string{volcanoName, volcanoOtherName}, "v1beta1"),
	groupKind(KAIGroup, "PodGroup", "scheduling.run.ai", []string{kaiName}, "v2alpha2"),
	groupKind(GroveGang, "PodGang", "scheduler.grove.io", []string{grovePodGang}, "v1alpha1"),
}

func groupKind(kind, object, group string, nameKeys []string, versions ...string) OwnerKind {
	k := ownerKind(object, group, "", versions...)
	k.Kind, k.Object, k.nameKeys = kind, object, nameKeys
	if kind == GroveGang {
		k.EndedLabel = grovePodGang
	}
	return k
}

// GroupKinds returns all of them.
func GroupKinds() []OwnerKind { return slices.Clone(groupKinds) }

// GroupAnnotations are those by which pods name the group of another scheduler.
func GroupAnnotations() []string { return []string{volcanoName, volcanoOtherName, kaiName} }

// NameAnnotations are those by which pods name their group, or their part in it.
func NameAnnotations() []string {
	keys := append(GroupAnnotations(), volcanoTask, kueueGroup)
	for _, f := range foreigners {
		keys = append(keys, f.Key)
	}
	return keys
}

// PodAnnotations are all annotations by which pods say in which gang they are, and their number in it, in a way of
// other projects.
func PodAnnotations() []string {
	return append(append(NameAnnotations(), kueueCount, kueueFast, kueueServing, LeaderWorkerSetSizeKey, volcanoMinMember,
		kaiMinMember), numbering.Keys()...)
}

// StatusResource is the resource by which the status of groups is written, empty if it is not.
func (k *OwnerKind) StatusResource() string {
	switch k.Kind {
	case NativeGroup, CompositeGroup:
		return k.Resource + "/status"
	case VolcanoGroup:
		// Its definition has no subresource.
		return k.Resource
	}
	return ""
}

// GroupKindOf returns the kind of groups that objects of the API have.
func GroupKindOf(gvk schema.GroupVersionKind) (*OwnerKind, bool) {
	for i := range groupKinds {
		k := &groupKinds[i]
		if k.Group == gvk.Group && k.Object == gvk.Kind && slices.Contains(k.Versions, gvk.Version) {
			return k, true
		}
	}
	return nil, false
}

// foreignGroup returns the group of another scheduler that the pod names, or an owner without a kind.
func foreignGroup(pod *v1.Pod) (Owner, error) {
	for i := range groupKinds {
		k, of, kind := &groupKinds[i], pod.Annotations, "annotation"
		if k.EndedLabel != "" {
			of, kind = pod.Labels, "label"
		}
		for _, key := range k.nameKeys {
			switch name := of[key]; {
			case name == "":
			case !isSubdomain(name):
				return Owner{}, &wellknown.BadValue{Object: "pod", Kind: kind, Key: key, Value: name,
					Allowed: "the name of a " + k.Kind + " group"}
			default:
				return groupOwner(pod, k.Kind, name), nil
			}
		}
	}
	return Owner{}, nil
}

// groupOwner is a group as the owner of a pod.
func groupOwner(pod *v1.Pod, kind, name string) Owner {
	return Owner{Kind: kind, Namespace: pod.Namespace, Name: name, Class: pod.Spec.PriorityClassName,
		Priority: corev1helpers.PodPriority(pod)}
}

// groupState is what every group of Kubernetes or another scheduler says. It stands for a PodGroup, if an empty one.
func groupState(r *fields.Reader, minimum int) OwnerState {
	return OwnerState{Minimum: minimum, Class: r.Text("spec.priorityClassName"), Says: map[string]string{}}
}

// say adds an annotation of a PodGroup that declares what the object does, unless it is empty.
func (s *OwnerState) say(key, value string) {
	if s.Says == nil {
		s.Says = map[string]string{}
	}
	if value != "" {
		s.Says[key] = value
	}
}

// within has the members share, or better share, the domains of a level, unless a level is declared already.
func (s *OwnerState) within(required, preferred string) {
	if s.Says[wellknown.TopologyRequiredKey]+s.Says[wellknown.TopologyPreferredKey] == "" {
		s.say(wellknown.TopologyRequiredKey, required)
		s.say(wellknown.TopologyPreferredKey, preferred)
	}
}

// needRoles has the gang need numbers of pods of some roles. The pods name theirs in the label or annotation key.
func (s *OwnerState) needRoles(r *fields.Reader, key string, roles map[string]int) {
	if len(roles) == 0 {
		return
	}
	parts := make([]string, 0, len(roles))
	for _, role := range slices.Sorted(maps.Keys(roles)) {
		parts = append(parts, role+"="+strconv.Itoa(roles[role]))
	}
	s.say(wellknown.RoleLabelKey, key)
	s.say(wellknown.MinMembersByRoleKey, strings.Join(parts, ","))
	if len(roles) > maxRoles {
		s.Why = fmt.Sprintf("%s %s has %s; a gang has %d at most", r.Kind, r.Name, plural.Of(len(roles), "part"), maxRoles)
	}
}

// needGroups has the gang consist of groups, which may have levels of their own or groups within. The pods name theirs
// in labels or annotations, joined by commas. It needs as many pods as the groups do, or its minimum if that is more.
func (s *OwnerState) needGroups(r *fields.Reader, keys string, groups []grouptree.Group) {
	if len(groups) == 0 {
		return
	}
	s.say(wellknown.GroupLabelKey, keys)
	s.say(wellknown.GroupsKey, grouptree.EncodeGroups(groups))
	root, err := groupsOf(&schedulingv1alpha1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: r.Name, Annotations: s.Says}})
	if err != nil {
		_, why, _ := strings.Cut(err.Error(), ": ") // the object has other fields than the annotation that it is put in
		s.Why = fmt.Sprintf("%s %s cannot be read as a tree: %s", r.Kind, r.Name, why)
		return
	}
	s.Minimum = min(max(root.Members(), s.Minimum), maxMinMember)
}

// notKept adds to what the group says that is not followed.
func (s *OwnerState) notKept(format string, args ...any) {
	if s.Unkept != "" {
		s.Unkept += "; "
	}
	s.Unkept += fmt.Sprintf(format, args...)
}

// ownAnnotations are those of Berth on the object. They count before what it says in its own way.
func ownAnnotations(obj *unstructured.Unstructured) map[string]string {
	annotations := maps.Clone(obj.GetAnnotations())
	own := wellknown.Own()
	maps.DeleteFunc(annotations, func(key, _ string) bool { return !slices.Contains(own, key) })
	return annotations
}

// PodGroup returns the PodGroup that says what the object says, nil if it is no group. It shares the annotations.
func (s *OwnerState) PodGroup(id gang.ID) *schedulingv1alpha1.PodGroup {
	if s.Says == nil {
		return nil
	}
	return &schedulingv1alpha1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: id.Namespace, Name: id.Name, UID: s.UID,
			CreationTimestamp: metav1.NewTime(s.Created), Annotations: s.Says},
		Spec: schedulingv1alpha1.PodGroupSpec{MinMember: int32(s.Minimum)}}
}

// NotKept says in an event or a warning what of the group is not followed, empty if all is. A priority class that the
// pods have as well is.
func (s *OwnerState) NotKept(o *Owner) string {
	var unkept []string
	if s.Unkept != "" {
		unkept = append(unkept, s.Unkept)
	}
	if s.Class != "" && s.Class != o.Class {
		unkept = append(unkept, fmt.Sprintf("priorityClassName %s: the priority of the pods counts", s.Class))
	}
	if s.Lasting && o.Priority >= kaiLasting {
		unkept = append(unkept, fmt.Sprintf(
			"priority %d, at which KAI evicts no group: pods of a higher priority may evict it", o.Priority))
	}
	return strings.Join(unkept, "; ")
}
