package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// findUpstream returns the folder of the module of Kubernetes.
func findUpstream(ctx context.Context) (string, error) {
	out, err := goCommand(ctx, "list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes")
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(out), nil
}

// casesOf is the folder of scheduler_perf, whose cases name their templates by relative paths.
func casesOf(upstream string) string {
	return filepath.Join(upstream, "test", "integration", "scheduler_perf")
}

// starter is the file in which upstream's harness makes its scheduler.
const starter = "test/integration/util/util.go"

// prepareUpstream copies Kubernetes with one call more in its harness, which offers no other way to reach the scheduler
// before it runs: berth-scheduler is more than its plugins. It returns the go.mod to build with, which it writes to
// dir.
//
// The copy stays below .berth: at another place all of it would be compiled again.
func prepareUpstream(upstream, dir string) (modfile string, err error) {
	root, err := filepath.Abs(filepath.Join("..", "..", ".."))
	if err != nil {
		return "", fmt.Errorf("finding the project: %w", err)
	}
	files := filepath.Join(root, ".berth", "perf", filepath.Base(upstream))
	if err := copyOnce(upstream, files); err != nil {
		return "", fmt.Errorf("copying Kubernetes: %w", err)
	}
	text, err := os.ReadFile(filepath.Join(upstream, filepath.FromSlash(starter)))
	if err != nil {
		return "", fmt.Errorf("reading where the harness makes its scheduler: %w", err)
	}
	if text, err = withCall(text); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(files, filepath.FromSlash(starter)), text, 0o600); err != nil {
		return "", fmt.Errorf("writing where the harness makes its scheduler: %w", err)
	}
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		return "", fmt.Errorf("reading the module of the benchmark: %w", err)
	}
	sum, err := os.ReadFile("go.sum")
	if err != nil {
		return "", fmt.Errorf("reading the sums of the benchmark's modules: %w", err)
	}
	mod = bytes.Replace(mod, []byte("=> ../../.."), []byte("=> "+root), 1)
	mod = fmt.Appendf(mod, "\nreplace k8s.io/kubernetes => %s\n", files)
	modfile = filepath.Join(dir, "go.mod")
	if err := errors.Join(os.WriteFile(modfile, mod, 0o600),
		os.WriteFile(filepath.Join(dir, "go.sum"), sum, 0o600)); err != nil {
		return "", fmt.Errorf("writing the module to build with: %w", err)
	}
	return modfile, nil
}

// copyOnce copies a folder unless the copy is there. One that is cut off is not taken for a copy.
func copyOnce(from, to string) error {
	if _, err := os.Stat(to); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o750); err != nil {
		return err
	}
	half, err := os.MkdirTemp(filepath.Dir(to), "half")
	if err != nil {
		return err
	}
	defer os.RemoveAll(half)
	if err := os.CopyFS(filepath.Join(half, "copy"), os.DirFS(from)); err != nil {
		return err
	}
	return os.Rename(filepath.Join(half, "copy"), to)
}

// withCall adds the call of installed.Prepare to upstream's code.
func withCall(text []byte) ([]byte, error) {
	for _, change := range []struct{ at, add string }{
		{"import (\n", "\t\"berth.dev/berth/hack/bench/perf/installed\"\n"},
		{"\ttCtx.ExpectNoError(err, \"creating scheduler\")\n",
			"\ttCtx.ExpectNoError(installed.Prepare(sched), \"preparing the scheduler\")\n"},
	} {
		if n := bytes.Count(text, []byte(change.at)); n != 1 {
			return nil, fmt.Errorf("%s of Kubernetes has %q %d times, want once", starter, change.at, n)
		}
		text = bytes.Replace(text, []byte(change.at), []byte(change.at+change.add), 1)
	}
	return text, nil
}
