package advise

import (
	"testing"

	"berth.dev/berth/pkg/leaktest"
	"berth.dev/berth/test/harness/box"
)

func TestMain(m *testing.M) {
	leaktest.Main(m, box.Lasting())
}
