package reservation

import (
	"time"

	"berth.dev/berth/pkg/gang"
)

// Start is when a gang starts.
type Start struct {
	Gang gang.ID
	At   time.Time
}

// Starts are the gangs that are told a start.
func (r *Reservations) Starts() []Start {
	if id, _ := r.Search.Turns.Current(); r.current.kept.Start.After(r.lookAt) {
		return []Start{{id, r.current.kept.Start}}
	}
	return nil
}
