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

	"berth.dev/berth/pkg/cluster/inputs"
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

// Of takes a snapshot of a cluster into memory.
func Of(ctx context.Context, reader *inputs.Reader) (*Dump, error) {
	now := time.Now()
	header, err := headerOf(ctx, reader, now)
	d := &Dump{Header: header}
	if err != nil {
		return d, err
	}
	d.Taken = now
	d.LeftOut, err = reader.Collect(ctx, func(obj runtime.Object) error {
		d.Objects = append(d.Objects, obj)
		return nil
	})
	return d, err
}

// headerOf begins a dump of the cluster. It is the first request, and so the one that says that the cluster cannot be
// reached.
func headerOf(ctx context.Context, reader *inputs.Reader, now time.Time) (Header, error) {
	version, err := reader.Version(ctx)
	return Header{Format: Format, Version: Version, Taken: now.UTC().Truncate(time.Second), Kubernetes: version}, err
}

// TakeFile writes a dump of a cluster into a file. The file is replaced when the dump is complete, and before that, or
// if it never is, it stays as it was. With the names by which GPUs are known, the names of objects are hashed. A pipe
// or a device is written into as it is: a file must not take its place.
func TakeFile(ctx context.Context, reader *inputs.Reader, path string, hashed *gpuview.Keys) (Taken, error) {
	// Before there is a file of it: it may take long to learn that the cluster does not answer.
	header, err := headerOf(ctx, reader, time.Now())
	if err != nil {
		return Taken{}, err
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		file, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return Taken{}, fmt.Errorf("writing the dump: %w", err)
		}
		return writeFile(ctx, reader, header, file, hashed)
	}
	partial, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".partial-*")
	if err != nil {
		return Taken{}, fmt.Errorf("writing the dump: %w", err)
	}
	defer os.Remove(partial.Name()) //nolint:errcheck // gone already when the dump is complete
	taken, err := writeFile(ctx, reader, header, partial, hashed)
	if err != nil {
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

// writeFile writes a dump of a cluster into a file, and closes it.
func writeFile(ctx context.Context, reader *inputs.Reader, header Header, file *os.File, hashed *gpuview.Keys) (Taken,
	error) {
	taken, err := write(ctx, reader, header, file, hashed)
	return taken, errors.Join(err, file.Close())
}

// Take writes a dump of a cluster.
func Take(ctx context.Context, reader *inputs.Reader, out io.Writer, hashed *gpuview.Keys) (Taken, error) {
	header, err := headerOf(ctx, reader, time.Now())
	if err != nil {
		return Taken{}, err
	}
	return write(ctx, reader, header, out, hashed)
}

func write(ctx context.Context, reader *inputs.Reader, header Header, out io.Writer, hashed *gpuview.Keys) (taken Taken,
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
	taken.LeftOut, err = reader.Collect(ctx, func(obj runtime.Object) error {
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
