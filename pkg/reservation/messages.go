package reservation

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gang"
)

// tellEvery is how often, at the most, something else is said of a gang whose nodes stay the same.
const tellEvery = 30 * time.Second

// messages are about gangs that wait: what is kept for them, and when they are expected to start. The loop sets them,
// and the writer of statuses reads them.
type messages struct {
	mu   sync.Mutex
	said map[gang.ID]said
}

// said is what is said of a gang.
type said struct {
	message string
	nodes   []string
	start   *schedulingv1alpha1.PodGroupEstimatedStart
	at      time.Time
}

// set reports whether that is news. The zero value ends what was said of the gang.
func (m *messages) set(id gang.ID, next said) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	before, known := m.said[id]
	same := slices.Equal(before.nodes, next.nodes)
	if same && before.message == next.message && equality.Semantic.DeepEqual(before.start, next.start) ||
		known && same && next.start != nil && next.at.Sub(before.at) < tellEvery {
		return false
	}
	if m.said == nil {
		m.said = map[gang.ID]said{}
	}
	if m.said[id] = next; next.message == "" && next.start == nil {
		delete(m.said, id)
	}
	return true
}

// gangs are those with a message.
func (m *messages) gangs() []gang.ID {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.SortedFunc(maps.Keys(m.said), gang.ID.Compare)
}

// Of returns what is said of the gang: what is kept for it, on which nodes, and when it is expected to start.
func (m *messages) Of(id gang.ID) (message string, nodes []string, start *schedulingv1alpha1.PodGroupEstimatedStart) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.said[id]
	return s.message, s.nodes, s.start
}
