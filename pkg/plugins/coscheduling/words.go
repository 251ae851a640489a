package coscheduling

import (
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"berth.dev/berth/pkg/gang"
)

// pluginWords holds what other plugins said when they turned a member away from the node that the plan gave it. No extension
// point tells; the member's condition does, a moment later.
type pluginWords struct {
	mu   sync.Mutex
	said map[gang.ID]string
}

// note remembers what the member's condition says, and reports whether that is news. The gang's own reasons are not.
func (w *pluginWords) note(id gang.ID, pod *v1.Pod) bool {
	_, c := podutil.GetPodCondition(&pod.Status, v1.PodScheduled)
	if c == nil || c.Status != v1.ConditionFalse || strings.Contains(c.Message, "gang "+id.String()) {
		return false
	}
	_, why, found := strings.Cut(c.Message, " nodes are available: ")
	if !found {
		return false
	}
	why = strings.TrimSuffix(strings.TrimLeft(why, "0123456789 "), ".")
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.said[id] == why {
		return false
	}
	if w.said == nil {
		w.said = map[gang.ID]string{}
	}
	w.said[id] = why
	return true
}

// about returns what was said last about members of the gang, or nothing.
func (w *pluginWords) about(id gang.ID) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.said[id]
}

func (w *pluginWords) forget(id gang.ID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.said, id)
}
