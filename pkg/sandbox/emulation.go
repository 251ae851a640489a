package sandbox

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/version"
	baseversion "k8s.io/component-base/version"
)

const (
	// emulatedMinors is how many minor versions back a component can emulate.
	emulatedMinors = 3
	// versionTimeout bounds how long an executable may take to print its version.
	versionTimeout = 30 * time.Second
)

// EmulationFor returns the minor version that the other components have to emulate, because none may be newer than the
// API server at path. It is empty if they need not emulate one.
func EmulationFor(ctx context.Context, path string) (string, error) {
	if path == "" {
		return "", nil
	}
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("asking %s for its version: %w", path, err)
	}
	// The version that the build stamped may be missing.
	return emulation(path, string(out), version.MustParse(baseversion.DefaultKubeBinaryVersion))
}

// emulation compares the output of the API server's --version with our version.
func emulation(path, printed string, ours *version.Version) (string, error) {
	theirs, err := version.Parse(strings.TrimPrefix(strings.TrimSpace(printed), "Kubernetes "))
	if err != nil {
		return "", fmt.Errorf("API server %s: --version prints %q; must be Kubernetes and its version", path, printed)
	}
	oldest := ours.SubtractMinor(emulatedMinors)
	if theirs.Major() != ours.Major() || theirs.Minor() < oldest.Minor() || theirs.Minor() > ours.Minor() {
		return "", fmt.Errorf("API server %s: its version is %d.%d; must be %d.%d to %d.%d", path,
			theirs.Major(), theirs.Minor(), oldest.Major(), oldest.Minor(), ours.Major(), ours.Minor())
	}
	if theirs.Minor() == ours.Minor() {
		return "", nil
	}
	return fmt.Sprintf("%d.%d", theirs.Major(), theirs.Minor()), nil
}
