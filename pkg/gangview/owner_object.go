package gangview

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
	// err is shared by the readers of one object.
	err *error
	// kept, unless nil, gets a copy of every value that is read.
	kept map[string]any
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
	switch v := value.(type) {
	case nil, []any:
		// What is in objects and lists is kept when it is read itself.
	case map[string]any:
		if len(v) == 0 {
			r.keep(strings.Split(path, "."), map[string]any{})
		}
	default:
		r.keep(strings.Split(path, "."), value)
	}
	return value
}

// keep records a value that was read.
func (r *objectReader) keep(path []string, value any) {
	if r.kept == nil {
		return
	}
	at := r.kept
	for _, name := range path[:len(path)-1] {
		inner, ok := at[name].(map[string]any)
		if !ok {
			inner = map[string]any{}
			at[name] = inner
		}
		at = inner
	}
	at[path[len(path)-1]] = value
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
	counts, kept := map[string]int{}, map[string]any{}
	for key, value := range fieldOf[map[string]any](r, path, "an object") {
		// Keys may have dots, which lead further in a path.
		one := r.child(path, map[string]any{"n": value})
		counts[key], kept[key] = one.number("n", 0), value
	}
	if len(kept) > 0 {
		r.keep(strings.Split(path, "."), kept)
	}
	return counts
}

func (r *objectReader) has(path string) bool {
	value := r.field(path)
	if _, ok := value.([]any); ok {
		r.keep(strings.Split(path, "."), []any{}) // that there is one is all that is asked
	}
	return value != nil
}

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
	}
	if len(list) > 0 {
		r.keep(strings.Split(path, "."), list)
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
	if found {
		r.keep(append(strings.Split(path, "."), key), value)
	}
	text, _ = value.(string)
	return text, found
}

// items returns readers of the objects in a list.
func (r *objectReader) items(path string) []*objectReader {
	list := fieldOf[[]any](r, path, "a list")
	items := make([]*objectReader, 0, len(list))
	kept := make([]any, 0, len(list))
	for i, item := range list {
		items = append(items, r.child(fmt.Sprintf("%s[%d]", path, i), item))
		kept = append(kept, items[i].kept)
	}
	r.keep(strings.Split(path, "."), kept)
	return items
}

// values returns readers of the objects in a map.
func (r *objectReader) values(path string) map[string]*objectReader {
	fields := fieldOf[map[string]any](r, path, "an object")
	values, kept := map[string]*objectReader{}, map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		values[key] = r.child(path+"."+key, fields[key])
		kept[key] = values[key].kept
	}
	r.keep(strings.Split(path, "."), kept)
	return values
}

func (r *objectReader) child(path string, value any) *objectReader {
	fields, ok := value.(map[string]any)
	if !ok && value != nil {
		r.fail(path, value, "an object")
	}
	c := &objectReader{kind: r.kind, name: r.name, fields: fields, path: r.path + path + ".", err: r.err}
	if r.kept != nil {
		c.kept = map[string]any{}
	}
	return c
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
