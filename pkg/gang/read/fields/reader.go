package fields

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// Reader reads fields of an object of any kind, and remembers the first with a bad value. An absent field is no error.
type Reader struct {
	// Kind and Name are the object's, for messages.
	Kind, Name string

	fields map[string]any
	// path is the path of fields in the object.
	path string
	// err is shared by the readers of one object, and so is reads: the paths that were read, with whether to keep an
	// object there even if none of its fields was read. reads is nil without Note.
	err   *error
	reads map[string]bool
}

// Of returns a reader of the object.
func Of(kind, name string, object map[string]any) *Reader {
	return &Reader{Kind: kind, Name: name, fields: object, err: new(error)}
}

// Err returns the first bad value, nil if there is none.
func (r *Reader) Err() error { return *r.err }

// Note makes the reader record what is read, for Noted.
func (r *Reader) Note() { r.reads = map[string]bool{} }

// Noted returns the part of the object that was read.
func (r *Reader) Noted() map[string]any {
	part, _ := readPart(r.fields, "", r.reads)
	return part.(map[string]any)
}

// Field returns the value at the path of names joined by dots, nil if it is absent.
func (r *Reader) Field(path string) any {
	var value any = r.fields
	for name := range strings.SplitSeq(path, ".") {
		fields, ok := value.(map[string]any)
		if !ok {
			if value != nil {
				r.Fail(path, value, "an object")
			}
			return nil
		}
		value = fields[name]
	}
	r.note(path, false)
	return value
}

// note records that the path was read, and whether to keep an object there even if none of its fields was read.
func (r *Reader) note(path string, keep bool) {
	if r.reads != nil {
		r.reads[r.path+path] = r.reads[r.path+path] || keep
	}
}

// readPart returns the part of a value at a path that was read, false if nothing of it was.
func readPart(value any, path string, reads map[string]bool) (any, bool) {
	keep, read := reads[path]
	switch v := value.(type) {
	case map[string]any:
		part := map[string]any{}
		for name, field := range v {
			if kept, has := readPart(field, strings.TrimPrefix(path+"."+name, "."), reads); has {
				part[name] = kept
			}
		}
		return part, len(part) > 0 || keep || read && len(v) == 0
	case []any:
		part := make([]any, 0, len(v))
		for i, item := range v {
			if kept, has := readPart(item, fmt.Sprintf("%s[%d]", path, i), reads); has {
				part = append(part, kept)
			}
		}
		return part, read // even if it is empty
	}
	return value, read
}

// fieldOf returns the value at the path if it is a T; want describes T.
func fieldOf[T any](r *Reader, path, want string) T {
	value := r.Field(path)
	t, ok := value.(T)
	if !ok && value != nil {
		r.Fail(path, value, want)
	}
	return t
}

// Fail records a bad value, if it is the first; want describes what is allowed.
func (r *Reader) Fail(path string, value any, want string) {
	if *r.err == nil {
		*r.err = fmt.Errorf("%s%s: %.120q is not %s", r.path, path, fmt.Sprint(value), want)
	}
}

// Number returns a whole number from 0 to MaxInt32, or absent if there is no field.
func (r *Reader) Number(path string, absent int) int {
	n := int64(-1)
	value := r.Field(path)
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
		r.Fail(path, value, fmt.Sprintf("a whole number from 0 to %d", math.MaxInt32))
		return absent
	}
	return int(n)
}

// Numbers returns the numbers in a map.
func (r *Reader) Numbers(path string) map[string]int {
	counts := map[string]int{}
	for key, value := range fieldOf[map[string]any](r, path, "an object") {
		// Keys may have dots, which a path would split.
		one := r.child(path, map[string]any{"n": value})
		counts[key] = one.Number("n", 0)
		r.note(path+"."+key, false)
	}
	return counts
}

// Has reports whether there is a field.
func (r *Reader) Has(path string) bool { return r.Field(path) != nil }

// Text returns a text, empty if there is none.
func (r *Reader) Text(path string) string { return fieldOf[string](r, path, "text") }

// Texts returns a list of texts.
func (r *Reader) Texts(path string) []string {
	list := fieldOf[[]any](r, path, "a list")
	texts := make([]string, 0, len(list))
	for i, item := range list {
		text, ok := item.(string)
		if !ok {
			r.Fail(fmt.Sprintf("%s[%d]", path, i), item, "text")
		}
		texts = append(texts, text)
		r.note(fmt.Sprintf("%s[%d]", path, i), true)
	}
	return texts
}

// Flag returns whether a field is true.
func (r *Reader) Flag(path string) bool { return fieldOf[bool](r, path, "true or false") }

// Annotation returns an annotation of the object whose metadata is at the path, empty if it has none.
func (r *Reader) Annotation(metadata, key string) string {
	value, _ := r.Key(metadata+".annotations", key)
	return value
}

// Key returns the value of a key, which may have dots, in the annotations or labels at the path.
func (r *Reader) Key(path, key string) (text string, found bool) {
	values, _ := r.Field(path).(map[string]any)
	value, found := values[key]
	r.note(path+"."+key, false)
	text, _ = value.(string)
	return text, found
}

// Items returns readers of the objects in a list.
func (r *Reader) Items(path string) []*Reader {
	list := fieldOf[[]any](r, path, "a list")
	items := make([]*Reader, 0, len(list))
	for i, item := range list {
		items = append(items, r.child(fmt.Sprintf("%s[%d]", path, i), item))
	}
	return items
}

// Values returns readers of the objects in a map.
func (r *Reader) Values(path string) map[string]*Reader {
	fields := fieldOf[map[string]any](r, path, "an object")
	values := map[string]*Reader{}
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		values[key] = r.child(path+"."+key, fields[key])
	}
	return values
}

func (r *Reader) child(path string, value any) *Reader {
	fields, ok := value.(map[string]any)
	if !ok && value != nil {
		r.Fail(path, value, "an object")
	}
	r.note(path, true)
	return &Reader{Kind: r.Kind, Name: r.Name, fields: fields, path: r.path + path + ".", err: r.err, reads: r.reads}
}
