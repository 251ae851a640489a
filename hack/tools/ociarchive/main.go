// Command ociarchive packs one static binary for several architectures, or with --chart a packaged Helm chart, into an
// OCI archive, without a container engine. The bytes depend on its input alone, so the same commit gives the same
// digest.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// scratch is the base without any file, as in a Dockerfile.
const scratch = "scratch"

// request is what the command line asks for.
type request struct {
	name, description, version, revision string
	created                              time.Time
	base, user, out                      string
	// licenses are files for the folder /licenses.
	licenses []string
	// binaries are ARCHITECTURE=FILE.
	binaries []string
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "ociarchive:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	var r request
	var created, chart string
	flags := flag.NewFlagSet("ociarchive", flag.ContinueOnError)
	flags.StringVar(&r.name, "name", "", "name of the image, and of its binary in /")
	flags.StringVar(&r.description, "description", "", "one line about the image")
	flags.StringVar(&r.version, "version", "", "version of the image")
	flags.StringVar(&r.revision, "revision", "", "commit of the sources")
	flags.StringVar(&created, "created", "", "time of the commit (RFC 3339)")
	flags.StringVar(&r.base, "base", scratch, "base image: scratch, or a reference that is pulled from its registry")
	flags.StringVar(&r.user, "user", "", "user and group as numbers; empty for the user of the base")
	flags.StringVar(&r.out, "out", "", "archive to write")
	flags.StringVar(&chart, "chart", "",
		"packaged chart, instead of binaries; its name and version are those of the archive")
	flags.Func("license", "file for the folder /licenses of the image; may be given more than once",
		func(file string) error {
			r.licenses = append(r.licenses, file)
			return nil
		})
	if err := flags.Parse(args); err != nil {
		return err
	}
	r.binaries = flags.Args()
	if chart != "" && r.out != "" && len(r.binaries) == 0 {
		return packChart(chart, r.out)
	}
	if r.name == "" || r.out == "" || len(r.binaries) == 0 {
		return errors.New(
			"usage: ociarchive --name NAME --out FILE [flags] ARCHITECTURE=BINARY ..., or ociarchive --chart FILE --out FILE")
	}
	var err error
	if r.created, err = time.Parse(time.RFC3339, created); err != nil {
		return fmt.Errorf("reading --created: %w", err)
	}
	index, err := r.index()
	if err != nil {
		return err
	}
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	name := r.name + ":" + r.version
	return write(r.out, name, digest, func(path layout.Path) error {
		annotation := map[string]string{"org.opencontainers.image.ref.name": name}
		return path.AppendIndex(index, layout.WithAnnotations(annotation))
	})
}

// index holds one image for each architecture.
func (r request) index() (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, argument := range r.binaries {
		architecture, binary, ok := strings.Cut(argument, "=")
		if !ok {
			return nil, fmt.Errorf("argument %q: must be ARCHITECTURE=BINARY", argument)
		}
		platform := v1.Platform{OS: "linux", Architecture: architecture}
		image, err := r.image(platform, binary)
		if err != nil {
			return nil, fmt.Errorf("packing %s for %s: %w", r.name, architecture, err)
		}
		index = mutate.AppendManifests(index,
			mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &platform}})
	}
	return index, nil
}

func (r request) image(platform v1.Platform, binary string) (v1.Image, error) {
	base, err := fetch(r.base, platform)
	if err != nil {
		return nil, err
	}
	files := []file{{path: r.name, from: binary, mode: 0o755}}
	for _, license := range r.licenses {
		files = append(files, file{path: "licenses/" + filepath.Base(license), from: license, mode: 0o644})
	}
	layer, err := layerOf(files)
	if err != nil {
		return nil, err
	}
	image, err := mutate.Append(base, mutate.Addendum{
		Layer: layer, MediaType: types.OCILayer,
		History: v1.History{Created: v1.Time{Time: r.created}, CreatedBy: "make dist"},
	})
	if err != nil {
		return nil, fmt.Errorf("adding the binary: %w", err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("reading the configuration: %w", err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = platform.OS, platform.Architecture
	config.Created = v1.Time{Time: r.created}
	config.Config.Entrypoint, config.Config.Cmd = []string{"/" + r.name}, nil
	if r.user != "" {
		config.Config.User = r.user
	}
	config.Config.Labels = map[string]string{
		"org.opencontainers.image.title":       r.name,
		"org.opencontainers.image.description": r.description,
		"org.opencontainers.image.vendor":      "Berth",
		"org.opencontainers.image.licenses":    "Apache-2.0",
		"org.opencontainers.image.version":     r.version,
		"org.opencontainers.image.revision":    r.revision,
		"org.opencontainers.image.created":     r.created.UTC().Format(time.RFC3339),
	}
	return mutate.ConfigFile(image, config)
}

// write makes an archive of the layout that the specification of OCI images describes, and prints name and digest.
func write(out, name string, digest v1.Hash, fill func(layout.Path) error) (err error) {
	dir, err := os.MkdirTemp("", "ociarchive")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return fmt.Errorf("writing the layout: %w", err)
	}
	if err := fill(path); err != nil {
		return fmt.Errorf("filling the layout: %w", err)
	}
	var files []file
	err = filepath.WalkDir(dir, func(from string, entry os.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			var name string
			name, err = filepath.Rel(dir, from)
			files = append(files, file{path: filepath.ToSlash(name), from: from, mode: 0o644})
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("listing the layout: %w", err)
	}
	archive, err := os.Create(out)
	if err != nil {
		return err
	}
	if err := errors.Join(writeTar(archive, files), archive.Close()); err != nil {
		return fmt.Errorf("writing %s: %w", out, err)
	}
	fmt.Println(name, digest)
	return nil
}
