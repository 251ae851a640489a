package dump

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"

	"berth.dev/berth/pkg/cluster/inputs"
)

// Bounds of what is read: a few kilobytes of compressed zeros must not fill the memory.
const (
	// maxDumpBytes bounds the decompressed size: 5,000 nodes and 100,000 pods take about 250 MiB.
	maxDumpBytes = 2 << 30
	// maxDumpLine bounds one object; an API server stores none larger than about 1.5 MiB.
	maxDumpLine = 4 << 20
	// maxDumpObjects bounds the number of objects.
	maxDumpObjects = 2_000_000
)

var strictDecoder = serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()

// Read reads a whole dump. Name is what its errors call the file. A file that is cut off, that is not a dump, or that
// is one of another version is refused, and so is an object that a dump cannot hold.
func Read(r io.Reader, name string) (*Dump, error) {
	return readUpTo(r, name, maxDumpBytes)
}

func readUpTo(r io.Reader, name string, maxBytes int64) (*Dump, error) {
	compressed, err := gzip.NewReader(bufio.NewReaderSize(r, 1<<16))
	if err != nil {
		return nil, fmt.Errorf("%s: this is not a dump of a cluster, which is gzip-compressed; `berth dump` writes one", name)
	}
	defer func() { _ = compressed.Close() }() // its checksum has been verified by then
	limited := &io.LimitedReader{R: compressed, N: maxBytes + 1}
	p := parser{name: name, dump: &Dump{}, seen: map[string]int{}, limited: limited, maxBytes: maxBytes}
	lines := bufio.NewScanner(limited)
	lines.Buffer(make([]byte, 0, 1<<16), maxDumpLine)
	for lines.Scan() {
		p.line++
		if err := p.take(lines.Bytes()); err != nil {
			if cut := lines.Err(); cut != nil {
				// The line is in pieces because the file is.
				return nil, p.end(cut)
			}
			return nil, p.fail(err)
		}
	}
	if err := p.end(lines.Err()); err != nil {
		return nil, err
	}
	return p.dump, nil
}

type parser struct {
	name     string
	line     int
	dump     *Dump
	ended    bool
	seen     map[string]int
	limited  *io.LimitedReader
	maxBytes int64
}

func (p *parser) fail(err error) error { return fmt.Errorf("%s:%d: %w", p.name, p.line, err) }

func (p *parser) take(line []byte) error {
	switch {
	case p.limited.N <= 0:
		return p.tooLarge()
	case p.line == 1:
		return p.header(line)
	case p.ended:
		return errors.New("something follows the last line of the dump")
	case bytes.HasPrefix(line, []byte(`{"end":`)):
		return p.footer(line)
	case len(p.dump.Objects) == maxDumpObjects:
		return fmt.Errorf("more than %d objects: at most that many are read", maxDumpObjects)
	}
	obj, err := decodeObject(line)
	if err != nil {
		return err
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return fmt.Errorf("reading the metadata: %w", err)
	}
	kind := obj.GetObjectKind().GroupVersionKind()
	if m.GetName() == "" {
		return fmt.Errorf("%s without a name", kind.Kind)
	}
	id := fmt.Sprintf("%s %s/%s", kind.GroupKind(), m.GetNamespace(), m.GetName())
	if first, twice := p.seen[id]; twice {
		return fmt.Errorf("%s occurs twice, first in line %d", id, first)
	}
	p.seen[id] = p.line
	p.dump.Objects = append(p.dump.Objects, obj)
	return nil
}

func (p *parser) tooLarge() error {
	return fmt.Errorf("larger than %d MiB when decompressed: at most that much is read", p.maxBytes>>20)
}

func (p *parser) header(line []byte) error {
	// The fields of a later version are unknown. Its number gives the better error message.
	var begins struct {
		Format  string `json:"format"`
		Version int    `json:"version"`
	}
	if err := json.Unmarshal(line, &begins); err != nil || begins.Format != Format {
		return fmt.Errorf(`this is not a dump of a cluster: its first line has no "format": %q`, Format)
	}
	if begins.Version != Version {
		return fmt.Errorf("the dump has format version %d, and only version %d is read", begins.Version, Version)
	}
	if err := json.Unmarshal(line, &p.dump.Header); err != nil {
		return fmt.Errorf("reading the first line: %w", err)
	}
	return nil
}

func (p *parser) footer(line []byte) error {
	var footer footer
	if err := strictJSON(line, &footer); err != nil {
		return fmt.Errorf("reading the last line: %w", err)
	}
	if footer.Objects != len(p.dump.Objects) {
		return fmt.Errorf("the dump says that it has %d objects, and %d are there", footer.Objects, len(p.dump.Objects))
	}
	p.ended, p.dump.LeftOut = true, footer.LeftOut
	return nil
}

// end returns the error of a dump that is not complete; err is that of the scanner.
func (p *parser) end(err error) error {
	switch {
	case err == nil && p.ended:
		return nil
	case p.limited.N <= 0:
		return p.fail(p.tooLarge())
	case err == nil || errors.Is(err, io.ErrUnexpectedEOF):
		return p.fail(errors.New("the dump is cut off: its last line is missing"))
	case errors.Is(err, bufio.ErrTooLong):
		p.line++
		return p.fail(fmt.Errorf("longer than %d MiB: no object is that large", maxDumpLine>>20))
	default:
		return p.fail(fmt.Errorf("the dump is damaged: %w", err))
	}
}

func strictJSON(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

// decodeObject reads one line. Custom resources stay unstructured.
func decodeObject(line []byte) (runtime.Object, error) {
	var typed struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if err := json.Unmarshal(line, &typed); err != nil {
		return nil, fmt.Errorf("this is not an object in JSON: %w", err)
	}
	gvk := schema.FromAPIVersionAndKind(typed.APIVersion, typed.Kind)
	if !inputs.Holds(gvk) {
		return nil, fmt.Errorf("apiVersion %q, kind %q: not a kind that a dump holds", typed.APIVersion, typed.Kind)
	}
	if scheme.Scheme.Recognizes(gvk) {
		obj, _, err := strictDecoder.Decode(line, nil, nil)
		if err != nil {
			return nil, fmt.Errorf("reading a %s: %s", gvk.Kind, strings.Join(strings.Fields(err.Error()), " "))
		}
		// The decoder clears the kind of typed objects, and sorting objects by kind needs it.
		obj.GetObjectKind().SetGroupVersionKind(gvk)
		return obj, nil
	}
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON(line); err != nil {
		return nil, fmt.Errorf("reading a %s: %w", gvk.Kind, err)
	}
	return obj, nil
}
