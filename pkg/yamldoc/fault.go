package yamldoc

import (
	"cmp"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"berth.dev/berth/pkg/spelling"
)

// Fault is an unknown field of a document, or a value of a wrong type.
type Fault struct {
	Line int
	Path string
	// Unknown is set for an unknown field.
	Unknown bool
	Message string
}

// Faults compares a part of a document, at a path, with a type. A decoder would stop at the first value of a wrong
// type, and not know its line. Text is the node in JSON. The faults are in the order of the document.
func Faults(node *yaml.Node, text []byte, t reflect.Type, path *field.Path) []Fault {
	var faults []Fault
	find(&faults, node, text, t, path)
	slices.SortStableFunc(faults, func(a, b Fault) int {
		return cmp.Or(a.Line-b.Line, strings.Compare(a.Path, b.Path))
	})
	return faults
}

var (
	jsonUnmarshaler = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
)

func find(faults *[]Fault, node *yaml.Node, text json.RawMessage, t reflect.Type, path *field.Path) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() == reflect.Interface || string(text) == "null" {
		return
	}
	pointer := reflect.PointerTo(t)
	whole := pointer.Implements(jsonUnmarshaler) || pointer.Implements(textUnmarshaler)
	if kind := t.Kind(); !whole && (kind == reflect.Struct || kind == reflect.Map) {
		var entries map[string]json.RawMessage
		if json.Unmarshal(text, &entries) == nil {
			findInEntries(faults, node, entries, t, path)
			return
		}
	} else if !whole && kind == reflect.Slice && t.Elem().Kind() != reflect.Uint8 {
		var items []json.RawMessage
		if json.Unmarshal(text, &items) == nil {
			for i, item := range items {
				at := field.NewPath(fmt.Sprint(i)) // the document may be a list
				if path != nil {
					at = path.Index(i)
				}
				value, _ := step(node, "", fmt.Sprint(i))
				find(faults, cmp.Or(value, node), item, t.Elem(), at)
			}
			return
		}
	}
	if err := json.Unmarshal(text, reflect.New(t).Interface()); err != nil {
		*faults = append(*faults, Fault{Line: node.Line, Path: textOf(path),
			Message: fmt.Sprintf("Invalid value: %s: %s", shown(node, text), wanted(t, err))})
	}
}

func findInEntries(faults *[]Fault, node *yaml.Node, entries map[string]json.RawMessage, t reflect.Type,
	path *field.Path) {
	var known map[string]reflect.Type
	if t.Kind() == reflect.Struct {
		known = fieldsOf(t)
	}
	for key, text := range entries {
		value, line := entry(node, key)
		value = cmp.Or(value, node)
		if t.Kind() == reflect.Map {
			find(faults, value, text, t.Elem(), path.Key(key))
			continue
		}
		at := field.NewPath(key)
		if path != nil {
			at = path.Child(key)
		}
		if of, ok := known[key]; ok {
			find(faults, value, text, of, at)
			continue
		}
		message := "unknown field"
		if like := spelling.Closest(key, known); like != "" {
			message += "; did you mean " + like + "?"
		}
		*faults = append(*faults, Fault{Line: cmp.Or(line, node.Line), Path: at.String(), Unknown: true, Message: message})
	}
}

// fieldsOf are the types of the fields of a struct by their JSON names.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		of := f.Type
		for of.Kind() == reflect.Pointer {
			of = of.Elem()
		}
		switch {
		case name == "-" || !f.IsExported() && !f.Anonymous:
		case name == "" && of.Kind() == reflect.Struct && (f.Anonymous || strings.Contains(options, "inline")):
			for inner, innerType := range fieldsOf(of) {
				if _, shadowed := fields[inner]; !shadowed {
					fields[inner] = innerType
				}
			}
		default:
			fields[cmp.Or(name, f.Name)] = f.Type
		}
	}
	return fields
}

// textOf is empty for the path to the document itself.
func textOf(path *field.Path) string {
	if path == nil {
		return ""
	}
	return path.String()
}

// shown is a value for a message.
func shown(node *yaml.Node, text json.RawMessage) string {
	const longest = 60
	switch {
	case text[0] == '{':
		return "an object"
	case text[0] == '[':
		return "a list"
	case text[0] != '"' && node.Kind == yaml.ScalarNode:
		return node.Value // as in the file: yes, and not true
	case len(text) > longest:
		return string(text[:longest]) + "…"
	}
	return string(text)
}

// wanted says what a value of the type must be.
func wanted(t reflect.Type, err error) string {
	switch kind := t.Kind(); {
	case t == reflect.TypeFor[resource.Quantity]():
		return "must be a quantity such as 500m, 4 or 16Gi"
	case reflect.PointerTo(t).Implements(jsonUnmarshaler) || reflect.PointerTo(t).Implements(textUnmarshaler):
		return strings.Join(strings.Fields(err.Error()), " ")
	case kind == reflect.Struct || kind == reflect.Map:
		return "must be an object"
	case kind == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return "must be a string in base64"
	case kind == reflect.Slice:
		return "must be a list"
	case kind == reflect.String:
		return "must be a string"
	case kind == reflect.Bool:
		return "must be true or false"
	case kind == reflect.Float32 || kind == reflect.Float64:
		return "must be a number"
	default:
		return "must be an integer"
	}
}
