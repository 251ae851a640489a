package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"sigs.k8s.io/yaml"
)

// The media types of Helm's charts in registries.
const (
	chartConfig  types.MediaType = "application/vnd.cncf.helm.config.v1+json"
	chartContent types.MediaType = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
)

// packChart packs a chart as helm push stores it in a registry.
func packChart(chart, out string) error {
	content, err := os.ReadFile(chart)
	if err != nil {
		return err
	}
	metadata, err := metadataOf(content)
	if err != nil {
		return fmt.Errorf("reading %s: %w", chart, err)
	}
	config, err := json.Marshal(metadata)
	if err != nil {
		return err
	}
	blobs := [][]byte{content, config}
	manifest := &v1.Manifest{SchemaVersion: 2, MediaType: types.OCIManifestSchema1, Annotations: map[string]string{}}
	manifest.Config, manifest.Layers = describe(chartConfig, config), []v1.Descriptor{describe(chartContent, content)}
	for key, field := range map[string]string{"title": "name", "version": "version", "description": "description"} {
		if value, ok := metadata[field].(string); ok {
			manifest.Annotations["org.opencontainers.image."+key] = value
		}
	}
	encoded, err := json.Marshal(manifest)
	if err != nil {
		return err
	}
	root := describe(types.OCIManifestSchema1, encoded)
	name := fmt.Sprintf("%v:%v", metadata["name"], metadata["version"])
	root.Annotations = map[string]string{"org.opencontainers.image.ref.name": name}
	return write(out, name, root.Digest, func(path layout.Path) error {
		for _, blob := range append(blobs, encoded) {
			hash := describe("", blob).Digest
			if err := path.WriteBlob(hash, io.NopCloser(bytes.NewReader(blob))); err != nil {
				return err
			}
		}
		return path.AppendDescriptor(root)
	})
}

func describe(kind types.MediaType, content []byte) v1.Descriptor {
	hash, size, _ := v1.SHA256(bytes.NewReader(content)) // a slice can always be read
	return v1.Descriptor{MediaType: kind, Size: size, Digest: hash}
}

// metadataOf is the content of Chart.yaml.
func metadataOf(chart []byte) (map[string]any, error) {
	unzipped, err := gzip.NewReader(bytes.NewReader(chart))
	if err != nil {
		return nil, err
	}
	for archive := tar.NewReader(unzipped); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil, errors.New("it has no Chart.yaml in its folder")
		}
		if err != nil {
			return nil, err
		}
		if ok, err := path.Match("*/Chart.yaml", header.Name); err != nil || !ok {
			continue
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			return nil, err
		}
		var metadata map[string]any
		return metadata, yaml.Unmarshal(content, &metadata)
	}
}
