package gangview

import (
	"strings"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/grouptree"
)

// NativeGroup is the kind of groups of Kubernetes itself, in scheduling.k8s.io, that spec.schedulingGroup of a pod
// names, and CompositeGroup that of trees of them. With the feature gate GenericWorkload the core of the scheduler
// plans them; else they are gangs like others.
const (
	NativeGroup    = "Native"
	CompositeGroup = "Composite"
)

var nativeGroup = OwnerKind{Kind: NativeGroup, Object: "PodGroup",
	GroupResource: groupResource("scheduling.k8s.io", "podgroups"), Versions: []string{"v1beta1", "v1alpha3"},
	owner: func(p *OwnerPolicy, pod *v1.Pod, _ controlledBy) (Owner, error) {
		name := NativeName(pod)
		if name == "" {
			return Owner{}, nil
		}
		if p != nil && p.Trees != nil {
			if root := p.Trees.RootOf(pod.Namespace, name); root != "" {
				return Owner{Kind: CompositeGroup, Name: root}, nil
			}
		}
		return Owner{Kind: NativeGroup, Name: name}, nil
	},
	read: func(r *objectReader) map[string]OwnerState {
		// Without a minimum the policy is basic: pods start one by one unless they are a gang by themselves.
		return nativeStates(r, "spec.schedulingPolicy.gang.minCount")
	}}

// compositeGroup is named by no pod: which tree a pod is in, OwnerPolicy.Trees says.
var compositeGroup = OwnerKind{Kind: CompositeGroup, Object: "CompositePodGroup",
	GroupResource: groupResource("scheduling.k8s.io", "compositepodgroups"), Versions: []string{"v1alpha3"},
	owner: func(*OwnerPolicy, *v1.Pod, controlledBy) (Owner, error) { return Owner{}, nil },
	read: func(r *objectReader) map[string]OwnerState {
		return nativeStates(r, "spec.schedulingPolicy.gang.minGroupCount")
	}}

func nativeStates(r *objectReader, minimum string) map[string]OwnerState {
	n := grouptree.Node{Parent: r.text("spec.parentCompositePodGroupName"), Least: max(r.number(minimum, 1), 1),
		All: r.has("spec.disruptionMode.all"), Basic: !r.has(minimum)}
	var levels []string
	for _, level := range r.items("spec.schedulingConstraints.topology") {
		levels = append(levels, level.text("key"))
	}
	n.Required = strings.Join(levels, ",")
	s := groupState(r, n.Least)
	s.within(n.Required, "")
	s.Node = n
	if len(r.items("spec.resourceClaims")) > 0 {
		s.notKept("resourceClaims: devices are reserved for pods, not for the group")
	}
	if r.text("spec.preemptionPolicy") == "Never" {
		s.notKept("preemptionPolicy Never: that of the pods counts")
	}
	return whole(s)
}

// NativeName is the name of the PodGroup of Kubernetes that the pod names, empty for none.
func NativeName(pod *v1.Pod) string {
	if g := pod.Spec.SchedulingGroup; g != nil && g.PodGroupName != nil {
		return *g.PodGroupName
	}
	return ""
}
