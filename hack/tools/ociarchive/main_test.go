package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

func TestTheSameInputGivesTheSameArchive(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	binary := filepath.Join(dir, "binary")
	if err := os.WriteFile(binary, []byte("not really"), 0o755); err != nil {
		t.Fatal(err)
	}
	var archives [][]byte
	for _, name := range []string{"one.oci.tar", "two.oci.tar"} {
		out := filepath.Join(dir, name)
		err := run([]string{"--name", "it", "--version", "1.2.3", "--created", "2026-01-02T03:04:05Z", "--user", "65532:65532", "--license", binary,
			"--out", out, "amd64=" + binary, "arm64=" + binary})
		if err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		archives = append(archives, content)
	}
	if !bytes.Equal(archives[0], archives[1]) {
		t.Error("the archives differ")
	}
}

func TestTheIndexNamesEveryArchitecture(t *testing.T) {
	t.Parallel()
	binary := filepath.Join(t.TempDir(), "binary")
	if err := os.WriteFile(binary, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	index, err := request{name: "it", base: scratch, binaries: []string{"amd64=" + binary, "arm64=" + binary}}.index()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := index.RawManifest()
	if err != nil {
		t.Fatal(err)
	}
	var manifest v1.IndexManifest
	if err := json.Unmarshal(raw, &manifest); err != nil {
		t.Fatal(err)
	}
	var platforms []string
	for _, image := range manifest.Manifests {
		platforms = append(platforms, image.Platform.String())
	}
	if got, want := strings.Join(platforms, " "), "linux/amd64 linux/arm64"; got != want {
		t.Errorf("platforms of the index: %s, want %s", got, want)
	}
}

func TestAWrongCommandLineNamesItsFault(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "it.oci.tar")
	for _, test := range []struct {
		name string
		args []string
		want string
	}{
		{"no binary", []string{"--name", "it", "--out", out}, "usage: "},
		{"a time that is none", []string{"--name", "it", "--out", out, "--created", "today", "amd64=x"}, "reading --created"},
		{"a binary without its architecture", []string{"--name", "it", "--out", out, "--created", "2026-01-02T03:04:05Z", "x"},
			`argument "x": must be ARCHITECTURE=BINARY`},
		{"a binary that is not there", []string{"--name", "it", "--out", out, "--created", "2026-01-02T03:04:05Z", "amd64=x"},
			"packing it for amd64"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			err := run(test.args)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
			if _, err := os.Stat(out); err == nil {
				t.Error("an archive was written all the same")
			}
		})
	}
}
