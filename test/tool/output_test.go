package tool_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"berth.dev/berth/pkg/advise"
	"berth.dev/berth/pkg/cluster/overview"
	"berth.dev/berth/pkg/explain"
	"berth.dev/berth/pkg/lab/replay/replayed"
	"berth.dev/berth/pkg/lab/report"
	"berth.dev/berth/pkg/output"
	"berth.dev/berth/pkg/sandbox/demo"
	"berth.dev/berth/pkg/screen/command"
	"berth.dev/berth/pkg/validate"
	"berth.dev/berth/test/harness/require"
)

var (
	camelCase = regexp.MustCompile(`^[a-z][A-Za-z0-9]*$`)
	// measured is what has a unit, and units are what its name has to say then.
	measured = regexp.MustCompile(`(?i)(wait|duration|memory|cost|price|bill|wall|age|timeout|latency|completion)`)
	units    = regexp.MustCompile(`(Seconds|Milliseconds|Hours|MiB|Bytes|Percent|[mM]icroDollars(PerHour)?|[mM]illiGPU|Histogram)$`)
)

// kinds are those of docs/internals/output.md by what is printed under their name.
var kinds = map[string]any{
	"Explanation": &explain.Explanation{}, "Advice": &advise.Advice{}, "ReplayResult": &replayed.Result{},
	"ReplayComparison": &report.Comparison{},
	"ValidationReport": &validate.Report{}, "Version": &command.Version{},
	"DemoOutcome":     &demo.Outcome{},
	"ClusterOverview": &overview.Cluster{}, "ClusterStatus": &overview.Status{}, "JobList": &overview.JobList{},
}

// eachField calls f for the fields of a type and of all types in it.
func eachField(t reflect.Type, path string, seen map[reflect.Type]bool,
	f func(path string, field reflect.StructField)) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Array:
		eachField(t.Elem(), path, seen, f)
	case reflect.Struct:
		if seen[t] || t == reflect.TypeFor[time.Time]() {
			return
		}
		seen[t] = true
		for i := range t.NumField() {
			field := t.Field(i)
			if !field.IsExported() || field.Tag.Get("json") == "-" {
				continue
			}
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			f(path+"."+name, field)
			eachField(field.Type, path+"."+name, seen, f)
		}
	}
}

func TestFieldsAreInTheStyleOfKubernetes(t *testing.T) {
	t.Parallel()
	for kind, value := range kinds {
		eachField(reflect.TypeOf(value), kind, map[reflect.Type]bool{}, func(path string, field reflect.StructField) {
			name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
			if !camelCase.MatchString(name) {
				t.Errorf("%s: the field %s has the name %q, want camel case", path, field.Name, name)
			}
			of := field.Type
			if of.Kind() == reflect.Slice && strings.Contains(options, "omit") {
				t.Errorf("%s: an empty list is left out, want []", path)
			}
			if of == reflect.TypeFor[time.Duration]() {
				t.Errorf("%s is a number of nanoseconds, want seconds", path)
			}
			number := of.Kind() >= reflect.Int && of.Kind() <= reflect.Float64
			counts := strings.HasPrefix(name, "nodes")
			if number && !counts && measured.MatchString(name) && !units.MatchString(name) {
				t.Errorf("%s has a unit, which its name does not say", path)
			}
		})
	}
}

func TestEmptyValuesHaveAllTheirLists(t *testing.T) {
	t.Parallel()
	for kind, value := range kinds {
		of := reflect.TypeOf(value).Elem()
		var out bytes.Buffer
		require.NoError(t, output.Write(&out, output.JSON, reflect.New(of).Interface()))
		var fields map[string]any
		require.NoError(t, json.Unmarshal(out.Bytes(), &fields))
		if fields["apiVersion"] != output.APIVersion || fields["kind"] != kind {
			t.Errorf("%s begins with %.80s", kind, out.String())
		}
		for i := range of.NumField() {
			name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
			isList := of.Field(i).Type.Kind() == reflect.Slice && of.Field(i).IsExported() && name != "-"
			if _, ok := fields[name].([]any); isList && !ok {
				t.Errorf("%s.%s is %v, want []", kind, name, fields[name])
			}
		}
	}
}

func TestJSONAndYAMLSayTheSame(t *testing.T) {
	t.Parallel()
	value := &explain.Explanation{Profile: "p",
		Nodes: []explain.Node{{Name: "n", Rejected: &explain.Rejection{Plugin: "q"}}}}
	var asJSON, asYAML bytes.Buffer
	require.NoError(t, output.Write(&asJSON, output.JSON, value))
	require.NoError(t, output.Write(&asYAML, output.YAML, value))
	converted, err := yaml.YAMLToJSON(asYAML.Bytes())
	require.NoError(t, err)
	var a, b any
	require.NoError(t, json.Unmarshal(asJSON.Bytes(), &a))
	require.NoError(t, json.Unmarshal(converted, &b))
	if diff := cmp.Diff(a, b); diff != "" {
		t.Errorf("-JSON +YAML:\n%s", diff)
	}
	if strings.Contains(asJSON.String(), "null") || !strings.Contains(asJSON.String(), `"reasons": []`) {
		t.Errorf("a list is not empty but null:\n%s", asJSON.String())
	}
}

func TestOnlyKindsWithADescriptionArePrinted(t *testing.T) {
	t.Parallel()
	for _, value := range []any{nil, 5, struct{}{}, &struct{}{}, validate.Report{}, (*validate.Report)(nil)} {
		if err := output.Write(&bytes.Buffer{}, output.JSON, value); err == nil {
			t.Errorf("%#v is printed", value)
		}
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "internals", "output.md"))
	require.NoError(t, err)
	sections := map[string]string{} // by anchor
	for section := range strings.SplitSeq(string(page), "\n## ") {
		heading, text, _ := strings.Cut(section, "\n")
		sections[strings.ToLower(heading)] = text
	}
	for kind, value := range kinds {
		section, found := sections[strings.ToLower(kind)]
		if !found {
			t.Errorf("docs/internals/output.md has no section on %s", kind)
			continue
		}
		for _, link := range regexp.MustCompile(`\]\(#(\w+)\)`).FindAllStringSubmatch(section, -1) {
			section += sections[link[1]]
		}
		eachField(reflect.TypeOf(value), "", map[reflect.Type]bool{}, func(path string, field reflect.StructField) {
			name := path[strings.LastIndexByte(path, '.')+1:]
			if !strings.Contains(section, "`"+name+"`") {
				t.Errorf("docs/internals/output.md does not say what %s of %s is", strings.TrimPrefix(path, "."), kind)
			}
		})
	}
}

// The kinds that are printed are in a variable of the package: one that is added there is tested here.
func TestEachKindThatIsPrintedIsTested(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile(filepath.Join("..", "..", "pkg", "output", "output.go"))
	require.NoError(t, err)
	var printed []string
	for _, entry := range regexp.MustCompile(`reflect\.TypeFor\[[^\]]*\]\(\):\s*"(\w+)"`).FindAllStringSubmatch(string(source), -1) {
		printed = append(printed, entry[1])
	}
	slices.Sort(printed)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(kinds)), printed); diff != "" {
		t.Errorf("kinds (-tested +printed):\n%s", diff)
	}
}
