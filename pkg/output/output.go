// Package output prints the results of commands as JSON or YAML, in the style of Kubernetes: each value has a kind and
// an apiVersion, names are in camel case, and empty lists are [], never null and never left out.
//
// The commands with --output call it. It computes nothing.
package output

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"

	"sigs.k8s.io/yaml"

	"berth.dev/berth/pkg/advise"
	"berth.dev/berth/pkg/cluster/overview"
	"berth.dev/berth/pkg/explain"
	"berth.dev/berth/pkg/lab/replay/replayed"
	"berth.dev/berth/pkg/lab/report"
	"berth.dev/berth/pkg/sandbox/demo"
	"berth.dev/berth/pkg/screen/command"
	"berth.dev/berth/pkg/validate"
)

// APIVersion is the version of the fields of all kinds. Within a version, fields are added but never removed or
// changed.
const APIVersion = "output.berth.dev/v1"

// kinds are the kinds of results. docs/internals/output.md describes each.
var kinds = map[reflect.Type]string{
	reflect.TypeFor[explain.Explanation](): "Explanation",
	reflect.TypeFor[advise.Advice]():       "Advice",
	reflect.TypeFor[replayed.Result]():     "ReplayResult",
	reflect.TypeFor[report.Comparison]():   "ReplayComparison",
	reflect.TypeFor[validate.Report]():     "ValidationReport",
	reflect.TypeFor[command.Version]():     "Version",
	reflect.TypeFor[demo.Outcome]():        "DemoOutcome",
	reflect.TypeFor[overview.Cluster]():    "ClusterOverview",
	reflect.TypeFor[overview.JobList]():    "JobList",
	reflect.TypeFor[overview.Status]():     "ClusterStatus",
}

// Write prints a pointer to a value of one of the kinds as JSON or, with the same field names, as YAML.
func Write(out io.Writer, format Format, value any) error {
	data, err := encode(value)
	if err == nil && format == YAML {
		data, err = yaml.JSONToYAML(data)
	} else if err == nil {
		var indented bytes.Buffer
		err = json.Indent(&indented, data, "", "  ")
		indented.WriteByte('\n')
		data = indented.Bytes()
	}
	if err == nil {
		_, err = out.Write(data)
	}
	if err != nil {
		return fmt.Errorf("printing %s: %w", strings.ToUpper(string(format)), err)
	}
	return nil
}

// encode puts version and kind before the fields.
func encode(value any) ([]byte, error) {
	v := reflect.ValueOf(value)
	kind, ok := "", false
	if v.Kind() == reflect.Pointer && !v.IsNil() {
		kind, ok = kinds[v.Type().Elem()]
	}
	if !ok {
		return nil, fmt.Errorf("%T is not a kind that is printed", value)
	}
	fillLists(v)
	data, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("encoding a %s: %w", kind, err)
	}
	head, err := json.Marshal(struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}{APIVersion, kind})
	if err != nil {
		return nil, fmt.Errorf("encoding a %s: %w", kind, err)
	}
	if len(data) == len("{}") {
		return head, nil
	}
	return append(append(head[:len(head)-1], ','), data[1:]...), nil
}

// fillLists replaces nil lists and maps in a value by empty ones.
func fillLists(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			fillLists(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fillLists(v.Field(i))
			}
		}
	case reflect.Slice:
		if v.IsNil() && v.CanSet() {
			v.Set(reflect.MakeSlice(v.Type(), 0, 0))
		}
		for i := range v.Len() {
			fillLists(v.Index(i))
		}
	case reflect.Map:
		if v.IsNil() && v.CanSet() {
			v.Set(reflect.MakeMap(v.Type()))
		}
		for _, key := range v.MapKeys() {
			fillLists(v.MapIndex(key)) // changes values behind pointers
		}
	}
}
