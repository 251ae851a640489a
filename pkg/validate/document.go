package validate

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/pkg/yamldoc"
)

// configurationKind is the kind of what configures a scheduler.
const configurationKind = "KubeSchedulerConfiguration"

// document is one document of a file.
type document struct {
	report *Report
	file   string
	// offset is added to lines: a configuration inside a ConfigMap begins further down.
	offset int
	root   *yaml.Node
	metav1.TypeMeta
	name, namespace string
	json            []byte
	// faults are the fields with errors.
	faults []string
}

// object is how findings call the document.
func (d *document) object() string {
	switch {
	case d.Kind == "" || d.Kind == configurationKind:
		return ""
	case d.name == "":
		return d.Kind
	case d.namespace == "":
		return d.Kind + " " + d.name
	}
	return d.Kind + " " + d.namespace + "/" + d.name
}

func (d *document) find(severity Severity, rule, path, message string) {
	d.findAt(severity, rule, d.line(path), message)
}

// findIn is about the field at the path.
func (d *document) findIn(severity Severity, rule, path, message string) {
	d.add(severity, rule, d.line(path), path, message)
}

func (d *document) findAt(severity Severity, rule string, line int, message string) {
	d.add(severity, rule, line, "", message)
}

func (d *document) add(severity Severity, rule string, line int, path, message string) {
	if severity == Error && path != "" {
		d.faults = append(d.faults, path)
	}
	d.report.add(Finding{
		File: d.file, Line: line + d.offset, Severity: severity, Rule: rule,
		Object: d.object(), Field: path, Message: oneLine(message),
	})
}

// check finds out what the document is.
func (d *document) check() {
	d.report.Objects++
	if d.duplicates(d.root) {
		return
	}
	var err error
	if d.json, err = yamldoc.JSON(d.root); err != nil {
		d.report.add(yamlFindings(d.file, d.offset, d.root.Line, err)...)
		return
	}
	if err := json.Unmarshal(d.json, &d.TypeMeta); err != nil || d.root.Kind != yaml.MappingNode {
		d.findAt(Error, "syntax", d.root.Line, "this is not an object with apiVersion and kind")
		return
	}
	metadata := yamldoc.Child(d.root, "metadata")
	d.name, d.namespace = yamldoc.Text(yamldoc.Child(metadata, "name")), yamldoc.Text(yamldoc.Child(metadata, "namespace"))
	switch {
	case d.Kind == configurationKind:
		d.configuration()
	case d.Kind == "ConfigMap" && d.APIVersion == "v1":
		d.manifest()
		d.configMap()
	default:
		d.manifest()
	}
}

// against holds the document against the type of an object, and tells what is wrong.
func (d *document) against(object any) *yamldoc.Structure {
	s := yamldoc.Against(d.root, object)
	d.tell(s)
	return s
}

// tell reports the fields that a type does not have, and the values that it cannot hold.
func (d *document) tell(s *yamldoc.Structure) {
	for _, f := range s.Faults {
		rule := "type"
		if f.Unknown {
			rule = "unknown-field"
		}
		d.add(Error, rule, f.Line, f.Path, f.Message)
	}
}

// duplicates finds keys that occur twice.
func (d *document) duplicates(node *yaml.Node) bool {
	found := false
	lines := map[string]int{}
	for i, c := range node.Content {
		if node.Kind == yaml.MappingNode && i%2 == 0 && c.Kind == yaml.ScalarNode && c.ShortTag() != "!!merge" {
			if line, twice := lines[c.Value]; twice {
				found = true
				d.findAt(Error, "syntax", c.Line,
					fmt.Sprintf("the key %s is there twice, first in line %d", c.Value, line+d.offset))
			} else {
				lines[c.Value] = c.Line
			}
		}
		found = d.duplicates(c) || found
	}
	return found
}

// line is that of the deepest part of the path that is there.
func (d *document) line(path string) int {
	_, line := d.at(path)
	return line
}

// at follows a path. Where it leads further than the document goes, the node is nil and the line that of the last one.
func (d *document) at(path string) (*yaml.Node, int) { return yamldoc.At(d.root, path) }

var (
	unknownField = regexp.MustCompile(`(unknown|duplicate) field "([^"]+)"`)
	nestedPlace  = regexp.MustCompile(`decoding \.?(profiles\[[A-Za-z0-9_.\[\]]+):`)
	goField      = regexp.MustCompile(`Go (?:struct field|value of type) ([A-Za-z0-9_.\[\]]+)`)
	anyPath      = regexp.MustCompile(`[A-Za-z]+(?:\[[^\]]*\])*(?:\.[A-Za-z]+(?:\[[^\]]*\])*)+`)
)

// decodingErrors splits what a strict decoder says into findings with the lines of the fields.
func (d *document) decodingErrors(err error) {
	text := err.Error()
	// A nested place holds for what is said after it, up to the next.
	base := func(before int) string {
		place := ""
		for _, m := range nestedPlace.FindAllStringSubmatchIndex(text, -1) {
			if m[0] < before {
				place = text[m[2]:m[3]]
			}
		}
		if strings.Contains(place, "pluginConfig") && !strings.HasSuffix(place, "args") {
			place += ".args"
		}
		return place
	}
	if fields := unknownField.FindAllStringSubmatchIndex(text, -1); len(fields) > 0 {
		for _, m := range fields {
			kind, path := text[m[2]:m[3]], text[m[4]:m[5]]
			if at := base(m[0]); at != "" {
				path = at + "." + path
			}
			d.findIn(Error, kind+"-field", path, kind+" field")
		}
		return
	}
	if m := goField.FindStringSubmatch(text); m != nil {
		_, field, _ := strings.Cut(m[1], ".")
		d.find(Error, "type", field, text)
		return
	}
	d.find(Error, "invalid", base(len(text)), text)
}
