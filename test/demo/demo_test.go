// Package demo_test runs the demonstration, on a real control plane, as part of the tests that need nothing but Go.
package demo_test

import (
	"bufio"
	"bytes"
	"context"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"berth.dev/berth/test/harness/require"
)

// demoWithin ends a demonstration that hangs. It takes half a minute on two cores.
const demoWithin = 10 * time.Minute

// TestDemo runs the command that the README names first: it schedules the examples, checks where each pod went, and
// names commands to go on with, which all have to work.
func TestDemo(t *testing.T) {
	t.Parallel()
	binary, err := filepath.Abs("../../bin/berth")
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), demoWithin)
	defer cancel()
	dir := filepath.Join(t.TempDir(), "it's a demo")
	stop := exec.Command(binary, "down", "--dir", dir)
	t.Cleanup(func() { _ = stop.Run() })
	demo := exec.CommandContext(ctx, binary, "demo", "--keep", "--dir", dir)
	demo.Dir = "../.."
	output, err := demo.CombinedOutput()
	if err != nil {
		t.Fatalf("running %s: %v\n%s", strings.Join(demo.Args, " "), err, output)
	}
	t.Logf("%s", output)

	// The table is of the end: all that was created has come to where it should be.
	for _, want := range []string{
		`gang-too-large +Job +Pending +0/24`, `ml-training +Pod +Running +1/1`, `batch-processing +Job +Running +4/4`,
		`inference-shared +Deployment +Running +6/6`, `gang-training +Job +Running +8/8`,
	} {
		if !regexp.MustCompile(want).Match(output) {
			t.Errorf("no line has %q", want)
		}
	}

	said := map[string]string{
		"explain": "gang-too-large", "top": "gang-training", "dashboard": "http://127.0.0.1:", "down": "is gone",
	}
	for _, line := range strings.Split(string(output), "\n") {
		command, ok := strings.CutPrefix(line, "      "+binary+" ")
		if !ok {
			continue
		}
		name, _, _ := strings.Cut(command, " ")
		if want := said[name]; want == "" || !says(ctx, t, strings.TrimSpace(line), want) {
			t.Errorf("%q does not say %q", line, want)
		}
		delete(said, name)
	}
	if len(said) > 0 {
		t.Errorf("these are not named: %v", said)
	}
}

// says runs a line as a shell does until it says something, and whether it does.
func says(ctx context.Context, t *testing.T, line, want string) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, "sh", "-c", "exec "+line)
	output, err := command.StdoutPipe()
	require.NoError(t, err)
	command.Stderr = command.Stdout
	require.NoError(t, command.Start())
	var seen bytes.Buffer
	for lines := bufio.NewScanner(output); lines.Scan(); {
		seen.WriteString(lines.Text() + "\n")
		if strings.Contains(lines.Text(), want) && strings.Contains(line, " dashboard ") {
			cancel() // it goes on until it is interrupted
		}
	}
	if err := command.Wait(); err != nil && ctx.Err() == nil {
		t.Errorf("%s: %v", line, err)
	}
	if !strings.Contains(seen.String(), want) {
		t.Logf("%s", seen.String())
		return false
	}
	return true
}
