package gpudemand

import (
	"strings"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gangview"
	"berth.dev/berth/pkg/gpu/mix"
	"berth.dev/berth/pkg/podview"
)

// ownerOf names who made the pod. The Jobs of a CronJob and the ReplicaSets of a Deployment, which differ in what
// follows the last hyphen, are one controller.
func ownerOf(pod *v1.Pod) mix.Owner {
	owner := podview.ControllerOf(pod)
	if owner == nil {
		return mix.Owner{Namespace: pod.Namespace}
	}
	name := owner.Name
	if at := strings.LastIndexByte(name, '-'); at > 0 && (owner.Kind == "Job" || owner.Kind == "ReplicaSet") {
		name = name[:at]
	}
	return mix.Owner{Namespace: pod.Namespace, Controller: pod.Namespace + "/" + owner.Kind + "/" + name}
}

// GroupOf names the pods that a pod works with: its gang, or the pods of the same controller. It is empty for a pod on
// its own.
func GroupOf(gangs *gangview.Gangs, pod *v1.Pod) string {
	if id := gangs.Of(pod); id != (gang.ID{}) {
		return "gang/" + id.String()
	}
	if owner := podview.ControllerOf(pod); owner != nil {
		return "controller/" + string(owner.UID)
	}
	return ""
}

// arrivals tell which pods say something of their own.
type arrivals struct {
	// groups are those with a pod that has arrived, until the mix is known.
	groups map[string]struct{}
	// last is that of the last pod, once it is.
	last string
}

// independent reports whether a pod of that group is the first of it or, once the mix is known, of another group than
// the pod before it.
func (a *arrivals) independent(group string, mixKnown bool) bool {
	if mixKnown {
		before := a.last
		a.groups, a.last = nil, group
		return group == "" || group != before
	}
	if _, seen := a.groups[group]; seen && group != "" {
		return false
	}
	if a.groups == nil {
		a.groups = map[string]struct{}{}
	}
	a.groups[group] = struct{}{}
	return true
}
