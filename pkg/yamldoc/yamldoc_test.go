package yamldoc_test

import (
	"errors"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
	sigsyaml "sigs.k8s.io/yaml"

	"berth.dev/berth/pkg/yamldoc"
	"berth.dev/berth/test/harness/require"
)

const text = `profiles:
- schedulerName: gpu
  pluginConfig:
  - name: GPUAware
    args: &args
      weights: {packing: 1}
  - name: CostOptimized
    args: *args
labels:
  a.b/c: x
`

func TestAPathLeadsToItsLine(t *testing.T) {
	t.Parallel()
	var doc yaml.Node
	require.NoError(t, yaml.Unmarshal([]byte(text), &doc))
	for _, tc := range []struct {
		path  string
		line  int
		found bool
	}{
		{"", 1, true},
		{"profiles[0].schedulerName", 2, true},
		{"profiles[gpu].pluginConfig[GPUAware].args.weights", 6, true},
		{"profiles[gpu].pluginConfig[CostOptimized].args.weights", 6, true},
		{"labels[a.b/c]", 10, true},
		{"profiles[7].schedulerName", 1, false},
		{"profiles[gpu].pluginConfig[1].args.strategy", 8, false},
	} {
		node, line := yamldoc.At(doc.Content[0], tc.path)
		if line != tc.line || (node != nil) != tc.found {
			t.Errorf("%q is in line %d, found %t; want %d, %t", tc.path, line, node != nil, tc.line, tc.found)
		}
	}
	if line := yamldoc.KeyLine(doc.Content[0], "labels"); line != 9 || yamldoc.Child(doc.Content[0], "none") != nil {
		t.Errorf("labels are in line %d", line)
	}
}

func TestTheParserNamesLines(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]struct {
		line int
		text string
	}{
		"yaml: line 3: mapping values are not allowed":                     {3, "mapping values are not allowed"},
		"error converting YAML to JSON: yaml: line 12: did not find a key": {12, "did not find a key"},
		"yaml: unmarshal errors:\n  line 4: cannot unmarshal !!str":        {4, "cannot unmarshal !!str"},
		"yaml: control characters are not allowed":                         {0, "control characters are not allowed"},
		"line 5: mapping key \"a\" already defined at line 4": {5,
			"mapping key \"a\" already defined at line 4"},
		"Job j: strict decoding error:\nunknown field \"spec.line 9: not a line\"": {0, `Job j: strict decoding error: unknown field "spec.line 9: not a line"`},
	} {
		if line, text := yamldoc.Complaint(errors.New(said)); line != want.line || text != want.text {
			t.Errorf("%q is %d, %q; want %d, %q", said, line, text, want.line, want.text)
		}
	}
}

func TestAFileIsSplitIntoItsDocuments(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		file string
		want []yamldoc.Document
	}{
		"nothing but comments is no document": {"# a\n---\n\n# b\n...\n", nil},
		"marks and empty documents count as lines": {"---\na: 1\n---\n---\nb: 2\n",
			[]yamldoc.Document{{2, []byte("a: 1\n")}, {5, []byte("b: 2\n")}}},
		"objects in JSON follow each other without a mark": {"{\"a\":\n1}\n{\"b\": 2}\n",
			[]yamldoc.Document{{1, []byte("{\"a\":\n1}")}, {3, []byte("{\"b\": 2}")}}},
		"a document may begin behind its mark": {"--- {a: 1}\n", []yamldoc.Document{{1, []byte("{a: 1}\n")}}},
	} {
		if diff := cmp.Diff(tc.want, yamldoc.Split([]byte(tc.file))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestEveryFaultOfADocumentIsFound(t *testing.T) {
	t.Parallel()
	var doc yaml.Node
	const file = "name: [a]\nitems:\n- &small {size: 1.5}\n- {size: 3, colour: red}\nlable: x\nmore:\n" +
		"- <<: *small\n- *small\n"
	require.NoError(t, yaml.Unmarshal([]byte(file), &doc))
	text, err := sigsyaml.YAMLToJSON([]byte(file))
	require.NoError(t, err)
	type item struct {
		Size int `json:"size"`
	}
	got := yamldoc.Faults(doc.Content[0], text, reflect.TypeFor[struct {
		Name  string `json:"name"`
		Label string `json:"label"`
		Items []item `json:"items"`
		More  []item `json:"more"`
	}](), nil)
	want := []yamldoc.Fault{
		{Line: 1, Path: "name", Message: "Invalid value: a list: must be a string"},
		{Line: 3, Path: "items[0].size", Message: "Invalid value: 1.5: must be an integer"},
		{Line: 3, Path: "more[0].size", Message: "Invalid value: 1.5: must be an integer"},
		{Line: 3, Path: "more[1].size", Message: "Invalid value: 1.5: must be an integer"},
		{Line: 4, Path: "items[1].colour", Unknown: true, Message: "unknown field"},
		{Line: 5, Path: "lable", Unknown: true, Message: "unknown field; did you mean label?"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
