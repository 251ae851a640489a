package advise

import (
	"testing"

	"go.uber.org/goleak"

	"berth.dev/berth/pkg/sandbox/sandboxtest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, sandboxtest.Lasting())
}
