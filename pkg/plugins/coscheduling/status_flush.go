package coscheduling

import (
	"context"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"berth.dev/berth/pkg/gang"
)

const (
	// statusWriters bounds the gangs that are written at a time, writersOfOne those of one namespace, so that a namespace whose
	// webhooks are slow does not keep others waiting. One to which writes fail has one.
	statusWriters = 32
	writersOfOne  = 8
	// writeTimeout ends a request that the API server, or a webhook that it asks, does not answer.
	writeTimeout = 10 * time.Second
	// troublePause is the pause after a write to a namespace has failed, which doubles up to troublePauseMost.
	troublePause     = time.Second
	troublePauseMost = 30 * time.Second
)

// flush begins to write the gangs that changed.
func (s *statusWriter) flush(ctx context.Context) {
	now := time.Now()
	for _, id := range s.refusals.over(now) {
		s.mark(id)
	}
	for _, id := range s.due(now) {
		go func() {
			defer s.written(id)
			if err := s.write(ctx, id, now); err != nil {
				if pause, first := s.troubles.fail(id.Namespace, time.Now()); first {
					klog.FromContext(ctx).Error(err, "Writing the state of gangs of a namespace failed, trying again", "gang", id, "pause", pause)
				}
				s.mark(id)
				return
			}
			s.troubles.succeed(id.Namespace)
		}()
	}
}

// written notes that the gang is not being written any more.
func (s *statusWriter) written(id gang.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.writing, id)
	if s.busy[id.Namespace]--; s.busy[id.Namespace] == 0 {
		delete(s.busy, id.Namespace)
	}
}

// due takes the gangs that are to be written now.
func (s *statusWriter) due(now time.Time) []gang.ID {
	var due, young []gang.ID
	s.mu.Lock()
	for id, since := range s.dirty {
		switch age := now.Sub(since); {
		case age < statusDelay || now.Sub(s.wrote[id]) < statusPause || s.writing[id]:
		case age < statusPatience:
			young = append(young, id)
		default:
			due = append(due, id)
		}
	}
	s.mu.Unlock()
	// The ledger tells of changes under its own lock, so it is not asked under ours.
	for _, id := range young {
		if v, known := s.ledger.View(id); !known || !v.Underway() {
			due = append(due, id)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var begun []gang.ID
	for _, id := range due {
		if len(s.writing) >= statusWriters {
			break
		}
		if s.busy[id.Namespace] >= s.troubles.writers(id.Namespace, now) {
			continue
		}
		delete(s.dirty, id)
		s.writing[id] = true
		s.busy[id.Namespace]++
		begun = append(begun, id)
	}
	return begun
}

// namespaceTroubles holds the namespaces to which writes fail: only theirs pause.
type namespaceTroubles struct {
	mu sync.Mutex
	by map[string]trouble
}

type trouble struct {
	pause time.Duration
	until time.Time
}

// writers is how many gangs of the namespace may be written at a time.
func (n *namespaceTroubles) writers(namespace string, now time.Time) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	t, known := n.by[namespace]
	switch {
	case !known:
		return writersOfOne
	case now.Before(t.until):
		return 0
	default:
		return 1
	}
}

// fail begins or lengthens the pause of the namespace, and reports whether it was not in one.
func (n *namespaceTroubles) fail(namespace string, now time.Time) (pause time.Duration, first bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	t := n.by[namespace]
	if now.Before(t.until) {
		return t.pause, false
	}
	t.pause = min(max(2*t.pause, troublePause), troublePauseMost)
	t.until = now.Add(t.pause)
	if n.by == nil {
		n.by = map[string]trouble{}
	}
	n.by[namespace] = t
	return t.pause, true
}

// succeed ends the troubles of the namespace.
func (n *namespaceTroubles) succeed(namespace string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.by, namespace)
}
