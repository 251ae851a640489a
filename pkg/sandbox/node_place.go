package sandbox

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	sigsyaml "sigs.k8s.io/yaml"

	"berth.dev/berth/pkg/yamldoc"
)

// place is a field of a document.
type place struct {
	document document
	path     string
}

func (p place) below(path string) place {
	if path == "" {
		return p
	}
	if p.path != "" && !strings.HasPrefix(path, ".") && !strings.HasPrefix(path, "[") {
		path = "." + path
	}
	if p.path == "" {
		path = strings.TrimPrefix(path, ".")
	}
	return place{p.document, p.path + path}
}

// fault is what is wrong with a place.
type fault struct {
	line int
	text string
}

func (f fault) Error() string { return f.text }

func (p place) fault(field, format string, args ...any) error {
	at := p.below(field)
	text := fmt.Sprintf(format, args...)
	if at.path != "" {
		text = at.path + ": " + text
	}
	return fault{line: at.line(), text: text}
}

// line is that of the deepest part of the place that is there. It is asked for only where something is wrong.
func (p place) line() int {
	var root yaml.Node
	if err := yaml.Unmarshal(p.document.text, &root); err != nil || len(root.Content) == 0 {
		return p.document.first
	}
	_, line := yamldoc.At(root.Content[0], p.path)
	return p.document.first + line - 1
}

// syntaxFault is an error of the YAML parser with the line of the file.
func (d document) syntaxFault(err error) error {
	line, text := yamldoc.Complaint(err)
	return fault{line: d.first + max(line, 1) - 1, text: text}
}

// decode reads the document into an object. Fields that are unknown to an object of the API are those of a newer
// version, and are left out; the short form has none of them.
func (d document) decode(into any) error {
	var strict []sigsyaml.JSONOpt
	if _, short := into.(*nodesFile); short {
		strict = append(strict, sigsyaml.DisallowUnknownFields)
	}
	err := sigsyaml.Unmarshal(d.text, into, strict...)
	if err == nil {
		return nil
	}
	var root yaml.Node
	if parseErr := yaml.Unmarshal(d.text, &root); parseErr == nil && len(root.Content) > 0 {
		if wrong := wrongType(root.Content[0], reflect.TypeOf(into).Elem(), place{document: d}); wrong != nil {
			return wrong
		}
	}
	return fault{line: d.first, text: strings.Join(strings.Fields(err.Error()), " ")}
}

var (
	quantityType = reflect.TypeFor[resource.Quantity]()
	timeType     = reflect.TypeFor[metav1.Time]()
)

// wrongType finds the first part of a document that cannot be decoded into its type.
func wrongType(node *yaml.Node, t reflect.Type, at place) error {
	for node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if node.Tag == "!!null" {
		return nil
	}
	wrong := func(want string) error {
		value := strconv.Quote(node.Value)
		switch node.Kind {
		case yaml.MappingNode:
			value = "an object"
		case yaml.SequenceNode:
			value = "a list"
		}
		return at.fault("", "%s; must be %s", value, want)
	}
	switch t {
	case quantityType:
		if _, err := resource.ParseQuantity(node.Value); err != nil || node.Kind != yaml.ScalarNode {
			return wrong(`a quantity such as "8", 500m or 64Gi`)
		}
		return nil
	case timeType:
		if err := new(metav1.Time).UnmarshalQueryParameter(node.Value); err != nil || node.Kind != yaml.ScalarNode {
			return wrong("a time such as 2026-01-05T12:00:00Z")
		}
		return nil
	}
	switch t.Kind() {
	case reflect.Struct:
		return wrongField(node, t, at, wrong)
	case reflect.Map:
		if node.Kind != yaml.MappingNode {
			return wrong("an object")
		}
		for i := 0; i+1 < len(node.Content); i += 2 {
			if err := wrongType(node.Content[i+1], t.Elem(), at.below("["+node.Content[i].Value+"]")); err != nil {
				return err
			}
		}
	case reflect.Slice:
		if node.Kind != yaml.SequenceNode {
			return wrong("a list")
		}
		for i, item := range node.Content {
			if err := wrongType(item, t.Elem(), at.below(fmt.Sprintf("[%d]", i))); err != nil {
				return err
			}
		}
	case reflect.String:
		if node.Kind != yaml.ScalarNode {
			return wrong("a text")
		}
	case reflect.Bool:
		if node.Tag != "!!bool" {
			return wrong("true or false")
		}
	case reflect.Int, reflect.Int32, reflect.Int64:
		if _, err := strconv.ParseInt(node.Value, 0, t.Bits()); err != nil || node.Tag != "!!int" {
			return wrong("a whole number")
		}
	}
	return nil
}

// wrongField looks at the fields of an object. Those that the type does not have are wrong in the short form alone.
func wrongField(node *yaml.Node, t reflect.Type, at place, wrong func(string) error) error {
	if node.Kind != yaml.MappingNode {
		return wrong("an object")
	}
	var known []string
	for i := 0; i+1 < len(node.Content); i += 2 {
		name := node.Content[i].Value
		var fieldType reflect.Type
		known = known[:0]
		for _, field := range reflect.VisibleFields(t) {
			tag, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if tag == "" || tag == "-" {
				continue
			}
			known = append(known, tag)
			if tag == name {
				fieldType = field.Type
			}
		}
		below := at.below("." + name)
		if fieldType == nil && (t == reflect.TypeFor[nodesFile]() || t == reflect.TypeFor[Shape]()) {
			return below.fault("", "unknown field; must be one of %s", strings.Join(known, ", "))
		}
		if fieldType == nil {
			continue
		}
		if err := wrongType(node.Content[i+1], fieldType, below); err != nil {
			return err
		}
	}
	return nil
}
