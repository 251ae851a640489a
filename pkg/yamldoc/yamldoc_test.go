package yamldoc_test

import (
	"errors"
	"testing"

	"go.yaml.in/yaml/v3"

	"berth.dev/berth/pkg/yamldoc"
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
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
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
		"yaml: line 3: mapping values are not allowed":                             {3, "mapping values are not allowed"},
		"error converting YAML to JSON: yaml: line 12: did not find a key":         {12, "did not find a key"},
		"yaml: unmarshal errors:\n  line 4: cannot unmarshal !!str":                {4, "cannot unmarshal !!str"},
		"yaml: control characters are not allowed":                                 {0, "control characters are not allowed"},
		"line 5: mapping key \"a\" already defined at line 4":                      {5, "mapping key \"a\" already defined at line 4"},
		"Job j: strict decoding error:\nunknown field \"spec.line 9: not a line\"": {0, `Job j: strict decoding error: unknown field "spec.line 9: not a line"`},
	} {
		if line, text := yamldoc.Complaint(errors.New(said)); line != want.line || text != want.text {
			t.Errorf("%q is %d, %q; want %d, %q", said, line, text, want.line, want.text)
		}
	}
}
