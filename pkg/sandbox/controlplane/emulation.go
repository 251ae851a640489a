package controlplane

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
	// emulationFlag is the flag of every component that makes it behave like an older minor version.
	emulationFlag = "--emulated-version="
	// emulatedMinors is how many minors back a component can go.
	emulatedMinors = 3
	// versionTimeout bounds how long an executable may take to print its version.
	versionTimeout = 30 * time.Second
)

// emulationFor returns the minor version that the other components must emulate beside the API server at path, because
// none may be newer than the API server. It is empty if they need not, as beside the built-in one.
func emulationFor(ctx context.Context, path string) (string, error) {
	if path == "" {
		return "", nil
	}
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("asking %s for its version: %w", path, err)
	}
	// Not what the build stamped: a binary that was built without a version is of this one all the same.
	return emulation(path, string(out), version.MustParse(baseversion.DefaultKubeBinaryVersion))
}

// emulation decides by what the API server's --version prints.
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
