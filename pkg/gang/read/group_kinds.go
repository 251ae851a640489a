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

// groupKinds are the objects by which Kubernetes itself and other schedulers declare groups. Their pods name them,
// without a policy; the gang is named after the kind: "volcano.train". Each has its own file.
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

// GroupKinds returns the kinds of groups of Kubernetes itself and of other schedulers.
func GroupKinds() []OwnerKind { return slices.Clone(groupKinds) }

// GroupAnnotations returns the annotations by which pods name the group of another scheduler.
func GroupAnnotations() []string { return []string{volcanoName, volcanoOtherName, kaiName} }

// NameAnnotations returns the annotations by which pods name their group, or their part of it.
func NameAnnotations() []string {
	keys := append(GroupAnnotations(), volcanoTask, kueueGroup)
	for _, f := range foreigners {
		keys = append(keys, f.Key)
	}
	return keys
}

// PodAnnotations returns all annotations of other projects about the gang of a pod, and about its number in it.
func PodAnnotations() []string {
	return append(append(NameAnnotations(), kueueCount, kueueFast, kueueServing, LeaderWorkerSetSizeKey, volcanoMinMember,
		kaiMinMember), numbering.Keys()...)
}

// StatusResource returns the resource through which Berth writes the status of groups, empty if it does not.
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

// foreignGroup returns the group of another scheduler that the pod names, or an Owner without a kind.
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

// groupState returns the state that every group has. With its empty map Says it stands for a PodGroup.
func groupState(r *fields.Reader, minimum int) OwnerState {
	return OwnerState{Minimum: minimum, Class: r.Text("spec.priorityClassName"), Says: map[string]string{}}
}

// say adds an annotation of a PodGroup that declares the same as the object, unless the value is empty.
func (s *OwnerState) say(key, value string) {
	if s.Says == nil {
		s.Says = map[string]string{}
	}
	if value != "" {
		s.Says[key] = value
	}
}

// within declares the required and the preferred levels, unless a level is declared already.
func (s *OwnerState) within(required, preferred string) {
	if s.Says[wellknown.TopologyRequiredKey]+s.Says[wellknown.TopologyPreferredKey] == "" {
		s.say(wellknown.TopologyRequiredKey, required)
		s.say(wellknown.TopologyPreferredKey, preferred)
	}
}

// needRoles declares how many pods of each role the gang needs. Pods have their role in the label or annotation key.
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

// needGroups declares the groups within the gang. Pods have the name of their group in the labels or annotations keys,
// which are joined by commas. The minimum rises to what the groups need.
func (s *OwnerState) needGroups(r *fields.Reader, keys string, groups []grouptree.Group) {
	if len(groups) == 0 {
		return
	}
	s.say(wellknown.GroupLabelKey, keys)
	s.say(wellknown.GroupsKey, grouptree.EncodeGroups(groups))
	root, err := groupsOf(&schedulingv1alpha1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: r.Name, Annotations: s.Says}})
	if err != nil {
		_, why, _ := strings.Cut(err.Error(), ": ") // the annotation is not a field of the object
		s.Why = fmt.Sprintf("%s %s cannot be read as a tree: %s", r.Kind, r.Name, why)
		return
	}
	s.Minimum = min(max(root.Members(), s.Minimum), maxMinMember)
}

// notKept adds to what the group declares and Berth does not follow.
func (s *OwnerState) notKept(format string, args ...any) {
	if s.Unkept != "" {
		s.Unkept += "; "
	}
	s.Unkept += fmt.Sprintf(format, args...)
}

// ownAnnotations returns the annotations of Berth on the object. They take precedence over its fields.
func ownAnnotations(obj *unstructured.Unstructured) map[string]string {
	annotations := maps.Clone(obj.GetAnnotations())
	own := wellknown.Own()
	maps.DeleteFunc(annotations, func(key, _ string) bool { return !slices.Contains(own, key) })
	return annotations
}

// PodGroup returns a PodGroup that declares the same as the object, nil if that is no group. It shares the annotations.
func (s *OwnerState) PodGroup(id gang.ID) *schedulingv1alpha1.PodGroup {
	if s.Says == nil {
		return nil
	}
	return &schedulingv1alpha1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: id.Namespace, Name: id.Name, UID: s.UID,
			CreationTimestamp: metav1.NewTime(s.Created), Annotations: s.Says},
		Spec: schedulingv1alpha1.PodGroupSpec{MinMember: int32(s.Minimum)}}
}

// NotKept is the message about what the group declares and Berth does not follow, empty for nothing. A priority class
// that the pods have as well is followed.
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
