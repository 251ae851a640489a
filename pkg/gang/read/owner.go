package read

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeinformers "k8s.io/client-go/informers"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/read/grouptree"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/process/informers"
	"berth.dev/berth/pkg/wellknown"
)

// Membership is the gang that a pod belongs to, if any, and where the gang's minimum is declared.
type Membership struct {
	// ID is zero for a pod in no gang.
	ID gang.ID
	// Minimum is how many members have to start together if the pod itself declares it, else 0.
	Minimum int
	// Owner is set if the gang is the pods of a controller's object, or of a group of Kubernetes or another scheduler. Its
	// Kind is empty for gangs that labels name.
	Owner Owner
	// EndedLabel selects the members that have ended, which the scheduler's informer leaves out. It counts if FollowEnded
	// is set; empty then stands for all pods.
	EndedLabel  string
	FollowEnded bool
}

// Owner is what one pod tells about the object of its gang: one whose controller creates the pods, or a group that they
// name.
type Owner struct {
	// Kind is a kind of OwnerKindOf.
	Kind string
	// Namespace and Name are those of the object.
	Namespace, Name string
	// Part names the part of the object whose pods form the gang: a replicated job of a JobSet, a group of a
	// LeaderWorkerSet. It is empty if all pods of the object do.
	Part string
	// Minimum is the gang's minimum if the pod carries it, else 0. MinimumKey is the annotation of another project with
	// the minimum, if there is one.
	Minimum    int
	MinimumKey string
	// Class and Priority are those of the pod, if the object is a group.
	Class    string
	Priority int32
}

// Gang returns the gang's ID. Its name is that of a possible PodGroup: "job.train", "jobset.train.workers".
func (o *Owner) Gang() gang.ID {
	name := strings.ToLower(o.Kind) + "." + o.Name
	if o.Part != "" {
		name += "." + o.Part
	}
	if len(name) > maxNameLength {
		name = grouptree.Short(name, name, maxNameLength, 8)
	}
	return gang.ID{Namespace: o.Namespace, Name: name}
}

// StatePart is the part of the object whose state is that of the gang.
func (o *Owner) StatePart() string {
	if o.Kind == leaderWorkerSet {
		return "" // all groups have one state
	}
	return o.Part
}

// Object names the object in messages.
func (o *Owner) Object() string {
	title := o.Kind
	if kind, known := OwnerKindOf(o.Kind); known {
		title = kind.Title()
	}
	return title + " " + o.Namespace + "/" + o.Name
}

// maxNameLength is the length that the API server allows to the name of a PodGroup, in bytes.
const maxNameLength = 253

// JobSetPer says which pods of a JobSet form one gang.
type JobSetPer string

// The pods of a JobSet that form one gang.
const (
	// PerJobSet makes one gang of all pods of a JobSet. The zero value of JobSetPer means the same.
	PerJobSet JobSetPer = "JobSet"
	// PerReplicatedJob makes a gang of each entry of spec.replicatedJobs, with all its replicas.
	PerReplicatedJob JobSetPer = "ReplicatedJob"
	// PerReplica makes a gang of each Job that the JobSet creates.
	PerReplica JobSetPer = "Replica"
)

// OwnerPolicy makes gangs of pods that do not ask for it. A nil policy makes none. It is immutable except for Trees,
// and safe for concurrent use.
type OwnerPolicy struct {
	// Kinds are those whose pods form gangs.
	Kinds map[string]bool
	// Profiles are the scheduler names, Namespaces the namespaces of the pods that the policy covers: a pod has to have
	// one of each. A nil map stands for all.
	Profiles, Namespaces map[string]bool
	// JobSetPer says which pods of a JobSet form one gang, also if these pods ask for a gang themselves.
	JobSetPer JobSetPer
	// CorePlansNative is set if kube-scheduler itself plans native groups: their pods are then in no gang.
	CorePlansNative bool
	// Trees know the native groups, nil for none. They are set while the profiles are made. Their answers change with the
	// objects.
	Trees NativeGroups
}

// NativeGroups knows the groups of Kubernetes itself.
type NativeGroups interface {
	// RootOf returns the name of the topmost CompositePodGroup around a PodGroup, empty for none.
	RootOf(namespace, podGroup string) string
	// Basic reports whether a PodGroup asks for no minimum and is in no tree; known is false until the PodGroup was read.
	Basic(namespace, podGroup string) (basic, known bool)
}

// LeftToCore reports whether the pod is in a group that kube-scheduler itself plans.
func (p *OwnerPolicy) LeftToCore(pod *v1.Pod) bool {
	return pod.Spec.SchedulingGroup != nil && p != nil && p.CorePlansNative
}

