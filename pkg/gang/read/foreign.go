package read

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
)

// Foreign is how a pod says to another scheduler that it is in a group that is not read.
type Foreign struct {
	// Key is that of an annotation.
	Key string
	// Project reads it.
	Project string
}

// foreigners are part of these projects' APIs. Their controllers set them on the pods that they create.
var foreigners = []Foreign{
	{"gang.scheduling.koordinator.sh/name", "Koordinator"},
	{"yunikorn.apache.org/task-group-name", "YuniKorn"},
}

// ForeignOf returns the first of these that the pod has.
func ForeignOf(pod *v1.Pod) (Foreign, bool) {
	for _, f := range foreigners {
		if pod.Annotations[f.Key] != "" {
			return f, true
		}
	}
	return Foreign{}, false
}

// String says that it has no effect, and what would have.
func (f Foreign) String() string {
	return fmt.Sprintf(
		"annotation %s names a group of %s, which is not read: the pod is placed on its own. To place the group as a gang, "+
			"label the pods %s=NAME and create the PodGroup NAME of scheduling.x-k8s.io", f.Key, f.Project, Labels()[0])
}
