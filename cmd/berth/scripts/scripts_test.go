// Package scripts_test runs the built commands where they need no control plane.
package scripts_test

import (
	"testing"

	"berth.dev/berth/test/harness/scripts"
)

func TestScripts(t *testing.T) {
	t.Parallel()
	scripts.Run(t, "testdata", nil)
}
