package sandbox

import (
	"testing"

	"go.uber.org/goleak"

	"berth.dev/berth/test/harness/leak"
)

func TestMain(m *testing.M) {
	// A sandbox that ends with its parent is started on a thread that lasts as long as the process: the kernel ends it with the thread.
	leak.Main(m, goleak.IgnoreTopFunction("berth.dev/berth/pkg/sandbox.startOnLastingThread.func1"))
}
