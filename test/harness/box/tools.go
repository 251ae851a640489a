package box

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"berth.dev/berth/test/harness/require"
)

// Root is the folder of the repository, which the test runs in or below.
func Root(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	require.NoError(t, err)
	for {
		if _, err := os.Stat(filepath.Join(dir, "Dockerfile")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("the test does not run in the repository")
		}
		dir = filepath.Dir(dir)
	}
}

// Tool is the path of a program that `make test-real` builds. Tests do not depend on the kubectl or helm that a machine
// has.
func Tool(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(Root(t), "bin", "tools", name)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%s is missing: run make bin/tools/%s", path, name)
	}
	return path
}

// Installed is the path of a program of the machine, which a package of Debian and Ubuntu has.
func Installed(t *testing.T, program, debianPackage string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Fatalf("%s is missing: install the package %s", program, debianPackage)
	}
	return path
}

// Binary is the path of a command of Berth that `make build` builds: "berth", "berth-scheduler" and so on.
func Binary(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(Root(t), "bin", name)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%s is missing: run make build", path)
	}
	return path
}
