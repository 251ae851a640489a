package yamldoc

import (
	"encoding"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"berth.dev/berth/pkg/spelling"
)

// Fault is a part of a document that its type does not have, or cannot hold.
type Fault struct {
	Line int
	Path string
	// Unknown is a field that the type does not have; other faults are values of a wrong type.
	Unknown bool
	Message string
}

// Structure holds the fields of a document against a Go type. A decoder stops at the first value of a wrong type; this
// finds all of them, each with its own line.
type Structure struct {
	// Faults are in the order of the document.
	Faults []Fault
	// wrong are the values that the type cannot hold.
	wrong map[*yaml.Node]bool
	// lacking are the paths of objects with a field that the type does not have.
	lacking map[string]bool
}

// Against holds a whole document against the type of an object.
func Against(root *yaml.Node, object any) *Structure {
	s := &Structure{}
	s.Check(root, reflect.TypeOf(object), nil)
	return s
}

// Rest is the document as JSON without the values of a wrong type, so that the fields beside them can be checked as
// well.
func (s *Structure) Rest(root *yaml.Node) ([]byte, error) {
	value, err := nodeValue(without(root, s.wrong))
	if err != nil {
		return nil, err
	}
	return json.Marshal(value)
}

// Wrong reports whether there is a value of a wrong type.
func (s *Structure) Wrong() bool { return len(s.wrong) > 0 }

// Beside reports whether a path leads to none of the values of a wrong type, and to no part of one.
func (s *Structure) Beside(path string) bool {
	return !slices.ContainsFunc(s.Faults, func(f Fault) bool {
		return !f.Unknown && (path == f.Path || strings.HasPrefix(path, f.Path+".") || strings.HasPrefix(path, f.Path+"["))
	})
}

// Lacks remembers that the type of the object at a path does not have one of its fields.
func (s *Structure) Lacks(object string) {
	if s.lacking == nil {
		s.lacking = map[string]bool{}
	}
	s.lacking[object] = true
}

// Lacking reports whether the object at a path has a field that its type does not have.
func (s *Structure) Lacking(object string) bool { return s.lacking[object] }

var (
	jsonUnmarshaler = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// wanted says what types that read themselves can be made of.
var wanted = map[reflect.Type]string{
	reflect.TypeFor[resource.Quantity]():  "a quantity such as 500m, 4 or 16Gi",
	reflect.TypeFor[intstr.IntOrString](): "an integer or a string",
	reflect.TypeFor[metav1.Time]():        "a time such as 2026-01-31T12:00:00Z",
	reflect.TypeFor[metav1.MicroTime]():   "a time such as 2026-01-31T12:00:00.000000Z",
	reflect.TypeFor[metav1.Duration]():    "a duration such as 90s or 1h30m",
}

// Check holds a part of a document, at a path, against a type.
func (s *Structure) Check(node *yaml.Node, t reflect.Type, path *field.Path) {
	for node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if node.Kind == yaml.ScalarNode && node.ShortTag() == "!!null" {
		return
	}
	if pointer := reflect.PointerTo(t); pointer.Implements(jsonUnmarshaler) || pointer.Implements(textUnmarshaler) {
		s.readsItself(node, t, path)
		return
	}
	switch t.Kind() {
	case reflect.Interface:
	case reflect.Struct:
		if s.is(node, yaml.MappingNode, path, "an object") {
			s.fields(node, t, path)
		}
	case reflect.Map:
		if s.is(node, yaml.MappingNode, path, "an object") {
			s.entries(node, func(key string, value *yaml.Node) { s.Check(value, t.Elem(), path.Key(key)) })
		}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			s.bytes(node, path)
		} else if s.is(node, yaml.SequenceNode, path, "a list") {
			for i, item := range node.Content {
				s.Check(item, t.Elem(), itemIn(path, i))
			}
		}
	default:
		if s.is(node, yaml.ScalarNode, path, named(t)) {
			s.scalar(node, t, path)
		}
	}
}

// itemIn is the path to an element; a list may be all that there is.
func itemIn(path *field.Path, i int) *field.Path {
	if path == nil {
		return field.NewPath(fmt.Sprint(i))
	}
	return path.Index(i)
}

// fieldIn is the path to a field; the object may be all that there is.
func fieldIn(path *field.Path, name string) *field.Path {
	if path == nil {
		return field.NewPath(name)
	}
	return path.Child(name)
}

// entries calls f for each entry, those that are merged in by << included.
func (s *Structure) entries(node *yaml.Node, f func(key string, value *yaml.Node)) {
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		if key.ShortTag() != "!!merge" {
			f(key.Value, value)
			continue
		}
		for value.Kind == yaml.AliasNode {
			value = value.Alias
		}
		merged := []*yaml.Node{value}
		if value.Kind == yaml.SequenceNode {
			merged = value.Content
		}
		for _, m := range merged {
			for m.Kind == yaml.AliasNode {
				m = m.Alias
			}
			s.entries(m, f)
		}
	}
}

