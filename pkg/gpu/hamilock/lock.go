package hamilock

import (
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/pkg/podview"
)

// Expiry is the age from which on a lock no longer counts.
const Expiry = 5 * time.Minute

// lock is a lock on a node.
type lock struct {
	// since is the zero time, long expired, when the lock cannot be read.
	since time.Time
	// namespace and pod name the owner; they are empty if the lock has only the time.
	namespace, pod string
}

// lockOf is the value by which a pod locks a node.
func lockOf(pod *v1.Pod, now time.Time) string {
	return now.UTC().Format(time.RFC3339) + "," + pod.Namespace + "," + pod.Name
}

// readLock reads the lock of a node, false when there is none.
func readLock(node *v1.Node) (lock, bool) {
	value, ok := node.Annotations[gpuview.HAMiLockKey]
	if !ok {
		return lock{}, false
	}
	since, owner, named := strings.Cut(value, ",")
	at, err := time.Parse(time.RFC3339, since)
	if err != nil {
		return lock{}, true
	}
	if !named {
		return lock{since: at}, true
	}
	namespace, name, ok := strings.Cut(owner, ",")
	if !ok || namespace == "" || name == "" || strings.Contains(name, ",") {
		return lock{}, true
	}
	return lock{since: at, namespace: namespace, pod: name}, true
}

// remaining is how long the lock still counts, 0 or less when it does not. A lock from further in the future than
// Expiry does not: a clock was wrong, and the node would be locked until that time.
func (l lock) remaining(now time.Time) time.Duration {
	if l.since.Sub(now) > Expiry {
		return 0
	}
	return l.since.Add(Expiry).Sub(now)
}

// served reports whether a pod no longer needs the lock that names it: it has ended, its containers run and have their
// devices, or it is bound to another node.
func served(pod *v1.Pod, node string) bool {
	return podview.Finished(pod) || pod.Status.Phase == v1.PodRunning || pod.Spec.NodeName != "" &&
		pod.Spec.NodeName != node
}
