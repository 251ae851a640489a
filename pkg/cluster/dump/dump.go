package dump

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"berth.dev/berth/pkg/cluster/inputs"
)

// The first line of a dump says what it is.
const (
	// Format is the value of the header's format.
	Format = "berth-dump"
	// Version is the version that is written, and the only one that is read.
	Version = 1
)

// Dump is a snapshot of a cluster. Its file is gzip-compressed JSON lines: a header, one object a line, and a last line
// that counts them, so that a file that was cut off is never taken for a smaller cluster.
type Dump struct {
	Header
	// LeftOut says, a line each, which kinds are missing and why.
	LeftOut []string
	// Objects in the order of the file: typed for kinds of Kubernetes itself, *unstructured.Unstructured for others.
	Objects []runtime.Object
}

// Header is the first line of a dump.
type Header struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
	// Taken is when the snapshot was begun.
	Taken time.Time `json:"taken"`
	// Kubernetes is the version of the API server that it came from.
	Kubernetes string `json:"kubernetes,omitempty"`
	// NamesHashed says that names and unknown label values were replaced by keyed hashes.
	NamesHashed bool `json:"namesHashed,omitempty"`
}

// footer is the last line of a dump.
type footer struct {
	End     bool     `json:"end"`
	Objects int      `json:"objects"`
	LeftOut []string `json:"leftOut,omitempty"`
}

// Writer writes a dump object by object.
type Writer struct {
	compressed *gzip.Writer
	buffered   *bufio.Writer
	objects    int
}

// NewWriter begins a dump on w. It sets the format and the version of the header. The caller closes w after Close.
func NewWriter(w io.Writer, header Header) (*Writer, error) {
	header.Format, header.Version = Format, Version
	header.Taken = header.Taken.UTC().Truncate(time.Second)
	compressed := gzip.NewWriter(w)
	d := &Writer{compressed: compressed, buffered: bufio.NewWriterSize(compressed, 1<<16)}
	return d, d.line(header)
}

// Add writes one object of a kind that a dump holds.
func (d *Writer) Add(obj runtime.Object) error {
	gvk, err := inputs.KindOf(obj)
	if err != nil {
		return fmt.Errorf("writing the dump: %w", err)
	}
	if obj.GetObjectKind().GroupVersionKind().Empty() {
		obj = obj.DeepCopyObject()
		obj.GetObjectKind().SetGroupVersionKind(gvk)
	}
	if !inputs.Holds(gvk) {
		return fmt.Errorf("writing the dump: %s is not a kind that a dump holds", gvk)
	}
	d.objects++
	return d.line(obj)
}

// Close writes the last line, with what was left out, and flushes.
func (d *Writer) Close(leftOut []string) error {
	if err := d.line(footer{End: true, Objects: d.objects, LeftOut: leftOut}); err != nil {
		return err
	}
	if err := errors.Join(d.buffered.Flush(), d.compressed.Close()); err != nil {
		return fmt.Errorf("writing the dump: %w", err)
	}
	return nil
}

func (d *Writer) line(value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("writing the dump: %w", err)
	}
	if _, err := d.buffered.Write(append(data, '\n')); err != nil {
		return fmt.Errorf("writing the dump: %w", err)
	}
	return nil
}
