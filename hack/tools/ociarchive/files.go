package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

type file struct {
	path, from string
	mode       int64
}

// fetch returns the base for a platform. A tag may move, so only a digest or scratch gives the same image twice.
func fetch(base string, platform v1.Platform) (v1.Image, error) {
	if base == scratch {
		image := mutate.MediaType(empty.Image, types.OCIManifestSchema1)
		return mutate.ConfigMediaType(image, types.OCIConfigJSON), nil
	}
	reference, err := name.ParseReference(base)
	if err != nil {
		return nil, fmt.Errorf("reading --base: %w", err)
	}
	image, err := remote.Image(reference, remote.WithPlatform(platform))
	if err != nil {
		return nil, fmt.Errorf(
			"pulling the base image %s (another one, from a registry that can be reached, does as well): %w",
			base, err)
	}
	return image, nil
}

func layerOf(files []file) (v1.Layer, error) {
	var content bytes.Buffer
	if err := writeTar(&content, files); err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content.Bytes())), nil
	}, tarball.WithMediaType(types.OCILayer), tarball.WithCompressionLevel(gzip.BestCompression))
	if err != nil {
		return nil, fmt.Errorf("compressing the layer: %w", err)
	}
	return layer, nil
}

// writeTar writes files in the given order, owned by root and without a time: the same files give the same bytes.
func writeTar(to io.Writer, files []file) error {
	archive := tar.NewWriter(to)
	for _, f := range files {
		content, err := os.ReadFile(f.from)
		if err != nil {
			return err
		}
		header := &tar.Header{Typeflag: tar.TypeReg, Name: f.path, Mode: f.mode, Size: int64(len(content)),
			Format: tar.FormatUSTAR}
		if err := archive.WriteHeader(header); err != nil {
			return errors.Join(err, archive.Close())
		}
		if _, err := archive.Write(content); err != nil {
			return errors.Join(err, archive.Close())
		}
	}
	return archive.Close()
}
