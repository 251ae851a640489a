package coscheduling

import (
	"sync"

	v1 "k8s.io/api/core/v1"
	apitypes "k8s.io/apimachinery/pkg/types"
)

// twice holds the pods that are in a native group and in a gang, as long as they exist, and which of them have yet to be told.
type twice struct {
	mu      sync.Mutex
	known   map[apitypes.UID]bool
	pending []*v1.Pod
}

// note has the pod told, once.
func (t *twice) note(pod *v1.Pod) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known[pod.UID] {
		return
	}
	if t.known == nil {
		t.known = map[apitypes.UID]bool{}
	}
	t.known[pod.UID] = true
	t.pending = append(t.pending, pod)
}

// untold returns the pods that exist and have to be told now.
func (t *twice) untold() []*v1.Pod {
	t.mu.Lock()
	defer t.mu.Unlock()
	var pods []*v1.Pod
	for _, pod := range t.pending {
		if t.known[pod.UID] {
			pods = append(pods, pod)
		}
	}
	t.pending = nil
	return pods
}

func (t *twice) forget(uid apitypes.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.known, uid)
}
