package extender

import (
	"testing"

	"go.uber.org/goleak"

	"berth.dev/berth/test/harness/leak"
)

func TestMain(m *testing.M) {
	leak.Main(m,
		// Certificates that are refused are never followed, and nothing else ends the queues that client-go makes for them.
		// The command ends then.
		goleak.IgnoreTopFunction("k8s.io/client-go/util/workqueue.(*Typed[...]).updateUnfinishedWorkLoop"),
		goleak.IgnoreTopFunction("k8s.io/client-go/util/workqueue.(*delayingType[...]).waitingLoop"))
}
