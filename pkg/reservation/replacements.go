package reservation

import (
	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/podview"
)

// replacementsPrefix keeps what is kept for pods in no gang apart from gangs; no object's name has a space.
const replacementsPrefix = "replacements by "

// ReplacementsOf is to whom room is kept for what replaces the pod: any pod of its controller. It is the zero ID for
// one without a controller.
func ReplacementsOf(pod *v1.Pod) gang.ID {
	owner := podview.ControllerOf(pod)
	if owner == nil {
		return gang.ID{}
	}
	return gang.ID{Namespace: pod.Namespace, Name: replacementsPrefix + owner.Kind + " " + owner.Name}
}
