package dump

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"berth.dev/berth/pkg/gpu/gpuview"
)

// Taken says what a dump has become.
type Taken struct {
	// Objects in it.
	Objects int
	// LeftOut are the kinds that are not in it, each with the reason.
	LeftOut []string
	// Bytes of the file, 0 if it is none.
	Bytes int64
}

// TakeFile writes a dump of a cluster into a file. The file is replaced when the dump is complete, and before that, or
// if it never is, it stays as it was. With the names by which GPUs are known, the names of objects are hashed. A pipe
// or a device is written into as it is: a file must not take its place.
func TakeFile(ctx context.Context, collector *Collector, path string, hashed *gpuview.Keys) (Taken, error) {
	// Before there is a file of it: it may take long to learn that the cluster does not answer.
	header, err := collector.Header(ctx, time.Now())
	if err != nil {
		return Taken{}, err
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return writeInto(ctx, collector, header, path, hashed)
	}
	partial, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".partial-*")
	if err != nil {
		return Taken{}, fmt.Errorf("writing the dump: %w", err)
	}
	defer os.Remove(partial.Name()) //nolint:errcheck // gone already when the dump is complete
	taken, err := write(ctx, collector, header, partial, hashed)
	if err = errors.Join(err, partial.Close()); err != nil {
		return taken, err
	}
	info, err := os.Stat(partial.Name())
	if err != nil {
		return taken, fmt.Errorf("reading back the dump: %w", err)
	}
	taken.Bytes = info.Size()
	if err := os.Rename(partial.Name(), path); err != nil {
		return taken, fmt.Errorf("writing the dump: %w", err)
	}
	return taken, nil
}

func writeInto(ctx context.Context, collector *Collector, header Header, path string, hashed *gpuview.Keys) (Taken,
	error) {
	into, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return Taken{}, fmt.Errorf("writing the dump: %w", err)
	}
	taken, err := write(ctx, collector, header, into, hashed)
	return taken, errors.Join(err, into.Close())
}

// Take writes a dump of a cluster.
func Take(ctx context.Context, collector *Collector, out io.Writer, hashed *gpuview.Keys) (Taken, error) {
	header, err := collector.Header(ctx, time.Now())
	if err != nil {
		return Taken{}, err
	}
	return write(ctx, collector, header, out, hashed)
}

func write(ctx context.Context, collector *Collector, header Header, out io.Writer, hashed *gpuview.Keys) (taken Taken,
	err error) {
	var hasher *NameHasher
	if hashed != nil {
		key := make([]byte, 32)
		if _, err := rand.Read(key); err != nil {
			return taken, fmt.Errorf("making a key: %w", err)
		}
		hasher, header.NamesHashed = NewNameHasher(key, hashed), true
	}
	writer, err := NewWriter(out, header)
	if err != nil {
		return taken, err
	}
	taken.LeftOut, err = collector.Collect(ctx, func(obj runtime.Object) error {
		taken.Objects++
		if hasher != nil {
			var err error
			if obj, err = hasher.Hash(obj); err != nil {
				return err
			}
		}
		return writer.Add(obj)
	})
	if err != nil {
		return taken, err
	}
	return taken, writer.Close(taken.LeftOut)
}
