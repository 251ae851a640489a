package dump

import (
	"testing"

	"berth.dev/berth/pkg/leaktest"
)

func TestMain(m *testing.M) {
	leaktest.Main(m)
}
