// Package tool_test tests rooms of the tool that link a scheduler, by what they hand out: one binary is linked for all
// of them.
package tool_test

import (
	"testing"

	"berth.dev/berth/test/harness/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }
