package coscheduling

import (
	"context"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gangview"
	"berth.dev/berth/pkg/informers"
	"berth.dev/berth/pkg/podgroup"
	"berth.dev/berth/pkg/wellknown"
	"berth.dev/berth/pkg/workview"
)

// told is what is said of gangs, and by whom.
type told struct {
	// leader tells whether this process schedules, status is the controller of PodGroups.
	leader informers.Leader
	status *podgroup.Controller
	owners *podgroup.Owners
	// recorder tells of what pods and PodGroups say wrongly.
	recorder events.EventRecorderLogger
	// messages are what other plugins say.
	messages pluginMessages
}

// doubt says of an object that has told of another checkpoint what is wrong with it, if anything is.
func (t *told) doubt(old, obj metav1.Object, about runtime.Object) {
	key := wellknown.LastCheckpointKey
	if old.GetAnnotations()[key] == obj.GetAnnotations()[key] || !t.leader.Leading() {
		return
	}
	if wrong := workview.Doubtful(obj, time.Now()); wrong != nil {
		t.recorder.Eventf(about, nil, v1.EventTypeWarning, "CheckpointIgnored", "Reading", "%s: %s", wrong.Error(),
			wrong.Effect)
	}
}

// foreign records once about a pod that it is in a group of another scheduler, and so in none here.
func (t *told) foreign(ctx context.Context, recorder events.EventRecorderLogger, pod *v1.Pod) {
	f, says := gangview.ForeignOf(pod)
	if !says || pod.Spec.SchedulingGroup != nil || !t.status.Pods.IsNews(pod, "ForeignGroup", f.String()) {
		return
	}
	recorder.WithLogger(klog.FromContext(ctx)).Eventf(pod, nil, v1.EventTypeWarning, "ForeignGroup", "Scheduling", "%s", f)
}

// pluginMessages holds the last message of another plugin about a member, by gang.
type pluginMessages struct {
	mu   sync.Mutex
	last map[gang.ID]pluginMessage
}

type pluginMessage struct {
	text string
	at   time.Time
}

// note remembers what was said, and reports whether that is news. Of what is said at one instant, by bindings that run
// at the same time, the first by the alphabet counts.
func (m *pluginMessages) note(id gang.ID, text string, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	before, known := m.last[id]
	if known && (before.text == text || before.at.Equal(now) && before.text < text) {
		return false
	}
	if m.last == nil {
		m.last = map[gang.ID]pluginMessage{}
	}
	m.last[id] = pluginMessage{text, now}
	return true
}

// about returns what was said last about members of the gang, or nothing.
func (m *pluginMessages) about(id gang.ID) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last[id].text
}

func (m *pluginMessages) forget(id gang.ID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.last, id)
}
