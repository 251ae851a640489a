package gang

import "time"

// Backoff bounds the pause between two attempts to plan a group that does not fit.
type Backoff struct{ Initial, Max time.Duration }

// after is the pause after so many failures in a row. The first costs nothing: a group is tried again only when
// something has changed, and the group that came first should not lose what became free to one that happens to be tried
// at that moment.
func (b Backoff) after(attempts int) time.Duration {
	if attempts < 2 {
		return 0
	}
	d := b.Initial
	for range attempts - 2 {
		if d >= b.Max {
			return b.Max
		}
		d *= 2
	}
	return min(d, b.Max)
}
