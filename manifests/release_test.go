package manifests_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"berth.dev/berth/test/harness/require"
)

// found returns what the expression's group matches in the file.
func found(t *testing.T, path, expression string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	match := regexp.MustCompile(expression).FindSubmatch(text)
	if match == nil {
		t.Fatalf("%s has nothing that matches %s", path, expression)
	}
	return string(match[1])
}

// TestImagesHaveTheTagOfThisRelease fails for a manifest that names an image without a tag, or of another release.
func TestImagesHaveTheTagOfThisRelease(t *testing.T) {
	t.Parallel()
	version := found(t, "../Makefile", `(?m)^VERSION := (\S+)$`)
	for _, field := range []string{"version", "appVersion"} {
		if got := found(t, "../charts/berth/Chart.yaml", `(?m)^`+field+`: (\S+)$`); got != version {
			t.Errorf("%s of the chart is %s, want %s", field, got, version)
		}
	}
	image := regexp.MustCompile(`image: (berth-[a-z-]+)(\S*)`)
	seen := 0
	for _, pattern := range []string{"*/*.yaml", "../charts/berth/files/*.yaml"} {
		paths, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, path := range paths {
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			for _, match := range image.FindAllSubmatch(text, -1) {
				if seen++; string(match[2]) != ":"+version {
					t.Errorf("%s: the image is %s%s, want the tag %s", path, match[1], match[2], version)
				}
			}
		}
	}
	if seen < 5 {
		t.Errorf("found %d images, want one for each manifest that runs a command of Berth", seen)
	}
}

// TestImagesAreBuiltByThePinnedToolchain fails where the Dockerfile and go.mod disagree.
func TestImagesAreBuiltByThePinnedToolchain(t *testing.T) {
	t.Parallel()
	pinned := found(t, "../go.mod", `(?m)^toolchain go(\S+)$`)
	if image := found(t, "../Dockerfile", `(?m)^ARG GO_IMAGE=docker\.io/library/golang:([0-9.]+)-\S+$`); image != pinned {
		t.Errorf("the image of Go has %s, go.mod pins %s", image, pinned)
	}
}

// TestImagesAreBuiltFromImagesWithTheirRegistry fails for a short name, for which a builder may have no registry, and
// where the build cannot be told of a proxy for modules.
func TestImagesAreBuiltFromImagesWithTheirRegistry(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../Dockerfile")
	require.NoError(t, err)
	stages := map[string]bool{"scratch": true, "${GO_IMAGE}": true, "${GLIBC_IMAGE}": true}
	named := regexp.MustCompile(`(?m)^ARG \w+_IMAGE=(\S+)$|^FROM (?:--\S+ )?(\S+)(?: AS (\S+))?$`).FindAllStringSubmatch(string(text), -1)
	if len(named) < 6 {
		t.Fatalf("found %d names of images: %q", len(named), named)
	}
	for _, match := range named {
		image := match[1] + match[2]
		if host, _, found := strings.Cut(image, "/"); !stages[image] && (!found || !strings.Contains(host, ".")) {
			t.Errorf("the image %s has no registry", image)
		}
		stages[match[3]] = true
	}
	before, _, _ := strings.Cut(string(text), "RUN go mod download")
	for _, argument := range []string{"GOPROXY", "GOSUMDB"} {
		if _, build, _ := strings.Cut(before, "AS build"); !strings.Contains(build, "ARG "+argument+"\n") {
			t.Errorf("the build takes no %s before it downloads modules", argument)
		}
	}
}

// TestTheReleaseCallsTargetsThatExist fails for a target that has gone. It would be noticed only when a tag is pushed.
func TestTheReleaseCallsTargetsThatExist(t *testing.T) {
	t.Parallel()
	workflow, err := os.ReadFile("../.github/workflows/release.yaml")
	require.NoError(t, err)
	called := regexp.MustCompile(`(?m)^ +make (\S+)`).FindAllSubmatch(workflow, -1)
	if len(called) < 2 {
		t.Errorf("found %d calls of make, want those for the images and for the files", len(called))
	}
	for _, match := range called {
		found(t, "../Makefile", `(?m)^(`+regexp.QuoteMeta(string(match[1]))+`):`)
	}
}

// TestADistributionOfChangedFilesSaysSo runs the script up to where it would build.
func TestADistributionOfChangedFilesSaysSo(t *testing.T) {
	t.Parallel()
	for state, want := range map[string]bool{"dirty": true, "clean": false} {
		command := exec.CommandContext(t.Context(), "../hack/dist.sh", filepath.Join(t.TempDir(), "dist"))
		command.Env = append(os.Environ(), "VERSION=0", "COMMIT=abc", "BUILD_DATE=now", "LDFLAGS=-w", "TREE_STATE="+state,
			"ARCHITECTURES=none", "RELEASE_URL=https://example.com", "IMAGE=example.com/berth-scheduler:0")
		out, err := command.CombinedOutput()
		if err == nil {
			t.Error("it has built for an architecture that does not exist")
		}
		if said := strings.Contains(string(out), "is not that of commit abc"); said != want {
			t.Errorf("tree state %s: %s", state, out)
		}
	}
}
