package gpuview

import (
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/podview"
)

// HAMiLockKey is the annotation of a node by which HAMi keeps the binding of one pod apart from that of the next: its
// device plugin serves the pod that the lock names, and removes it.
const HAMiLockKey = "hami.io/mutex.lock"

// HAMiLockLasts is after what time a lock no longer counts.
const HAMiLockLasts = 5 * time.Minute

// HAMiLock is a lock on a node.
type HAMiLock struct {
	// Since is the zero time, long expired, when the lock cannot be read.
	Since time.Time
	// Namespace and Pod name the pod that holds it; they are empty where only the time is given.
	Namespace, Pod string
}

// NewHAMiLock is the value by which a pod locks a node.
func NewHAMiLock(pod *v1.Pod, now time.Time) string {
	return now.UTC().Format(time.RFC3339) + "," + pod.Namespace + "," + pod.Name
}

// ReadHAMiLock reads the lock of a node, false when there is none.
func ReadHAMiLock(node *v1.Node) (HAMiLock, bool) {
	value, ok := node.Annotations[HAMiLockKey]
	if !ok {
		return HAMiLock{}, false
	}
	since, owner, named := strings.Cut(value, ",")
	at, err := time.Parse(time.RFC3339, since)
	if err != nil {
		return HAMiLock{}, true
	}
	if !named {
		return HAMiLock{Since: at}, true
	}
	namespace, name, ok := strings.Cut(owner, ",")
	if !ok || namespace == "" || name == "" || strings.Contains(name, ",") {
		return HAMiLock{}, true
	}
	return HAMiLock{Since: at, Namespace: namespace, Pod: name}, true
}

// Left is how long the lock still counts, 0 or less when it does not. One from further in the future than locks last does not: a clock
// was wrong, and the node would be locked until that time.
func (l HAMiLock) Left(now time.Time) time.Duration {
	if l.Since.Sub(now) > HAMiLockLasts {
		return 0
	}
	return l.Since.Add(HAMiLockLasts).Sub(now)
}

// ServedByLock reports whether a pod no longer needs the lock that names it: it has ended, its containers run and so
// have their devices, or it is bound to another node.
func ServedByLock(pod *v1.Pod, node string) bool {
	return podview.Finished(pod) || pod.Status.Phase == v1.PodRunning || pod.Spec.NodeName != "" && pod.Spec.NodeName != node
}
