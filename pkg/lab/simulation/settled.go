package simulation

import (
	"testing/synctest"
	"time"
)

// Patience is longer than the scheduler's own longest timer, a Permit wait.
const Patience = 16 * time.Minute

// Settled runs f on a virtual clock that shows start. The function that f is given returns when every goroutine has
// come to rest, so that all informers, plugins and preemptions have done what there is to do. f must stop the
// schedulers that it makes, use no context or channel from outside, and talk to no network.
func Settled(start time.Time, f func(settle func()) error) error {
	return Virtual(start, func() error {
		err := f(synctest.Wait)
		time.Sleep(Patience) //nolint:forbidigo // virtual time: lets what is under way run out
		return err
	})
}
