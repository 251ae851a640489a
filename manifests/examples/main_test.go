// Package examples_test runs the pages of the examples on a local control plane: their commands, as a reader would type them,
// and compares what they print with what the pages show.
package examples_test

import (
	"os"
	"path/filepath"
	"testing"

	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
)

// TestMain is kubectl when the test binary is called by that name, so that the pages do not depend on what is installed.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "kubectl" {
		if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
			_, _ = os.Stderr.WriteString(err.Error() + "\n")
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}
