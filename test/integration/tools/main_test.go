// Package tools_test runs Berth's commands on real control planes, with a real Prometheus and in a real browser. The
// commands are processes of bin, as users have them.
package tools_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"berth.dev/berth/test/harness/box"
	"berth.dev/berth/test/harness/leak"
	"berth.dev/berth/test/harness/require"
)

func TestMain(m *testing.M) { leak.Main(m, box.Lasting()...) }

// berth runs a command of bin/berth and returns its exit status and what it prints.
func berth(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	return run(t, "berth", args...)
}

// run runs a command of bin.
func run(t *testing.T, name string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, said bytes.Buffer
	cmd := exec.CommandContext(t.Context(), box.Binary(t, name), args...)
	cmd.Stdout, cmd.Stderr = &out, &said
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), said.String()
}

// mustBerth runs a command of bin/berth that has to succeed, and returns what it prints.
func mustBerth(t *testing.T, args ...string) string {
	t.Helper()
	status, out, said := berth(t, args...)
	if status != 0 {
		t.Fatalf("berth %s: exit status %d: %s", strings.Join(args, " "), status, said)
	}
	return out
}

// manifests is the folder of the manifests.
func manifests(t *testing.T) string {
	t.Helper()
	return filepath.Join(box.Root(t), "manifests")
}

// readManifest reads a file of the manifests.
func readManifest(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(manifests(t), path))
	require.NoError(t, err)
	return string(content)
}

// write writes a file of the test's.
func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}
