package box

import "go.uber.org/goleak"

// Lasting is what a sandbox leaves behind on purpose: the thread that started it lasts as long as the process, because
// the kernel ends the sandbox with that thread.
func Lasting() goleak.Option {
	return goleak.IgnoreTopFunction("berth.dev/berth/pkg/sandbox.startOnLastingThread.func1")
}
