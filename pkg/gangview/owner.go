package gangview

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/wellknown"
)

// Membership says which gang a pod belongs to, if any, and who knows the gang's minimum.
type Membership struct {
	// ID is zero for a pod in no gang.
	ID gang.ID
	// Spec holds the minimum where the pod itself carries it, else it is nil.
	Spec *gang.Spec
	// Owner is set if the gang is the pods of a controller's object. Its Kind is empty for gangs that labels name.
	Owner Owner
}

// Owner is an object whose controller creates the pods of a gang, as far as one of these pods tells.
type Owner struct {
	// Kind is a kind of OwnerKindOf.
	Kind string
	// Namespace and Name are those of the object.
	Namespace, Name string
	// Part names the part of the object whose pods form the gang: a replicated job of a JobSet, a group of a
	// LeaderWorkerSet. It is empty if all pods of the object do.
	Part string
	// Minimum is the gang's minimum where the pod carries it, else 0: the object says it.
	Minimum int
}

// Gang returns the gang's ID. Its name is that of a possible PodGroup: "job.train", "jobset.train.workers".
func (o *Owner) Gang() gang.ID {
	name := strings.ToLower(o.Kind) + "." + o.Name
	if o.Part != "" {
		name += "." + o.Part
	}
	if len(name) > maxNameLength {
		sum := sha256.Sum256([]byte(name))
		suffix := "-" + hex.EncodeToString(sum[:8])
		name = strings.TrimRight(name[:maxNameLength-len(suffix)], "-.") + suffix
	}
	return gang.ID{Namespace: o.Namespace, Name: name}
}

// Object names the object in messages.
func (o *Owner) Object() string { return o.Kind + " " + o.Namespace + "/" + o.Name }

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

// OwnerPolicy says which pods are made gangs although nothing in them asks for it. A nil policy makes none. It is
// immutable, and safe for concurrent use.
type OwnerPolicy struct {
	// Kinds are those whose pods form gangs.
	Kinds map[string]bool
	// Profiles are the scheduler names, Namespaces the namespaces of the pods that the policy covers: a pod has to have
	// one of each. A nil map stands for all.
	Profiles, Namespaces map[string]bool
	// JobSetPer says which pods of a JobSet form one gang, also where these pods ask for a gang themselves.
	JobSetPer JobSetPer
}

func (p *OwnerPolicy) covers(pod *v1.Pod) bool {
	return p != nil && (p.Profiles == nil || p.Profiles[pod.Spec.SchedulerName]) &&
		(p.Namespaces == nil || p.Namespaces[pod.Namespace])
}

// GangOf returns the gang that the pod is a member of. In order of precedence a gang is named by the label of a
// PodGroup, by the older labels, by the annotation berth.dev/gang, which makes a gang of the pods of one controller,
// and by the policy. It depends on nothing but the pod and the policy. Native groups are none of ours. A pod that means
// to be in a gang but says so wrongly is an error.
func (p *OwnerPolicy) GangOf(pod *v1.Pod) (Membership, error) {
	if m, err := labelledGang(pod); err != nil || m.ID != (gang.ID{}) {
		return m, err
	}
	owner, err := p.owner(pod)
	if err != nil || owner.Kind == "" {
		return Membership{}, err
	}
	m := Membership{ID: owner.Gang(), Owner: owner}
	if owner.Minimum > 0 {
		m.Spec = &gang.Spec{Minimum: gang.Minimum{Total: owner.Minimum}}
	}
	return m, nil
}

// owner returns the object whose pods form the gang of this pod, or one without a kind.
func (p *OwnerPolicy) owner(pod *v1.Pod) (Owner, error) {
	value, asked := pod.Annotations[wellknown.GangKey]
	switch {
	case asked && value != "true":
		return Owner{}, &wellknown.BadValue{Object: "pod", Kind: "annotation", Key: wellknown.GangKey, Value: value,
			Allowed: `"true"`}
	case !asked && !p.covers(pod), pod.Spec.SchedulingGroup != nil:
		return Owner{}, nil
	}
	controller := podview.ControllerOf(pod)
	if controller == nil {
		if !asked {
			return Owner{}, nil
		}
		return Owner{}, fmt.Errorf(
			"pod annotation %s: the pod belongs to no controller; create a PodGroup for pods without one", wellknown.GangKey)
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
		owner, err := k.owner(p, pod, controlledBy{group: group, OwnerReference: controller})
		if err != nil {
			return Owner{}, err
		}
		if owner.Kind == "" {
			continue
		}
		owner.Namespace = pod.Namespace
		return owner, nil
	}
	if asked {
		// The API server takes any text for both, line breaks included.
		return Owner{}, fmt.Errorf(
			"pod annotation %s: how many pods %.120q has is not known; create a PodGroup, or use one of the kinds %s",
			wellknown.GangKey, controller.Kind+" "+controller.Name, strings.Join(OwnerKindNames(), ", "))
	}
	return Owner{}, nil
}

// controlledBy is the reference of a pod to its controller, with the group out of its APIVersion.
type controlledBy struct {
	group string
	*metav1.OwnerReference
}

// named returns the value of the label that names an object or a part of one. It becomes a part of the gang's name.
func named(pod *v1.Pod, label, allowed string) (string, error) {
	value := pod.Labels[label]
	if !isSubdomain(value) {
		return "", &wellknown.BadValue{Object: "pod", Kind: "label", Key: label, Value: value, Allowed: allowed}
	}
	return value, nil
}

// isSubdomain reports whether s is a DNS subdomain, as nearly all names of objects are. It does without the regular
// expression of the API server because it is asked of every pod that comes or changes.
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
