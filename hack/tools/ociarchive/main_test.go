package main

import (
	"bytes"
	"encoding/json"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
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
		err := run([]string{"--name", "it", "--version", "1.2.3", "--created", "2026-01-02T03:04:05Z", "--user",
			"65532:65532", "--license", binary,
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

// A base that is pulled has an image for each architecture: each gets the one of its own.
func TestEachArchitectureHasItsOwnBase(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	reference, err := name.ParseReference(strings.TrimPrefix(server.URL, "http://") + "/base:tag")
	if err != nil {
		t.Fatal(err)
	}
	bases, index := map[string]string{}, v1.ImageIndex(empty.Index)
	for _, architecture := range []string{"amd64", "arm64"} {
		base, err := random.Image(100, 1)
		if err != nil {
			t.Fatal(err)
		}
		layers, err := base.Layers()
		if err != nil {
			t.Fatal(err)
		}
		digest, err := layers[0].Digest()
		if err != nil {
			t.Fatal(err)
		}
		bases[architecture] = digest.String()
		platform := &v1.Platform{OS: "linux", Architecture: architecture,
			Variant: map[string]string{"arm64": "v8"}[architecture]}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: base, Descriptor: v1.Descriptor{Platform: platform}})
	}
	if err := remote.WriteIndex(reference, index); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(t.TempDir(), "binary")
	if err := os.WriteFile(binary, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	for architecture, base := range bases {
		r := request{name: "it", base: reference.String()}
		image, err := r.image(v1.Platform{OS: "linux", Architecture: architecture}, binary)
		if err != nil {
			t.Fatal(err)
		}
		manifest, err := image.Manifest()
		if err != nil {
			t.Fatal(err)
		}
		config, err := image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if got := manifest.Layers[0].Digest.String(); len(manifest.Layers) != 2 || got != base ||
			config.Architecture != architecture {
			t.Errorf("for %s, %d layers on %s for %s, want 2 on %s", architecture, len(manifest.Layers), got,
				config.Architecture, base)
		}
	}
	other := request{name: "it", base: reference.String(), binaries: []string{"s390x=" + binary}}
	if _, err := other.index(); err == nil {
		t.Error("an architecture that the base does not have was packed")
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
		{"a binary without its architecture", []string{"--name", "it", "--out", out, "--created", "2026-01-02T03:04:05Z",
			"x"},
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