// NativeCounts reports whether only the native group of the pod decides which gang it is in: kube-scheduler plans it,
// or it is known to ask for a minimum.
func (p *OwnerPolicy) NativeCounts(pod *v1.Pod) bool {
	basic, known := p.basic(pod)
	return p.LeftToCore(pod) || known && !basic
}

// basic is NativeGroups.Basic for the native group of the pod.
func (p *OwnerPolicy) basic(pod *v1.Pod) (basic, known bool) {
	if name := NativeName(pod); name != "" && p != nil && p.Trees != nil {
		return p.Trees.Basic(pod.Namespace, name)
	}
	return false, false
}

func (p *OwnerPolicy) covers(pod *v1.Pod) bool {
	return p != nil && len(p.Kinds) > 0 && (p.Profiles == nil || p.Profiles[pod.Spec.SchedulerName]) &&
		(p.Namespaces == nil || p.Namespaces[pod.Namespace])
}

// GangOf returns the gang that the pod is a member of. In order of precedence, a gang is named by spec.schedulingGroup
// if that group has a minimum, by the label of a PodGroup, by the older labels, by the annotation berth.dev/gang, which
// makes a gang of the pods of one controller, by the group of another scheduler, by the annotations of MinMemberKey and
// by the policy. It depends only on the pod, the policy and the known native groups. A label or annotation with a bad
// value is an error.
func (p *OwnerPolicy) GangOf(pod *v1.Pod) (Membership, error) {
	if p.LeftToCore(pod) {
		return Membership{}, nil
	}
	native := NativeName(pod)
	if basic, _ := p.basic(pod); native == "" || basic {
		if m, err := p.declaredGang(pod); err != nil || m.ID != (gang.ID{}) || native == "" {
			return m, err
		}
	}
	return ownedGang(pod, p.nativeOf(pod, native)), nil
}

// declaredGang is the gang of a pod that is not in a native group with a minimum.
func (p *OwnerPolicy) declaredGang(pod *v1.Pod) (Membership, error) {
	if m, err := labelledGang(pod); err != nil || m.ID != (gang.ID{}) {
		return m, err
	}
	if _, asked := pod.Annotations[wellknown.GangKey]; !asked {
		group, err := foreignGroup(pod)
		if err != nil || group.Kind != "" {
			return ownedGang(pod, group), err
		}
		if m, err := kueueGang(pod); err != nil || m.ID != (gang.ID{}) {
			return m, err
		}
	}
	owner, err := p.owner(pod)
	if err != nil || owner.Kind == "" {
		return Membership{}, err
	}
	return ownedGang(pod, owner), nil
}

// ownedGang is the membership in the gang of an owner, zero if the owner has no kind.
func ownedGang(pod *v1.Pod, owner Owner) Membership {
	kind, known := OwnerKindOf(owner.Kind)
	if !known {
		return Membership{}
	}
	m := Membership{ID: owner.Gang(), Minimum: owner.Minimum, Owner: owner, EndedLabel: kind.EndedLabel,
		FollowEnded: kind.EndedLabel != ""}
	if kind.Object != "" && kind.EndedLabel == "" {
		m.EndedLabel, m.FollowEnded = endedLabelOf(pod), true
	}
	return m
}

// endedLabelOf returns a label of the pod that selects its controller's pods. It is for groups that only an annotation
// or a field of their pods names.
func endedLabelOf(pod *v1.Pod) string {
	for i := range ownerKinds {
		if label := ownerKinds[i].EndedLabel; label != "" && pod.Labels[label] != "" {
			return label
		}
	}
	return ""
}

// Annotations of other projects, on an object or on its pods, with the minimum of a gang that nothing else declares.
const (
	volcanoMinMember = "scheduling.volcano.sh/group-min-member"
	kaiMinMember     = "kai.scheduler/batch-min-member"
)

// countedKinds are the kinds for which such a minimum counts: the objects of other kinds tell which of their pods
// differ.
var countedKinds = []string{"Job", "JobSet", "StatefulSet", "ReplicaSet", "ReplicationController"}

// MinMemberKey returns the first of the annotations of other projects with a minimum, empty for none.
func MinMemberKey(annotations map[string]string) string {
	for _, key := range []string{volcanoMinMember, kaiMinMember} {
		if _, found := annotations[key]; found {
			return key
		}
	}
	return ""
}

