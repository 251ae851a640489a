package tool_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"berth.dev/berth/pkg/validate"
)

const (
	podHead    = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n"
	jobHead    = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j, namespace: nn}\nspec:\n"
	definition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Thing, plural: things, singular: thing, listKind: ThingList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, required: [size], properties: {size: {type: integer, minimum: 1}, color: {type: string, enum: [red, blue]}}}
---
`
)

// fileCase is a file and what its findings begin with.
type fileCase struct {
	name, text string
	want       []string
}

// serverCases are files about which the API server of a cluster says the same.
func serverCases(t *testing.T) (cases []fileCase) {
	t.Helper()
	archive, err := txtar.ParseFile("../../pkg/validate/testdata/server.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for pair := range slices.Chunk(archive.Files, 2) {
		tt := fileCase{name: pair[0].Name, text: string(pair[0].Data)}
		for line := range strings.Lines(string(pair[1].Data)) {
			tt.want = append(tt.want, strings.TrimSuffix(line, "\n"))
		}
		cases = append(cases, tt)
	}
	return cases
}

func TestWhatTheAPIServerRefusesIsFound(t *testing.T) {
	t.Parallel()
	for _, tt := range append(serverCases(t), []fileCase{
		{name: "a definition and an object of its kind", text: definition +
			"apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a}\nspec: {size: 2}\n"},
		{name: "an object before its definition",
			text: "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a}\nspec:\n  color: green\n---\n" + definition,
			want: []string{`f.yaml:4: error: Thing a: spec.size: Required value (invalid)`, `f.yaml:5: error: Thing a: spec.color: Unsupported value: "green": supported values: "red", "blue" (invalid)`}},
		{name: "a field that a definition does not have", text: definition +
			"apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a, lables: {}}\nspec:\n  size: 1\n  colour: red\n",
			want: []string{`f.yaml:20: error: Thing a: metadata.lables: unknown field; did you mean labels? (unknown-field)`, `f.yaml:23: error: Thing a: spec.colour: unknown field (unknown-field)`}},
		{name: "a definition that is wrong", text: strings.Replace(definition, "scope: Namespaced", "scope: Everywhere", 1),
			want: []string{`f.yaml:6: error: CustomResourceDefinition things.example.com: spec.scope: Unsupported value: "Everywhere": supported values: "Cluster", "Namespaced" (invalid)`}},
		{name: "args of a plugin", text: configHead + "profiles:\n- schedulerName: a\n  pluginConfig:\n  - name: GPUAware\n" +
			"    args:\n      strategy: [Pack]\n  - name: Coscheduling\n    args:\n      scheduleTimeoutSeconds: soon\n",
			want: []string{
				`f.yaml:11: error: profiles[0].pluginConfig[0].args.strategy: Invalid value: a list: must be a string (type)`,
				`f.yaml:14: error: profiles[0].pluginConfig[1].args.scheduleTimeoutSeconds: Invalid value: "soon": must be an integer (type)`,
			}},
		{name: "the short form of nodes", text: "shapes:\n- name: a\n  count: three\n  allocatable: {cpu: lots}\n",
			want: []string{
				`f.yaml:3: error: shapes[0].count: Invalid value: "three": must be an integer (type)`,
				`f.yaml:4: error: shapes[0].allocatable[cpu]: Invalid value: "lots": must be a quantity such as 500m, 4 or 16Gi (type)`,
			}},
	}...) {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			sameBeginnings(t, findings(t, tt.text), tt.want)
		})
	}
}

func TestFilesOfEveryForm(t *testing.T) {
	t.Parallel()
	const good = podHead + "  containers: [{name: c, image: i}]\n"
	for _, tt := range []fileCase{
		{name: "Windows line ends", text: strings.ReplaceAll(podHead+"  contaners: []\n  restartPolicy: Sometimes\n", "\n",
			"\r\n"),
			want: []string{`f.yaml:5: error: Pod p: spec.contaners: unknown field; did you mean containers? (unknown-field)`, `f.yaml:6: error: Pod p: spec.restartPolicy: Unsupported value: "Sometimes"`}},
		{name: "a mark of the byte order", text: "\ufeff" + good},
		{name: "JSON", text: `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},` + "\n" + `"spec": {"containers": [{"name": "c", "image": "i",` + "\n" + `"imagePullPolicy": "Perhaps"}]}}`,
			want: []string{`f.yaml:3: error: Pod p: spec.containers[0].imagePullPolicy: Unsupported value: "Perhaps"`}},
		{name: "objects in JSON that follow each other", text: "# printed by jq\n{\"apiVersion\": \"v1\",\n" +
			"\"kind\": \"ConfigMap\", \"metadata\": {\"name\": \"a\"}}\n" +
			"{\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\", \"metadata\": {\"name\": \"b\"}, \"dta\": {}} {\"apiVersion\": " +
			"\"v1\",\n\"kind\": \"ConfigMap\", \"metadata\": {\"name\": \"c\"},\n\"dta\": {}}\n---\napiVersion: v1\n" +
			"kind: ConfigMap\nmetadata: {name: d}\ndta: {}\n",
			want: []string{`f.yaml:4: error: ConfigMap b: dta: unknown`, `f.yaml:6: error: ConfigMap c: dta: unknown`, `f.yaml:11: error: ConfigMap d: dta: unknown`}},
		{name: "objects in JSON, of which the second is cut off", text: "{\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\", \"metadata\": {\"name\": \"a\"}}\n{\"apiVersion\": \"v1\",\n", want: []string{`f.yaml:2: error: did not find expected`}},
		{name: "several documents, of which some are empty", text: "---\n---\n# nothing\n---\n" + good + "---\n" + good +
			"---\n"},
		{name: "an anchor and what it is merged into", text: podHead +
			"  initContainers:\n  - &c {name: a, image: i}\n  containers:\n  - <<: *c\n    name: b\n    tty: perhaps\n",
			want: []string{`f.yaml:10: error: Pod p: spec.containers[0].tty: Invalid value: "perhaps": must be true or false (type)`}},
		{name: "a fault behind an anchor, once", text: podHead +
			"  initContainers:\n  - &c {name: a, image: i, tty: perhaps}\n  containers:\n  - *c\n",
			want: []string{`f.yaml:6: error: Pod p: spec.initContainers[0].tty: Invalid value`, `f.yaml:6: error: Pod p: spec.containers[0].tty: Invalid value`,
				`f.yaml:6: error: Pod p: spec.initContainers[0].name: Duplicate value: "a" (invalid)`}},
		{name: "an anchor that contains itself", text: "a: &a [*a]\n", want: []string{`f.yaml:1: error: anchor 'a' value contains itself (syntax)`}},
		{name: "a merge of something that is no object", text: "apiVersion: v1\nkind: Pod\nmetadata:\n  <<: 5\n", want: []string{`f.yaml`}},
		{name: "a list of objects", text: "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Pod\n" +
			"  metadata: {name: p}\n  spec: {containers: []}\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: c}\n" +
			"  dta: {}\n",
			want: []string{`f.yaml:7: error: Pod p: spec.containers: Required value (invalid)`, `f.yaml:11: error: ConfigMap c: dta: unknown field; did you mean data? (unknown-field)`}},
		{name: "a list of something else", text: "apiVersion: v1\nkind: List\nitems: [5]\n", want: []string{`f.yaml:3: error: this is not an object with apiVersion and kind (syntax)`}},
		{name: "several keys twice", text: "apiVersion: v1\nkind: Pod\nkind: Pod\nmetadata:\n  name: a\n  name: b\n",
			want: []string{
				`f.yaml:3: error: the key kind is there twice, first in line 2 (syntax)`, `f.yaml:6: error: the key name is there twice, first in line 5 (syntax)`}},
		{name: "text that is not YAML", text: "\x00\x01\x02", want: []string{`f.yaml:1: error: control characters are not allowed (syntax)`}},
		{name: "a character further down that YAML does not know", text: good + "# \x01\n", want: []string{`f.yaml:6: error: control characters are not allowed (syntax)`}},
		{name: "a fault in the first line", text: "a: b: c\nd: e\n", want: []string{`f.yaml:1: error: mapping values are not allowed in this context (syntax)`}},
		{name: "spaces only", text: "  \n\n", want: []string{`f.yaml: error: there is no document in it (empty)`}},
		{name: "many objects", text: strings.Repeat(good+"---\n", 2000)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			sameBeginnings(t, findings(t, tt.text), tt.want)
		})
	}
}

func TestAFileThatIsTooLargeIsNotRead(t *testing.T) {
	t.Parallel()
	err := (&validate.Report{}).Read(strings.NewReader(strings.Repeat("a", 16<<20+1)), "f.yaml")
	if err == nil || !strings.Contains(err.Error(), "f.yaml: larger than 16 MiB") {
		t.Errorf("got %v", err)
	}
}

// sameBeginnings compares each finding with what it has to begin with.
func sameBeginnings(t *testing.T, got, want []string) {
	t.Helper()
	cut := make([]string, len(got))
	for i := range got {
		cut[i] = got[i]
		if i < len(want) && strings.HasPrefix(got[i], want[i]) {
			cut[i] = want[i]
		}
	}
	if diff := cmp.Diff(want, cut); len(got)+len(want) > 0 && diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}
