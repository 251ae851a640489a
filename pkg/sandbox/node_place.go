package sandbox

import (
	"fmt"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
	sigsyaml "sigs.k8s.io/yaml"

	"berth.dev/berth/pkg/yamldoc"
)

// place is a field of a document.
type place struct {
	document yamldoc.Document
	path     string
	// short says that it is a shape, which has the fields of a node without the objects around them.
	short bool
}

// below is a field of the place.
func (p place) below(path string) place {
	p.path = strings.TrimPrefix(p.path+path, ".")
	return p
}

// of is the field of a node at the place.
func (p place) of(path string) place {
	if p.short {
		_, path, _ = strings.Cut(path, ".")
	}
	return p.below("." + path)
}

// fault is an error at a place.
type fault struct {
	line int
	text string
}

func (f fault) Error() string { return f.text }

func (p place) fault(format string, args ...any) error {
	text := strings.TrimPrefix(p.path+": "+fmt.Sprintf(format, args...), ": ")
	return fault{line: p.line(), text: text}
}

// line is that of the deepest part of the place that exists. It is only computed for errors.
func (p place) line() int {
	var root yaml.Node
	if err := yaml.Unmarshal(p.document.Text, &root); err != nil || len(root.Content) == 0 {
		return p.document.First
	}
	_, line := yamldoc.At(root.Content[0], p.path)
	return p.document.First + line - 1
}

// syntaxFault is an error of the YAML parser with the line of the file.
func syntaxFault(d yamldoc.Document, err error) error {
	line, text := yamldoc.Complaint(err)
	return fault{line: d.First + max(line, 1) - 1, text: text}
}

// decode reads a document into an object. Unknown fields of a Kubernetes object are ignored: they may be of a newer
// version. In the short form they are errors.
func decode(d yamldoc.Document, content []byte, into any) error {
	var strict []sigsyaml.JSONOpt
	_, short := into.(*nodesFile)
	if short {
		strict = append(strict, sigsyaml.DisallowUnknownFields)
	}
	// Unmarshal accepts numbers for strings, but Faults does not.
	err := sigsyaml.Unmarshal(d.Text, into, strict...)
	if err == nil {
		return nil
	}
	var root yaml.Node
	if syntaxErr := yaml.Unmarshal(d.Text, &root); syntaxErr != nil {
		return syntaxFault(d, syntaxErr)
	}
	for _, f := range yamldoc.Faults(root.Content[0], content, reflect.TypeOf(into), nil) {
		if short || !f.Unknown {
			return fault{line: d.First + f.Line - 1, text: strings.TrimPrefix(f.Path+": "+f.Message, ": ")}
		}
	}
	return fault{line: d.First, text: strings.Join(strings.Fields(err.Error()), " ")}
}
