package gangview

import (
	v1 "k8s.io/api/core/v1"
)

// NativeGroup is the kind of groups of Kubernetes itself, in scheduling.k8s.io, that spec.schedulingGroup of a pod
// names. With the feature gate GenericWorkload the core of the scheduler plans them; else they are gangs like others.
const NativeGroup = "Native"

var nativeGroup = OwnerKind{Kind: NativeGroup, Object: "PodGroup",
	GroupResource: groupResource("scheduling.k8s.io", "podgroups"), Versions: []string{"v1beta1", "v1alpha3"},
	owner: func(_ *OwnerPolicy, pod *v1.Pod, _ controlledBy) (Owner, error) {
		if g := pod.Spec.SchedulingGroup; g != nil && g.PodGroupName != nil && *g.PodGroupName != "" {
			return Owner{Kind: NativeGroup, Name: *g.PodGroupName}, nil
		}
		return Owner{}, nil
	},
	read: func(r *objectReader) map[string]OwnerState {
		// Without a minimum the policy is basic: pods start one by one.
		g := groupTerms{minimum: r.number("spec.schedulingPolicy.gang.minCount", 1)}
		for _, level := range r.items("spec.schedulingConstraints.topology") {
			g.required = append(g.required, level.text("key"))
		}
		if parent := r.text("spec.parentCompositePodGroupName"); parent != "" {
			g.notKept("parentCompositePodGroupName %s: the group is planned without the others of its tree", parent)
		}
		if len(r.items("spec.resourceClaims")) > 0 {
			g.notKept("resourceClaims: devices are reserved for pods, not for the group")
		}
		g.podsPriority(r)
		if r.text("spec.preemptionPolicy") == "Never" {
			g.notKept("preemptionPolicy Never: that of the pods counts")
		}
		return g.states(r)
	}}
