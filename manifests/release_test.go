package manifests_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// found returns what the expression's group matches in the file.
func found(t *testing.T, path, expression string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
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
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
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
	if image := found(t, "../Dockerfile", `(?m)^ARG GO_IMAGE=golang:([0-9.]+)-\S+$`); image != pinned {
		t.Errorf("the image of Go has %s, go.mod pins %s", image, pinned)
	}
}
