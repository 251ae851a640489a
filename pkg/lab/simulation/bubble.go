package simulation

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/component-base/metrics"
	"k8s.io/klog/v2"
	schedulermetrics "k8s.io/kubernetes/pkg/scheduler/metrics"
)

// Patience is longer than the scheduler's own longest timer, a Permit wait.
const Patience = 16 * time.Minute

var prepareProcess sync.Once

// Virtual runs f on a virtual clock, which begins at start. For every goroutine, timer and deadline that f starts, the
// clock does not advance while anything runs, and jumps to the next timer when all goroutines wait. So back-off, Permit
// timeouts and price windows happen at their time, and a week passes in minutes. It uses testing/synctest, the only
// virtual clock for code that does not take a clock as an argument; the testing.T is never used to run a test. f must
// stop the schedulers that it starts, use no context or channel from outside, and use no network. Goroutines that f
// leaves behind have Patience to end.
func Virtual(start time.Time, f func() error) (err error) {
	prepareProcess.Do(func() {
		// The first Notify of the process starts the goroutine that receives signals. It must not be started inside a bubble,
		// where the scheduler's cache debugger would do it: it never blocks in a way that lets a virtual clock advance.
		c := make(chan os.Signal, 1)
		signal.Notify(c, syscall.SIGURG)
		signal.Stop(c)
		// The default handler sleeps until a millisecond after the last error, and the two clocks differ by years.
		//nolint:reassign // the list is the package's own way to set its handlers
		utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{logUnexpected}
		// The counter of evaluated nodes is contended, and not read here. A counter that is not registered counts nothing.
		schedulermetrics.Register()
		schedulermetrics.PluginEvaluationTotal = metrics.NewCounterVec(&metrics.CounterOpts{}, nil)
	})
	defer func() {
		// A failed simulation may leave goroutines behind. Then its own error is more useful.
		if r := recover(); r != nil && err == nil {
			err = fmt.Errorf("stopping the scheduler: %v", r)
		}
	}()
	synctest.Test(new(testing.T), func(*testing.T) {
		defer func() {
			if r := recover(); r != nil {
				err = fmt.Errorf("simulating: %v\n%s", r, debug.Stack())
			}
		}()
		//nolint:forbidigo // this sets the virtual clock, and does not wait
		time.Sleep(time.Until(start))
		err = f()
		time.Sleep(Patience) //nolint:forbidigo // virtual time
	})
	return err
}

func logUnexpected(_ context.Context, err error, msg string, keysAndValues ...any) {
	klog.Background().V(2).Info("Unexpected: "+msg, append([]any{"err", err}, keysAndValues...)...)
}
