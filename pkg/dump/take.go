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
)

// Taken says what a dump has become.
type Taken struct {
	// Objects in it.
	Objects int
	// LeftOut are the kinds that are not in it, each with the reason.
	LeftOut []string
	// Bytes of the file.
	Bytes int64
}

// TakeFile writes a dump of a cluster into a file. The file is replaced when the dump is complete, and before that, or if it
// never is, it stays as it was.
func TakeFile(ctx context.Context, collector *Collector, path string, hashNames bool) (Taken, error) {
	// Before there is a file of it: it may take long to learn that the cluster does not answer.
	header, err := collector.Header(ctx, time.Now())
	if err != nil {
		return Taken{}, err
	}
	partial, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".partial-*")
	if err != nil {
		return Taken{}, fmt.Errorf("writing the dump: %w", err)
	}
	defer os.Remove(partial.Name()) //nolint:errcheck // gone already when the dump is complete
	taken, err := write(ctx, collector, header, partial, hashNames)
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

// Take writes a dump of a cluster.
func Take(ctx context.Context, collector *Collector, out io.Writer, hashNames bool) (Taken, error) {
	header, err := collector.Header(ctx, time.Now())
	if err != nil {
		return Taken{}, err
	}
	return write(ctx, collector, header, out, hashNames)
}

func write(ctx context.Context, collector *Collector, header Header, out io.Writer, hashNames bool) (taken Taken, err error) {
	header.NamesHashed = hashNames
	writer, err := NewWriter(out, header)
	if err != nil {
		return taken, err
	}
	add := writer.Add
	if hashNames {
		key := make([]byte, 32)
		if _, err := rand.Read(key); err != nil {
			return taken, fmt.Errorf("making a key: %w", err)
		}
		hasher := NewNameHasher(key)
		add = func(obj runtime.Object) error {
			hashed, err := hasher.Hash(obj)
			if err != nil {
				return err
			}
			return writer.Add(hashed)
		}
	}
	taken.LeftOut, err = collector.Collect(ctx, func(obj runtime.Object) error {
		taken.Objects++
		return add(obj)
	})
	if err != nil {
		return taken, err
	}
	return taken, writer.Close(taken.LeftOut)
}
