package validate

import (
	"encoding/json"
	"reflect"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/kustomize/api/types"

	"berth.dev/berth/pkg/schedulerconfig"
	"berth.dev/berth/pkg/yamldoc"
)

// configurationKind is the kind of what configures a scheduler.
const configurationKind = "KubeSchedulerConfiguration"

// document is one document of a file.
type document struct {
	report *Report
	file   string
	// offset is added to line numbers, for a configuration inside a ConfigMap.
	offset int
	root   *yaml.Node
	json   []byte
	metav1.TypeMeta
	name, namespace string
	// profile is the profile of the configuration that is being checked.
	profile string
	// misspelt says that there is an unknown field.
	misspelt bool
}

// object is the name of the document in findings.
func (d *document) object() string {
	switch {
	case d.profile != "":
		return "profile " + d.profile
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

// findIn adds a finding about the field at the path.
func (d *document) findIn(severity Severity, rule, path, message string) {
	d.add(severity, rule, d.line(path), path, message)
}

func (d *document) findAt(severity Severity, rule string, line int, message string) {
	d.add(severity, rule, line, "", message)
}

func (d *document) add(severity Severity, rule string, line int, path, message string) {
	d.report.add(Finding{
		File: d.file, Line: line + d.offset, Severity: severity, Rule: rule,
		Object: d.object(), Field: path, Message: oneLine(message),
	})
}

// check checks the document by its kind.
func (d *document) check() {
	d.report.Objects++
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

// faults reports fields that the type of the object does not have, and values of a wrong type. It returns whether the
// document can be decoded.
func (d *document) faults(object any) bool {
	return d.reportFaults(yamldoc.Faults(d.root, d.json, reflect.TypeOf(object), nil))
}

// reportFaults reports faults, and returns whether all of them are unknown fields.
func (d *document) reportFaults(faults []yamldoc.Fault) bool {
	readable := true
	for _, f := range faults {
		if f.Unknown {
			d.misspelt = true
			severity, message := Error, f.Message
			if name := schedulerconfig.Renamed[f.Path[strings.LastIndexByte(f.Path, '.')+1:]]; name != "" {
				message += "; Coscheduling has " + name
			}
			if !d.owned() { // a newer server may know the field
				severity = Warning
				if d.Kind != types.KustomizationKind {
					message = strings.Replace(message, "unknown field", "unknown field"+inKubernetes, 1)
				}
			}
			d.add(severity, "unknown-field", f.Line, f.Path, message)
			continue
		}
		readable = false
		d.add(Error, "type", f.Line, f.Path, f.Message)
	}
	return readable
}

// line is the line of the deepest part of the path that exists.
func (d *document) line(path string) int {
	_, line := d.at(path)
	return line
}

// at follows a path. If the end does not exist, the node is nil and the line that of the last existing part.
func (d *document) at(path string) (*yaml.Node, int) { return yamldoc.At(d.root, path) }

var anyPath = regexp.MustCompile(`[A-Za-z]+(?:\[[^\]]*\])*(?:\.[A-Za-z]+(?:\[[^\]]*\])*)+`)

// longestBody bounds messages: some repeat the whole object.
const longestBody = 400

// body is the message without the field.
func body(e *field.Error) string {
	text := oneLine(e.ErrorBody())
	if len(text) <= longestBody {
		return text
	}
	return text[:longestBody] + "…"
}
