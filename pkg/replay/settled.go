package replay

import (
	"testing/synctest"
	"time"
)

// Settled runs f on a virtual clock that shows start. The function that f is given returns when every goroutine has come to rest,
// so that all informers, plugins and preemptions have done what there is to do. f must stop the schedulers that it makes, use no
// context or channel from outside, and talk to no network.
func Settled(start time.Time, f func(settle func()) error) error {
	return inBubble(start, func() error {
		err := f(synctest.Wait)
		time.Sleep(patience) //nolint:forbidigo // virtual time: lets what is under way run out
		return err
	})
}