// owner returns the object whose pods form the gang of this pod, or one without a kind if the pod is in no such gang.
func (p *OwnerPolicy) owner(pod *v1.Pod) (Owner, error) {
	value, found := pod.Annotations[wellknown.GangKey]
	if found && value != "true" {
		return Owner{}, podview.BadAnnotation(pod, wellknown.GangKey, `"true"`)
	}
	minKey, minimum := MinMemberKey(pod.Annotations), 0
	if minKey != "" {
		var ok bool
		if minimum, ok = parseMinimum(pod.Annotations[minKey]); !ok {
			return Owner{}, podview.BadAnnotation(pod, minKey, allowedMinimum)
		}
	}
	asked := found || minKey != ""
	if !asked && !p.covers(pod) {
		return Owner{}, nil
	}
	owner, err := p.controllerKind(pod, asked)
	switch {
	case err != nil:
		return Owner{}, err
	case owner.Kind == "" && asked:
		key := wellknown.GangKey
		if !found {
			key = minKey
		}
		return Owner{}, noOwner(pod, key)
	case minKey != "" && slices.Contains(countedKinds, owner.Kind):
		owner.Minimum, owner.MinimumKey = minimum, minKey
	}
	return owner, nil
}

// controllerKind returns the object of a known kind that controls the pod, or one without a kind. Unless the pod asks
// for a gang, only the kinds of the policy count.
func (p *OwnerPolicy) controllerKind(pod *v1.Pod, asked bool) (Owner, error) {
	controller := podview.ControllerOf(pod)
	if controller == nil {
		return Owner{}, nil
	}
	group, _, versioned := strings.Cut(controller.APIVersion, "/")
	if !versioned {
		group = ""
	}
	for i := range ownerKinds {
		k := &ownerKinds[i]
		if !asked && !p.Kinds[k.Kind] {
			continue
		}
		owner, err := k.ownerOf(p, pod, controlledBy{group: group, OwnerReference: controller})
		if err != nil || owner.Kind != "" {
			owner.Namespace = pod.Namespace
			return owner, err
		}
	}
	return Owner{}, nil
}

// noOwner is the error of a pod that asks for a gang in the annotation and has no controller of a known kind.
func noOwner(pod *v1.Pod, key string) error {
	controller := podview.ControllerOf(pod)
	if controller == nil {
		return fmt.Errorf("pod annotation %s: the pod belongs to no controller; create a PodGroup for pods without one", key)
	}
	// The API server takes any text for kind and name, line breaks included.
	return fmt.Errorf(
		"pod annotation %s: how many pods %.120q has is not known; create a PodGroup, or use one of the kinds %s",
		key, controller.Kind+" "+controller.Name, strings.Join(OwnerKindNames(), ", "))
}

// controlledBy is the reference of a pod to its controller, with the API group.
type controlledBy struct {
	group string
	*metav1.OwnerReference
}

func (by controlledBy) isJob() bool { return by.Kind == "Job" && by.group == "batch" }

// named returns the value of the label that names an object or a part of one.
func named(pod *v1.Pod, label, allowed string) (string, error) {
	value := pod.Labels[label]
	if !isSubdomain(value) {
		return "", &wellknown.BadValue{Object: "pod", Kind: "label", Key: label, Value: value, Allowed: allowed}
	}
	return value, nil
}

// isSubdomain reports whether s is a DNS subdomain, as nearly all names of objects are. It does not use the regular
// expression of apimachinery because it is called for every pod that is added or changed.
func isSubdomain(s string) bool {
	if s == "" || len(s) > maxNameLength {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9':
		case c != '-' && c != '.', i == 0, i == len(s)-1:
			return false
		case c == '.' && (s[i-1] == '-' || s[i-1] == '.' || s[i+1] == '-'):
			return false
		}
	}
	return true
}

// Gangs tells the plugins of all profiles of one scheduler which gang a pod is a member of. The zero value knows only
// the gangs that pods name; with a policy it also knows the gangs of controllers.
type Gangs struct {
	policy atomic.Pointer[OwnerPolicy]
}

// GangsOf returns the value that the scheduler's profiles share.
func GangsOf(factory kubeinformers.SharedInformerFactory) *Gangs {
	g, _ := informers.Shared(factory, func() (*Gangs, error) { return &Gangs{}, nil })
	return g
}

// Follow sets the policy, without its trees of native groups: the answer for a pod must not change while the pod does
// not. Call it while the profiles are made, before any informer runs.
func (g *Gangs) Follow(policy *OwnerPolicy) {
	stable := *policy
	stable.Trees = nil
	g.policy.Store(&stable)
}

// Of returns the gang of the pod, or in a tree of native groups that of the PodGroup alone. It is zero for a pod with a
// bad label or annotation, which Coscheduling rejects.
func (g *Gangs) Of(pod *v1.Pod) gang.ID {
	m, err := g.policy.Load().GangOf(pod)
	if err != nil {
		return gang.ID{}
	}
	return m.ID
}
