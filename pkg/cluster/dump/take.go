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

// Taken describes a dump that was written.
type Taken struct {
	// Objects in it.
	Objects int
	// LeftOut are the kinds that are not in it, each with the reason.
	LeftOut []string
	// Bytes is the size of a regular file, else 0.
	Bytes int64
}

// Of takes a snapshot of a cluster into memory. With an error it returns what has been read so far.
func Of(ctx context.Context, reader *inputs.Reader) (*Dump, error) {
	d := &Dump{Header: Header{Format: Format, Version: Version, Taken: time.Now()}}
	var err error
	// This is the first request, so its error says that the cluster cannot be reached.
	if d.Kubernetes, err = reader.Version(ctx); err != nil {
		return d, err
	}
	d.LeftOut, err = reader.Collect(ctx, func(obj runtime.Object) error {
		d.Objects = append(d.Objects, obj)
		return nil
	})
	return d, err
}

// TakeFile writes a dump of a cluster to a file, as Take does. The file is replaced when the dump is complete, and is
// left as it was after an error. A pipe or a device is written to directly.
func TakeFile(ctx context.Context, reader *inputs.Reader, path string, hashed *gpuview.Keys) (Taken, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		file, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return Taken{}, fmt.Errorf("writing the dump: %w", err)
		}
		taken, err := Take(ctx, reader, file, hashed)
		return taken, errors.Join(err, file.Close())
	}
	partial, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".partial-*")
	if err != nil {
		return Taken{}, fmt.Errorf("writing the dump: %w", err)
	}
	defer os.Remove(partial.Name()) //nolint:errcheck // gone already when the dump is complete
	taken, err := Take(ctx, reader, partial, hashed)
	if err := errors.Join(err, partial.Close()); err != nil {
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

// Take writes a dump of a cluster. If hashed is not nil, the names of objects are hashed; hashed tells which labels
// describe GPUs.
func Take(ctx context.Context, reader *inputs.Reader, out io.Writer, hashed *gpuview.Keys) (Taken, error) {
	d, err := Of(ctx, reader)
	taken := Taken{Objects: len(d.Objects), LeftOut: d.LeftOut}
	if err == nil && hashed != nil {
		err = d.hashNames(hashed)
	}
	if err != nil {
		return taken, err
	}
	return taken, d.Write(out)
}

// hashNames hashes the names of the objects with a key that is not kept.
func (d *Dump) hashNames(keys *gpuview.Keys) error {
	key := make([]byte, 32)
	if _, err := rand.Read(key); err != nil {
		return fmt.Errorf("making a key: %w", err)
	}
	hasher := NewNameHasher(key, keys)
	d.NamesHashed = true
	for i, obj := range d.Objects {
		var err error
		if d.Objects[i], err = hasher.Hash(obj); err != nil {
			return err
		}
	}
	return nil
}
