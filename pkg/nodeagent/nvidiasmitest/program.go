// Package nvidiasmitest makes programs that stand in for nvidia-smi in tests.
package nvidiasmitest

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Program writes a script for sh as an executable of its own, named nvidia-smi, and returns its path.
func Program(t *testing.T, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "nvidia-smi")
	// A process that another test starts meanwhile would inherit the open file until it executes its program, and for
	// so long the kernel would refuse to execute this one: "text file busy".
	syscall.ForkLock.RLock()
	err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o700)
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
	return path
}
