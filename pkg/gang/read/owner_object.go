package read

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// objectReader reads fields of an object of any kind and remembers the first that holds something else than expected.
// A field that is absent is no error.
type objectReader struct {
	kind, name string
	fields     map[string]any
	// path leads to fields.
	path string
	// err is shared by the readers of one object, and so is reads: the paths that were read, with whether an object there
	// counts even without a field that is read. It is nil unless a copy is to be made.
	err   *error
	reads map[string]bool
}

// field returns what is at the path of names joined by dots, or nil.
func (r *objectReader) field(path string) any {
	var value any = r.fields
	for name := range strings.SplitSeq(path, ".") {
		fields, ok := value.(map[string]any)
		if !ok {
			if value != nil {
				r.fail(path, value, "an object")
			}
			return nil
		}
		value = fields[name]
	}
	r.note(path, false)
	return value
}

// note records that the path was read; counts is set if an object there does even without a field that is read.
func (r *objectReader) note(path string, counts bool) {
	if r.reads != nil {
		r.reads[r.path+path] = r.reads[r.path+path] || counts
	}
}

// readPart returns the part of a value at a path that was read, false if nothing of it was.
func readPart(value any, path string, reads map[string]bool) (any, bool) {
	counts, read := reads[path]
	switch v := value.(type) {
	case map[string]any:
		part := map[string]any{}
		for name, field := range v {
			if kept, has := readPart(field, strings.TrimPrefix(path+"."+name, "."), reads); has {
				part[name] = kept
			}
		}
		return part, len(part) > 0 || counts || read && len(v) == 0
	case []any:
		part := make([]any, 0, len(v))
		for i, item := range v {
			if kept, has := readPart(item, fmt.Sprintf("%s[%d]", path, i), reads); has {
				part = append(part, kept)
			}
		}
		return part, read // that there is one may be all that is asked
	}
	return value, read
}

// fieldOf returns what is at the path if it is a T; want names one.
func fieldOf[T any](r *objectReader, path, want string) T {
	value := r.field(path)
	t, ok := value.(T)
	if !ok && value != nil {
		r.fail(path, value, want)
	}
	return t
}

func (r *objectReader) fail(path string, value any, want string) {
	if *r.err == nil {
		*r.err = fmt.Errorf("%s%s: %.120q is not %s", r.path, path, fmt.Sprint(value), want)
	}
}

// number returns a number of pods or of things that have pods, absent if the field is.
func (r *objectReader) number(path string, absent int) int {
	n := int64(-1)
	value := r.field(path)
	switch v := value.(type) {
	case nil:
		return absent
	case int64:
		n = v
	case float64:
		if v == math.Trunc(v) && v >= 0 && v <= math.MaxInt32 {
			n = int64(v)
		}
	}
	if n < 0 || n > math.MaxInt32 {
		r.fail(path, value, fmt.Sprintf("a whole number from 0 to %d", math.MaxInt32))
		return absent
	}
	return int(n)
}

// numbers returns the numbers of pods in a map.
func (r *objectReader) numbers(path string) map[string]int {
	counts := map[string]int{}
	for key, value := range fieldOf[map[string]any](r, path, "an object") {
		// Keys may have dots, which lead further in a path.
		one := r.child(path, map[string]any{"n": value})
		counts[key] = one.number("n", 0)
		r.note(path+"."+key, false)
	}
	return counts
}

func (r *objectReader) has(path string) bool { return r.field(path) != nil }

func (r *objectReader) text(path string) string { return fieldOf[string](r, path, "text") }

// texts returns a list of texts.
func (r *objectReader) texts(path string) []string {
	list := fieldOf[[]any](r, path, "a list")
	texts := make([]string, 0, len(list))
	for i, item := range list {
		text, ok := item.(string)
		if !ok {
			r.fail(fmt.Sprintf("%s[%d]", path, i), item, "text")
		}
		texts = append(texts, text)
		r.note(fmt.Sprintf("%s[%d]", path, i), true)
	}
	return texts
}

func (r *objectReader) flag(path string) bool { return fieldOf[bool](r, path, "true or false") }

// annotation returns an annotation of the object whose metadata is at the path, empty if it has none.
func (r *objectReader) annotation(metadata, key string) string {
	value, _ := r.key(metadata+".annotations", key)
	return value
}

// annotated reports whether the object whose metadata is at the path has the annotation.
func (r *objectReader) annotated(metadata, key string) bool {
	_, found := r.key(metadata+".annotations", key)
	return found
}

// key returns what a key, which may have dots, stands for in the annotations or labels at the path.
func (r *objectReader) key(path, key string) (text string, found bool) {
	values, _ := r.field(path).(map[string]any)
	value, found := values[key]
	r.note(path+"."+key, false)
	text, _ = value.(string)
	return text, found
}

// items returns readers of the objects in a list.
func (r *objectReader) items(path string) []*objectReader {
	list := fieldOf[[]any](r, path, "a list")
	items := make([]*objectReader, 0, len(list))
	for i, item := range list {
		items = append(items, r.child(fmt.Sprintf("%s[%d]", path, i), item))
	}
	return items
}

// values returns readers of the objects in a map.
func (r *objectReader) values(path string) map[string]*objectReader {
	fields := fieldOf[map[string]any](r, path, "an object")
	values := map[string]*objectReader{}
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		values[key] = r.child(path+"."+key, fields[key])
	}
	return values
}

func (r *objectReader) child(path string, value any) *objectReader {
	fields, ok := value.(map[string]any)
	if !ok && value != nil {
		r.fail(path, value, "an object")
	}
	r.note(path, true)
	return &objectReader{kind: r.kind, name: r.name, fields: fields, path: r.path + path + ".", err: r.err, reads: r.reads}
}

// sum adds numbers of pods that fit 32 bits each, without wrapping around.
func sum(counts ...int) int {
	total := 0
	for _, n := range counts {
		total = min(total+n, math.MaxInt32)
	}
	return total
}

// times multiplies two numbers of at most 32 bits without wrapping around.
func times(a, b int) int { return int(min(int64(a)*int64(b), math.MaxInt32)) }

// countIndexes returns how many indexes of a Job a text names such as "1,3-5,7", which is how its status lists them.
// What cannot be read counts for nothing.
func countIndexes(text string) int {
	count := 0
	for item := range strings.SplitSeq(text, ",") {
		first, last, interval := strings.Cut(item, "-")
		if !interval {
			last = first
		}
		from, err1 := strconv.ParseUint(first, 10, 31)
		to, err2 := strconv.ParseUint(last, 10, 31)
		if err1 == nil && err2 == nil && from <= to {
			count = sum(count, int(to-from+1))
		}
	}
	return count
}