func (s *Structure) fields(node *yaml.Node, t reflect.Type, path *field.Path) {
	known := fieldsOf(t)
	s.entries(node, func(key string, value *yaml.Node) {
		at := fieldIn(path, key)
		if of, ok := known[key]; ok {
			s.Check(value, of, at)
			return
		}
		parent := ""
		if path != nil {
			parent = path.String()
		}
		s.Lacks(parent)
		message := "unknown field"
		if like := spelling.Closest(key, known); like != "" {
			message += "; did you mean " + like + "?"
		}
		fault := Fault{Line: keyOf(node, key, value).Line, Path: at.String(), Unknown: true, Message: message}
		s.Faults = append(s.Faults, fault)
	})
}

// keyOf is the key of a value, or the value itself if that is merged in from elsewhere.
func keyOf(node *yaml.Node, key string, value *yaml.Node) *yaml.Node {
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == key && node.Content[i+1] == value {
			return node.Content[i]
		}
	}
	return value
}

var knownFields sync.Map

// fieldsOf are the fields of a struct by their names in JSON.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	if known, ok := knownFields.Load(t); ok {
		return known.(map[string]reflect.Type) //nolint:forcetypeassert // nothing else is stored there
	}
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
		case name == "":
			fields[f.Name] = f.Type
		default:
			fields[name] = f.Type
		}
	}
	knownFields.Store(t, fields)
	return fields
}

func (s *Structure) is(node *yaml.Node, kind yaml.Kind, path *field.Path, what string) bool {
	if node.Kind == kind {
		return true
	}
	s.mismatch(node, path, what)
	return false
}

// mismatch reports a value that is not what it has to be.
func (s *Structure) mismatch(node *yaml.Node, path *field.Path, what string) {
	name := ""
	if path != nil {
		name = path.String()
	}
	if s.wrong == nil {
		s.wrong = map[*yaml.Node]bool{}
	}
	s.wrong[node] = true
	message := fmt.Sprintf("Invalid value: %s: must be %s", shown(node), what)
	s.Faults = append(s.Faults, Fault{Line: node.Line, Path: name, Message: message})
}

// shown is a value as a message repeats it.
func shown(node *yaml.Node) string {
	switch node.Kind {
	case yaml.MappingNode:
		return "an object"
	case yaml.SequenceNode:
		return "a list"
	}
	if value, err := scalarValue(node); err == nil {
		if _, text := value.(string); !text {
			return node.Value
		}
	}
	const longest = 60
	if len(node.Value) > longest {
		return fmt.Sprintf("%q…", node.Value[:longest])
	}
	return fmt.Sprintf("%q", node.Value)
}

func (s *Structure) readsItself(node *yaml.Node, t reflect.Type, path *field.Path) {
	value, err := nodeValue(node)
	if err != nil {
		return // found when the document was read
	}
	data, err := json.Marshal(value)
	if err != nil {
		return
	}
	if err := json.Unmarshal(data, reflect.New(t).Interface()); err != nil {
		what, ok := wanted[t]
		if !ok {
			what = "what its type allows: " + strings.Join(strings.Fields(err.Error()), " ")
		}
		s.mismatch(node, path, what)
	}
}

func (s *Structure) bytes(node *yaml.Node, path *field.Path) {
	if !s.is(node, yaml.ScalarNode, path, "a string in base64") {
		return
	}
	value, err := scalarValue(node)
	text, ok := value.(string)
	if err == nil && ok {
		_, err = base64.StdEncoding.DecodeString(strings.NewReplacer("\r", "", "\n", "").Replace(text))
	}
	if err != nil || !ok {
		s.mismatch(node, path, "a string in base64")
	}
}

// named says what a value of a scalar type is called.
func named(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Float32, reflect.Float64:
		return "a number"
	default:
		return "an integer"
	}
}

func (s *Structure) scalar(node *yaml.Node, t reflect.Type, path *field.Path) {
	value, err := scalarValue(node)
	if err != nil {
		return
	}
	var ok bool
	what := named(t)
	switch t.Kind() {
	case reflect.String:
		_, ok = value.(string)
		what = fmt.Sprintf("a string, which takes quotes here: %q", node.Value)
	case reflect.Bool:
		_, ok = value.(bool)
	case reflect.Float32, reflect.Float64:
		_, ok = number(value)
	default:
		var n float64
		if n, ok = number(value); ok && n != math.Trunc(n) {
			ok = false
		} else if ok {
			bits := t.Bits() - 1
			if reflect.Zero(t).CanUint() {
				bits++
			}
			low, high := -math.Ldexp(1, bits), math.Ldexp(1, bits)
			if reflect.Zero(t).CanUint() {
				low = 0
			}
			if ok = n >= low && n < high; !ok && t.Bits() < 64 {
				what = fmt.Sprintf("from %.0f to %.0f", low, high-1)
			}
		}
	}
	if !ok {
		s.mismatch(node, path, what)
	}
}

func number(value any) (float64, bool) {
	switch n := value.(type) {
	case int:
		return float64(n), true
	case int64:
		return float64(n), true
	case uint64:
		return float64(n), true
	case float64:
		return n, true
	}
	return 0, false
}
