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

	"berth.dev/berth/pkg/process/schedulerconfig"
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
	json   []byte
	metav1.TypeMeta
	name, namespace string
	// profile is the one of a configuration that is looked at.
	profile string
	// misspelt says that there is a field that the kind does not have.
	misspelt bool
}

// object is how findings call the document.
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

// findIn is about the field at the path.
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

// check finds out what the document is.
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

// faults reports the fields that the type of the object does not have, and the values that it cannot hold. It says
// whether the document can be read as one.
func (d *document) faults(object any) bool {
	return d.tell(yamldoc.Faults(d.root, d.json, reflect.TypeOf(object), nil))
}

// tell reports faults, and says whether there are none but unknown fields.
func (d *document) tell(faults []yamldoc.Fault) bool {
	readable := true
	for _, f := range faults {
		if f.Unknown {
			d.misspelt = true
			severity, message := Error, f.Message
			if word := schedulerconfig.Renamed[f.Path[strings.LastIndexByte(f.Path, '.')+1:]]; word != "" {
				message += "; Coscheduling has " + word
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

// line is that of the deepest part of the path that is there.
func (d *document) line(path string) int {
	_, line := d.at(path)
	return line
}

// at follows a path. Where it leads further than the document goes, the node is nil and the line that of the last one.
func (d *document) at(path string) (*yaml.Node, int) { return yamldoc.At(d.root, path) }

var anyPath = regexp.MustCompile(`[A-Za-z]+(?:\[[^\]]*\])*(?:\.[A-Za-z]+(?:\[[^\]]*\])*)+`)

// longestBody is how much of a message is shown: some repeat the whole object.
const longestBody = 400

// body is the message without the field.
func body(e *field.Error) string {
	text := oneLine(e.ErrorBody())
	if len(text) <= longestBody {
		return text
	}
	return text[:longestBody] + "…"
}
