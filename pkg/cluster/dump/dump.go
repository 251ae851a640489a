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

// Write writes the dump. It sets the format and the version of the header.
func (d *Dump) Write(out io.Writer) error {
	compressed := gzip.NewWriter(out)
	buffered := bufio.NewWriterSize(compressed, 1<<16)
	err := d.writeLines(json.NewEncoder(buffered))
	if err := errors.Join(err, buffered.Flush(), compressed.Close()); err != nil {
		return fmt.Errorf("writing the dump: %w", err)
	}
	return nil
}

func (d *Dump) writeLines(lines *json.Encoder) error {
	header := d.Header
	header.Format, header.Version = Format, Version
	header.Taken = header.Taken.UTC().Truncate(time.Second)
	if err := lines.Encode(header); err != nil {
		return err
	}
	for _, obj := range d.Objects {
		gvk, err := inputs.KindOf(obj)
		if err != nil {
			return err
		}
		if !inputs.Holds(gvk) {
			return fmt.Errorf("%s is not a kind that a dump holds", gvk)
		}
		if obj.GetObjectKind().GroupVersionKind().Empty() {
			obj = obj.DeepCopyObject()
			obj.GetObjectKind().SetGroupVersionKind(gvk)
		}
		if err := lines.Encode(obj); err != nil {
			return err
		}
	}
	return lines.Encode(footer{End: true, Objects: len(d.Objects), LeftOut: d.LeftOut})
}
