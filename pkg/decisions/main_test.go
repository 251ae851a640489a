package decisions

import (
	"testing"

	"berth.dev/berth/pkg/leaktest"
	"berth.dev/berth/pkg/sandbox/sandboxtest"
)

func TestMain(m *testing.M) {
	leaktest.Main(m, sandboxtest.Lasting())
}
