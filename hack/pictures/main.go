// Command pictures draws the pictures of the pages, so that they can be drawn again when something changes:
//
//	go run ./hack/pictures [NAME...]
//
// Without names it draws all of them. Screenshots and runs need bin/berth and bin/berth-scheduler; screenshots need
// chromium.
package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// folder is where the pictures are, from the top of the project.
const folder = "docs/images"

// largest is the size of a picture in bytes that a page can carry.
const largest = 250 << 10

// picture returns files by name. It may use a temporary folder.
type picture func(ctx context.Context, scratch string) (map[string][]byte, error)

var pictures = map[string]picture{
	"parts":     drawn("parts.svg", parts),
	"profiles":  drawn("profiles.svg", profiles),
	"rooms":     drawn("gang-rooms.svg", rooms),
	"gang":      gangPicture,
	"dashboard": dashboardPicture,
	"compare":   comparePicture,
}

// drawn is a picture that needs nothing but the program.
func drawn(name string, draw func() string) picture {
	return func(context.Context, string) (map[string][]byte, error) {
		return map[string][]byte{name: []byte(draw())}, nil
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1) //nolint:gocritic // the process ends, and with it what follows signals
	}
}

func run(ctx context.Context, names []string) (err error) {
	all := slices.Sorted(maps.Keys(pictures))
	if len(names) == 0 {
		names = all
	}
	for _, name := range names {
		if pictures[name] == nil {
			return fmt.Errorf("picture %q: must be one of %s", name, strings.Join(all, ", "))
		}
	}
	scratch, err := os.MkdirTemp("", "berth-pictures-")
	if err != nil {
		return fmt.Errorf("making a temporary folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	for _, name := range names {
		files, err := pictures[name](ctx, scratch)
		if err != nil {
			return fmt.Errorf("drawing %s: %w", name, err)
		}
		for _, file := range slices.Sorted(maps.Keys(files)) {
			if len(files[file]) > largest {
				return fmt.Errorf("drawing %s: %s has %d bytes; must be at most %d", name, file, len(files[file]), largest)
			}
			path := filepath.Join(folder, file)
			if err := os.WriteFile(path, files[file], 0o644); err != nil { //nolint:gosec // the pages are public
				return fmt.Errorf("writing a picture: %w", err)
			}
			fmt.Fprintln(os.Stdout, path)
		}
	}
	return nil
}
