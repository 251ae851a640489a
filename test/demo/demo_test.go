// Package demo_test runs the demonstration, on a real control plane, as part of the tests that need nothing but Go.
package demo_test

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// demoWithin ends a demonstration that hangs. It takes half a minute on two cores.
const demoWithin = 10 * time.Minute

// TestDemo runs the command that the README names first: it schedules the examples and checks where each pod went.
func TestDemo(t *testing.T) {
	t.Parallel()
	binary, err := filepath.Abs("../../bin/berth")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), demoWithin)
	defer cancel()
	demo := exec.CommandContext(ctx, binary, "demo", "--dir", filepath.Join(t.TempDir(), "demo"))
	demo.Dir = "../.."
	output, err := demo.CombinedOutput()
	if err != nil {
		t.Fatalf("running %s: %v\n%s", strings.Join(demo.Args, " "), err, output)
	}
	t.Logf("%s", output)
}
