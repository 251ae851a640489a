package read

import (
	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/gang"
)

// RefOf names the pod as the ledger of gangs does.
func RefOf(pod *v1.Pod) gang.Ref {
	return gang.Ref{UID: gang.UID(pod.UID), Namespace: pod.Namespace, Name: pod.Name}
}
