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

// Virtual runs f on a virtual clock. Every goroutine, timer, ticker and deadline that f starts, in whatever package,
// sees a clock that does not advance while anything runs and jumps to the next timer when everything waits: the
// scheduler's back-off, a plugin's Permit timeout and a price window all happen at their time, and a week passes in
// minutes. It is the bubble of the standard library's testing/synctest, the only virtual clock that reaches timers in
// code that does not take a clock as an argument; the bare testing.T serves as a handle and never runs a test. f must
// stop the schedulers that it starts, use no context or channel from outside, and talk to no network; what is under way
// then has Patience to run out.
func Virtual(start time.Time, f func() error) (err error) {
	prepareProcess.Do(func() {
		// The goroutine that receives signals is started by the first Notify of the process. It must not be one inside a
		// bubble (the scheduler's cache debugger has one): it never blocks in a way that lets a virtual clock advance.
		c := make(chan os.Signal, 1)
		signal.Notify(c, syscall.SIGURG)
		signal.Stop(c)
		// The stock handler sleeps until a millisecond after the last error, and the two clocks are years apart.
		//nolint:reassign // the list is the package's own way to set its handlers
		utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{logUnexpected}
		// Each plugin counts each node that it looks at, on a counter for which the processors contend and which is not
		// read here. One that is not registered counts nothing.
		schedulermetrics.Register()
		schedulermetrics.PluginEvaluationTotal = metrics.NewCounterVec(&metrics.CounterOpts{}, nil)
	})
	defer func() {
		// What stops a simulation with an error may leave goroutines behind; then the error says more than they do.
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
