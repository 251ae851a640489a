package coscheduling

import "berth.dev/berth/pkg/gang"

// noteMixed keeps on which models the gang is, for its PodGroup; empty if on one.
func (s *statusWriter) noteMixed(id gang.ID, on string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if on == "" {
		delete(s.mixed, id)
		return
	}
	s.mixed[id] = on
}
