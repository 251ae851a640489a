package gangview

import (
	"cmp"
	"encoding/json"
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
	"berth.dev/berth/pkg/grouptree"
	"berth.dev/berth/pkg/plural"
	"berth.dev/berth/pkg/wellknown"
)

// groupKinds are the objects by which Kubernetes itself and other schedulers declare groups. Their pods name them, so
// that no policy has to cover the pods; the gang is called after the kind, "volcano.train". Each has a file of its own.
var groupKinds = []OwnerKind{nativeGroup, compositeGroup, volcanoGroup, kaiGroup, groveGang}

// nativeKinds are those of Kubernetes itself, foreignKinds the others.
var nativeKinds, foreignKinds = groupKinds[:2], groupKinds[2:]

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
	keys := append(NameAnnotations(), kueueCount, kueueFast, kueueServing, LeaderWorkerSetSizeKey, volcanoMinMember,
		kaiMinMember)
	for _, n := range numberings {
		for _, key := range []string{n.number, n.block, n.set} {
			if key != "" {
				keys = append(keys, key)
			}
		}
	}
	return keys
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

// groupOf returns the group of one of the kinds that the pod names, or an owner without a kind.
func (p *OwnerPolicy) groupOf(pod *v1.Pod, kinds []OwnerKind) (Owner, error) {
	for i := range kinds {
		owner, err := kinds[i].owner(p, pod, controlledBy{})
		if err != nil || owner.Kind != "" {
			owner.Namespace, owner.Class = pod.Namespace, pod.Spec.PriorityClassName
			owner.Priority = corev1helpers.PodPriority(pod)
			return owner, err
		}
	}
	return Owner{}, nil
}

// namedGroup reads the first of the keys that the pod has as the name of a group.
func namedGroup(k, kind string, of map[string]string, keys ...string) (Owner, error) {
	for _, key := range keys {
		name := of[key]
		switch {
		case name == "":
		case !isSubdomain(name):
			return Owner{}, &wellknown.BadValue{Object: "pod", Kind: kind, Key: key, Value: name,
				Allowed: "the name of a " + k + " group"}
		default:
			return Owner{Kind: k, Name: name}, nil
		}
	}
	return Owner{}, nil
}

// groupTerms is what a group of another scheduler says.
type groupTerms struct {
	minimum int
	// roles are the minimums of its parts; the pods name theirs in a label or annotation roleKey.
	roleKey string
	roles   map[string]int
	// groups are its parts instead where they have levels of their own, or parts in turn; pods name theirs in groupKeys,
	// or in roleKey if those are not set.
	groups    []grouptree.Group
	groupKeys []string
	// required and preferred are keys of node labels.
	required, preferred []string
	// unkept lists what the group says that is not followed; class and lasting are as in OwnerState.
	unkept  []string
	class   string
	lasting bool
	// why says why the group cannot be read, empty if it can.
	why string
}

// hoist takes the levels that the only group names, if the terms name none.
func (g *groupTerms) hoist() {
	if len(g.groups) == 1 && len(g.required)+len(g.preferred) == 0 {
		only := &g.groups[0]
		g.required, g.preferred = levelsOf(only.Required), levelsOf(only.Preferred)
		only.Required, only.Preferred = "", ""
	}
}

func (g *groupTerms) notKept(format string, args ...any) {
	g.unkept = append(g.unkept, fmt.Sprintf(format, args...))
}

// states writes the terms as PodGroups say the same.
func (g *groupTerms) states(r *objectReader) map[string]OwnerState {
	s := OwnerState{Minimum: max(g.minimum, 1), Unkept: strings.Join(g.unkept, "; "), Class: g.class, Lasting: g.lasting}
	says := map[string]string{}
	if len(g.roles) > 0 {
		parts := make([]string, 0, len(g.roles))
		for _, role := range slices.Sorted(maps.Keys(g.roles)) {
			parts = append(parts, role+"="+strconv.Itoa(g.roles[role]))
		}
		says[wellknown.MinMembersByRoleKey] = strings.Join(parts, ",")
	}
	if len(g.roles) > 0 || slices.ContainsFunc(g.groups, func(of grouptree.Group) bool { return len(of.Roles) > 0 }) {
		says[wellknown.RoleLabelKey] = g.roleKey
	}
	if len(g.roles) > maxRoles {
		s.Why = fmt.Sprintf("%s %s has %s; a gang has %d at most", r.kind, r.name, plural.Of(len(g.roles), "part"), maxRoles)
	}
	for key, levels := range map[string][]string{wellknown.TopologyRequiredKey: g.required,
		wellknown.TopologyPreferredKey: g.preferred} {
		if len(levels) > 0 {
			says[key] = strings.Join(levels, ",")
		}
	}
	if len(g.groups) > 0 {
		says[wellknown.GroupLabelKey] = cmp.Or(strings.Join(g.groupKeys, ","), g.roleKey)
		says[wellknown.GroupsKey] = grouptree.EncodeGroups(g.groups)
		root, err := groupsOf(&schedulingv1alpha1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: r.name, Annotations: says}})
		if err != nil {
			_, why, _ := strings.Cut(err.Error(), ": ") // the object has other fields than the annotation that it is put in
			s.Why = fmt.Sprintf("%s %s cannot be read as a tree: %s", r.kind, r.name, why)
		} else {
			s.Minimum = min(max(root.Members(), s.Minimum), maxMinMember)
		}
	}
	if s.Says = encode(says); g.why != "" {
		s.Why = fmt.Sprintf("%s %s cannot start: %s", r.kind, r.name, g.why)
	}
	return whole(s)
}

// encode writes annotations so that equal ones are written alike.
func encode(annotations map[string]string) string {
	data, _ := json.Marshal(annotations) // maps of strings can be written
	return string(data)
}

// withOwnAnnotations adds what the annotations of Berth on the object say. They count before what the object says in
// its own way.
func (s *OwnerState) withOwnAnnotations(obj *unstructured.Unstructured) {
	says := map[string]string{}
	_ = json.Unmarshal([]byte(s.Says), &says)
	maps.Copy(says, ownAnnotations(obj))
	s.Says = encode(says)
}

func ownAnnotations(obj *unstructured.Unstructured) map[string]string {
	annotations := maps.Clone(obj.GetAnnotations())
	own := wellknown.Own()
	maps.DeleteFunc(annotations, func(key, _ string) bool { return !slices.Contains(own, key) })
	return annotations
}

// PodGroup returns the PodGroup that says what the object says, nil if it is no group.
func (s *OwnerState) PodGroup(id gang.ID) *schedulingv1alpha1.PodGroup {
	if s.Says == "" {
		return nil
	}
	pg := &schedulingv1alpha1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: id.Namespace, Name: id.Name, UID: s.UID,
			CreationTimestamp: metav1.NewTime(s.Created)},
		Spec: schedulingv1alpha1.PodGroupSpec{MinMember: int32(s.Minimum)}}
	_ = json.Unmarshal([]byte(s.Says), &pg.Annotations) // encode wrote it
	return pg
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
