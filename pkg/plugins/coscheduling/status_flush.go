package coscheduling

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"berth.dev/berth/pkg/gang"
)

const (
	// statusWriters bounds the gangs that are written at a time. Those that have been written for slowWrite do not count: what
	// they wait for is a namespace's webhook, which must not keep others waiting. statusWritersMost bounds them all.
	statusWriters     = 32
	statusWritersMost = 128
	slowWrite         = time.Second
	// writersOfOne bounds the gangs of one namespace. One to which nothing was written lately, or to which writes fail, has one.
	writersOfOne = 8
	// statusStarts bounds the gangs that begin to be written between two looks at what has changed, so that a crowd leaves the API
	// server time for others.
	statusStarts = 100
	// standing is how long a namespace counts as one to which writes succeed.
	standing = time.Minute
	// writeTimeout ends a request that the API server, or a webhook that it asks, does not answer.
	writeTimeout = 10 * time.Second
	// troublePause is the pause after a write to a namespace has failed, which doubles up to troublePauseMost.
	troublePause     = time.Second
	troublePauseMost = 30 * time.Second
)

// flush begins to write the gangs that changed.
func (s *statusWriter) flush(ctx context.Context) {
	now := time.Now()
	s.troubles.age(now)
	for _, id := range s.refusals.over(now) {
		s.mark(id)
	}
	for _, pod := range s.twice.untold() {
		s.recorder.WithLogger(klog.FromContext(ctx)).Eventf(pod, nil, v1.EventTypeWarning, "TwoGroups", "Scheduling",
			"the pod is in a native group by spec.schedulingGroup and in a gang by its labels or its owner: the native group alone counts")
	}
	s.start(ctx, s.due(now))
}

// start writes the gangs; when one is done, the next that is due takes its place.
func (s *statusWriter) start(ctx context.Context, ids []gang.ID) {
	for _, id := range ids {
		go func() {
			s.tryToWrite(ctx, id)
			s.written(id)
			if ctx.Err() == nil {
				s.start(ctx, s.begin(time.Now()))
			}
		}()
	}
}

func (s *statusWriter) tryToWrite(ctx context.Context, id gang.ID) {
	err := s.write(ctx, id, time.Now())
	if err == nil {
		s.troubles.succeed(id.Namespace, time.Now())
		return
	}
	if pause, first := s.troubles.fail(id.Namespace, time.Now()); first {
		klog.FromContext(ctx).Error(err, "Writing the state of gangs of a namespace failed, trying again", "gang", id, "pause", pause)
	}
	s.mark(id)
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

// due finds the gangs that are to be written now and takes those that can begin at once. First come those whose PodGroup was told
// longest ago what keeps them, last those of which only members are to be told.
func (s *statusWriter) due(now time.Time) []gang.ID {
	var due, young []gang.ID
	s.mu.Lock()
	for id, since := range s.dirty {
		switch age := now.Sub(since); {
		case age < statusDelay || now.Sub(s.wrote[id]) < statusPause || !s.writing[id].IsZero():
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
	slices.SortFunc(due, func(a, b gang.ID) int {
		if s.owed[a] != s.owed[b] {
			if s.owed[a] {
				return 1
			}
			return -1
		}
		return s.reworded[a].Compare(s.reworded[b])
	})
	s.queue, s.starts = inTurn(due), statusStarts
	s.mu.Unlock()
	return s.begin(now)
}

// begin takes the gangs of the queue that can begin to be written.
func (s *statusWriter) begin(now time.Time) []gang.ID {
	s.mu.Lock()
	defer s.mu.Unlock()
	most := statusWriters
	for _, began := range s.writing {
		if now.Sub(began) >= slowWrite {
			most++
		}
	}
	most = min(most, statusWritersMost)
	allowed := map[string]int{}
	var begun, left []gang.ID
	for i, id := range s.queue {
		if len(s.writing) >= most || s.starts == 0 {
			left = append(left, s.queue[i:]...)
			break
		}
		if _, asked := allowed[id.Namespace]; !asked {
			allowed[id.Namespace] = s.troubles.writers(id.Namespace, now)
		}
		if s.busy[id.Namespace] >= allowed[id.Namespace] {
			left = append(left, id)
			continue
		}
		delete(s.dirty, id)
		s.writing[id] = now
		s.busy[id.Namespace]++
		s.starts--
		begun = append(begun, id)
	}
	s.queue = left
	return begun
}

// inTurn orders the gangs so that each namespace has one before another has two.
func inTurn(ids []gang.ID) []gang.ID {
	turn, seen := make(map[gang.ID]int, len(ids)), map[string]int{}
	for _, id := range ids {
		turn[id] = seen[id.Namespace]
		seen[id.Namespace]++
	}
	slices.SortStableFunc(ids, func(a, b gang.ID) int { return turn[a] - turn[b] })
	return ids
}

// namespaceTroubles holds the namespaces to which writes fail, and those to which they succeed: only the former pause.
type namespaceTroubles struct {
	mu sync.Mutex
	by map[string]trouble
	// well holds when something was last written.
	well map[string]time.Time
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
	_, well := n.well[namespace]
	switch {
	case now.Before(t.until):
		return 0
	case known, !well:
		return 1
	default:
		return writersOfOne
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
	delete(n.well, namespace)
	return t.pause, true
}

// succeed ends the troubles of the namespace.
func (n *namespaceTroubles) succeed(namespace string, now time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.by, namespace)
	if n.well == nil {
		n.well = map[string]time.Time{}
	}
	n.well[namespace] = now
}

// age forgets the namespaces to which nothing was written lately, and the troubles that were over long ago.
func (n *namespaceTroubles) age(now time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	maps.DeleteFunc(n.well, func(_ string, at time.Time) bool { return now.Sub(at) > standing })
	maps.DeleteFunc(n.by, func(_ string, t trouble) bool { return now.Sub(t.until) > standing })
}
