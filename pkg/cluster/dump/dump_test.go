package dump

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"berth.dev/berth/test/harness/assert"
	"berth.dev/berth/test/harness/leak"
	"berth.dev/berth/test/harness/require"
)

func TestMain(m *testing.M) { leak.Main(m) }

const (
	dumpHead = `{"format":"berth-dump","version":1,"taken":"2026-01-05T00:00:00Z"}` + "\n"
	dumpNode = `{"apiVersion":"v1","kind":"Node","metadata":{"name":"n"}}` + "\n"
	dumpEnd  = `{"end":true,"objects":1}` + "\n"
)

func zipped(text string) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(text))
	_ = w.Close()
	return b.Bytes()
}

func TestADumpIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	taken := time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)
	group := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup",
		"metadata": map[string]any{"name": "g", "namespace": "a"}, "spec": map[string]any{"minMember": int64(3)},
	}}
	pod := &v1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Name: "p",
		Namespace: "a"}}
	var file bytes.Buffer
	want := &Dump{
		Header:  Header{Format: Format, Version: Version, Taken: taken, Kubernetes: "v1.37.1", NamesHashed: true},
		LeftOut: []string{"services: forbidden"}, Objects: []runtime.Object{group, pod},
	}
	require.NoError(t, want.Write(&file))
	got, err := Read(&file, "f")
	require.NoError(t, err)
	secretive := &Dump{Objects: []runtime.Object{&v1.Secret{}}}
	if err := secretive.Write(io.Discard); err == nil || !strings.Contains(err.Error(), "Secret") {
		t.Errorf("writing a Secret: got error %v, want a refusal that names the kind", err)
	}
	assert.Equal(t, "dump", want, got)
}

func TestADumpThatCannotBeUsedIsRefused(t *testing.T) {
	t.Parallel()
	whole := zipped(dumpHead + dumpNode + dumpEnd)
	for _, tt := range []struct {
		name, want string
		file       []byte
	}{
		{"nothing", "f: this is not a dump", nil},
		{"something that is not compressed", "f: this is not a dump", []byte(dumpHead + dumpNode + dumpEnd)},
		{"something else that is compressed", "f:1: this is not a dump", zipped("name,cpu\n")},
		{"JSON of another format", "f:1: this is not a dump", zipped(`{"kind":"List"}` + "\n")},
		{"another version", "f:1: the dump has format version 2, and only version 1 is read", zipped(strings.Replace(dumpHead, `"version":1`, `"version":2,"new":1`, 1))},
		{"another version with a time of another form", "f:1: the dump has format version 2, and only version 1 is read", zipped(`{"format":"berth-dump","version":2,"taken":1767571200}` + "\n")},
		{"a time that is none", `f:1: reading the first line: `, zipped(`{"format":"berth-dump","version":1,"taken":"yesterday"}` + "\n")},
		{"only a header", "f:1: the dump is cut off", zipped(dumpHead)},
		{"no last line", "f:2: the dump is cut off", zipped(dumpHead + dumpNode)},
		{"a file that was cut off", "f:", whole[:len(whole)-12]},
		{"a file that was cut off within an object", "f:2: the dump is cut off",
			stored(dumpHead + dumpNode + dumpNode)[:len(dumpHead)+30]},
		{"a last line that counts more", "f:3: the dump says that it has 2 objects, and 1 are there", zipped(dumpHead + dumpNode + `{"end":true,"objects":2}`)},
		{"something after the last line", "f:4: something follows", zipped(dumpHead + dumpNode + dumpEnd + dumpNode)},
		{"a Secret", `f:2: apiVersion "v1", kind "Secret": not a kind that a dump holds`, zipped(dumpHead + strings.Replace(dumpNode, "Node", "Secret", 1))},
		{"an object without a kind", `f:2: apiVersion "", kind "": not a kind`, zipped(dumpHead + "{}\n")},
		{"a field that the kind does not have", `f:2: reading a Node: strict decoding error: unknown field "nam"`, zipped(dumpHead + strings.Replace(dumpNode, `"metadata"`, `"nam":1,"metadata"`, 1))},
		{"a field of the wrong type", "f:2: reading a Node: ", zipped(dumpHead + strings.Replace(dumpNode, `"n"`, `7`, 1))},
		{"an object without a name", "f:2: Node without a name", zipped(dumpHead + strings.Replace(dumpNode, `"n"`, `""`, 1))},
		{"the same object twice", "f:3: Node /n occurs twice, first in line 2", zipped(dumpHead + dumpNode + dumpNode)},
		{"a line that is no JSON", "f:2: this is not an object in JSON", zipped(dumpHead + "oops\n")},
		{"an endless line", "f:2: longer than 4 MiB", zipped(dumpHead + strings.Repeat(" ", maxDumpLine+1))},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := Read(bytes.NewReader(tt.file), "f")
			if err == nil || !strings.HasPrefix(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got error %v, want one line that begins with %q", err, tt.want)
			}
		})
	}
}

// stored is a gzip file that holds its content as it is, so that a part of the file is a part of the content.
func stored(text string) []byte {
	var file bytes.Buffer
	w, err := gzip.NewWriterLevel(&file, gzip.NoCompression)
	if err == nil {
		_, err = io.WriteString(w, text)
	}
	if err = errors.Join(err, w.Close()); err != nil {
		panic(err)
	}
	return file.Bytes()
}

func TestADumpThatGrowsBeyondTheBoundIsRefused(t *testing.T) {
	t.Parallel()
	file := zipped(dumpHead + strings.Repeat(" \n", 1) + dumpNode)
	_, err := readUpTo(bytes.NewReader(file), "f", 80)
	if err == nil || !strings.HasPrefix(err.Error(), "f:") {
		t.Fatalf("got error %v, want one with a line", err)
	}
	if _, err := readUpTo(bytes.NewReader(zipped(dumpHead+dumpNode+dumpEnd)), "f", 100); err == nil ||
		!strings.Contains(err.Error(), "larger than") {
		t.Errorf("got error %v, want one about the size", err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(dumpHead + dumpNode + dumpEnd))
	f.Add([]byte(dumpHead + `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[{"resources":{"requests":{"cpu":"1e99"}}}]}}` + "\n" + dumpEnd))
	f.Add([]byte(dumpHead + `{"apiVersion":"scheduling.x-k8s.io/v1alpha1","kind":"PodGroup","metadata":{"name":[]}}` + "\n" + dumpEnd))
	f.Fuzz(func(t *testing.T, content []byte) {
		for _, file := range [][]byte{content, zipped(string(content))} {
			dump, err := Read(bytes.NewReader(file), "f")
			if (dump == nil) == (err == nil) {
				t.Fatalf("got dump %v and error %v, want one of them", dump, err)
			}
			if err != nil && strings.Contains(err.Error(), "\n") {
				t.Errorf("error %q is more than a line", err)
			}
		}
	})
}
