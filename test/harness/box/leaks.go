package box

import "go.uber.org/goleak"

// Lasting is what tests with a sandbox leave behind. The thread that started the sandbox lasts as long as the process,
// because the kernel ends the sandbox with that thread. The goroutine of client-go that passes the changes of a watch
// on misses now and then that it is stopped: it is told without its lock, and waits for more.
func Lasting() []goleak.Option {
	return []goleak.Option{
		goleak.IgnoreTopFunction("berth.dev/berth/pkg/sandbox.startOnLastingThread.func1"),
		goleak.IgnoreAnyFunction("k8s.io/client-go/tools/watch.(*eventProcessor).takeBatch"),
	}
}
