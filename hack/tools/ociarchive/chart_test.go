package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// packaged is a chart with these files.
func packaged(t *testing.T, files map[string]string) string {
	t.Helper()
	var content bytes.Buffer
	zip := gzip.NewWriter(&content)
	archive := tar.NewWriter(zip)
	for name, text := range files {
		if err := archive.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644,
			Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "chart.tgz")
	if err := os.WriteFile(file, content.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestAChartIsPackedAsHelmStoresIt(t *testing.T) {
	t.Parallel()
	chart := packaged(t, map[string]string{
		"it/Chart.yaml": "name: it\nversion: 1.2.3\ndescription: a chart\n", "it/charts/other/Chart.yaml": "name: other\n",
	})
	out := filepath.Join(t.TempDir(), "it.oci.tar")
	if err := run([]string{"--chart", chart, "--out", out}); err != nil {
		t.Fatal(err)
	}
	blobs := map[string][]byte{}
	file, err := os.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	for archive := tar.NewReader(file); ; {
		header, err := archive.Next()
		if err != nil {
			break
		}
		if blobs[header.Name], err = io.ReadAll(archive); err != nil {
			t.Fatal(err)
		}
	}
	blob := func(d v1.Descriptor) []byte { return blobs["blobs/sha256/"+d.Digest.Hex] }
	var index v1.IndexManifest
	if err := json.Unmarshal(blobs["index.json"], &index); err != nil || len(index.Manifests) != 1 {
		t.Fatalf("index %s: %v", blobs["index.json"], err)
	}
	if got := index.Manifests[0].Annotations["org.opencontainers.image.ref.name"]; got != "it:1.2.3" {
		t.Errorf("the archive is named %q, want it:1.2.3", got)
	}
	var manifest v1.Manifest
	if err := json.Unmarshal(blob(index.Manifests[0]), &manifest); err != nil {
		t.Fatal(err)
	}
	var metadata map[string]string
	if err := json.Unmarshal(blob(manifest.Config), &metadata); err != nil || metadata["description"] != "a chart" {
		t.Errorf("the metadata is %v (error %v), want that of the chart", metadata, err)
	}
	content, err := os.ReadFile(chart)
	if err != nil {
		t.Fatal(err)
	}
	if len(manifest.Layers) != 1 || !bytes.Equal(blob(manifest.Layers[0]), content) {
		t.Error("the layer is not the chart")
	}
	if manifest.Config.MediaType != chartConfig || manifest.Layers[0].MediaType != chartContent {
		t.Errorf("media types %s and %s", manifest.Config.MediaType, manifest.Layers[0].MediaType)
	}
}

func TestWhatIsNoChartIsRefused(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "it.oci.tar")
	for file, want := range map[string]string{packaged(t, map[string]string{"it/values.yaml": ""}): "it has no Chart.yaml",
		"/absent": "no such file"} {
		if err := run([]string{"--chart", file, "--out", out}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

func TestAnImageHasTheLicenses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"it", "LICENSE", "THIRD_PARTY_LICENSES"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := request{name: "it", base: scratch, licenses: []string{filepath.Join(dir, "LICENSE"),
		filepath.Join(dir, "THIRD_PARTY_LICENSES")}}
	image, err := r.image(v1.Platform{OS: "linux", Architecture: "amd64"}, filepath.Join(dir, "it"))
	if err != nil {
		t.Fatal(err)
	}
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for archive := tar.NewReader(content); ; {
		header, err := archive.Next()
		if err != nil {
			break
		}
		files = append(files, header.Name)
	}
	if want := []string{"it", "licenses/LICENSE", "licenses/THIRD_PARTY_LICENSES"}; !slices.Equal(files, want) {
		t.Errorf("files %q, want %q", files, want)
	}
}
