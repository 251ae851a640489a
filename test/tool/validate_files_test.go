package tool_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/pkg/validate"
	"berth.dev/berth/test/harness/assert"
)

const (
	podHead = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n"
	jobHead = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j, namespace: nn}\nspec:\n"
)

// fileCase is a file and what its findings begin with.
type fileCase struct {
	name, text string
	want       []string
}

func TestValuesAreDecodedStrictly(t *testing.T) {
	t.Parallel()
	for _, tt := range []fileCase{
		{name: "several at once", text: jobHead + "  parallelism: many\n  completions: 2.5\n  suspend: \"yes\"\n" +
			"  template: []\n",
			want: []string{
				`f.yaml:5: error: Job nn/j: spec.parallelism: Invalid value: "many": must be an integer (type)`,
				`f.yaml:6: error: Job nn/j: spec.completions: Invalid value: 2.5: must be an integer (type)`,
				`f.yaml:7: error: Job nn/j: spec.suspend: Invalid value: "yes": must be true or false (type)`,
				`f.yaml:8: error: Job nn/j: spec.template: Invalid value: a list: must be an object (type)`,
			}},
		{name: "an element of a list, with its number", text: podHead + "  tolerations: [{key: a}, 5]\n",
			want: []string{`f.yaml:5: error: Pod p: spec.tolerations[1]: Invalid value: 5: must be an object (type)`}},
		{name: "numbers and words that YAML takes for something else", text: configMap +
			"  a: 1\n  b: yes\n  c: \"yes\"\n  d: 2026-01-01\n  e: ~\n",
			want: []string{`f.yaml:5: error: ConfigMap c: data[a]: Invalid value: 1: must be a string (type)`,
				`f.yaml:6: error: ConfigMap c: data[b]: Invalid value: yes: must be a string (type)`}},
		{name: "a number that is too large", text: jobHead + "  parallelism: 4000000000\n",
			want: []string{
				`f.yaml:5: error: Job nn/j: spec.parallelism: Invalid value: 4000000000: must be an integer (type)`}},
		{name: "a quantity with a unit that there is not", text: podHead +
			"  containers:\n  - name: c\n    resources: {limits: {memory: 16GB}}\n",
			want: []string{`f.yaml:7: error: Pod p: spec.containers[0].resources.limits[memory]: Invalid value: "16GB": ` +
				`must be a quantity such as 500m, 4 or 16Gi (type)`}},
		{name: "a time that is none", text: "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\n" +
			"  creationTimestamp: yesterday\n",
			want: []string{
				`f.yaml:5: error: ConfigMap c: metadata.creationTimestamp: Invalid value: "yesterday": parsing time`}},
		{name: "a secret that is not in base64", text: "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n" +
			"data:\n  a: \"?\"\n",
			want: []string{`f.yaml:5: error: Secret s: data[a]: Invalid value: "?": must be a string in base64 (type)`}},
		{name: "a scalar for an object", text: "apiVersion: v1\nkind: Pod\nmetadata: p\n",
			want: []string{`f.yaml:3: error: Pod: metadata: Invalid value: "p": must be an object (type)`}},
		{name: "an object for a list", text: podHead + "  containers: {name: c}\n",
			want: []string{`f.yaml:5: error: Pod p: spec.containers: Invalid value: an object: must be a list (type)`}},
		{name: "an object of a kind that the files define", text: "apiVersion: apiextensions.k8s.io/v1\n" +
			"kind: CustomResourceDefinition\nmetadata: {name: things.example.com}\nspec: {group: example.com}\n---\n" +
			"apiVersion: example.com/v1\nkind: Thing\nmetadata:\n  name: a\n  labels: {berth.dev/gpu-modles: T4}\n",
			want: []string{`f.yaml:7: note: Thing a: not checked: the fields of this kind in example.com/v1 are not known here`,
				`f.yaml:10: error: Thing a: metadata.labels[berth.dev/gpu-modles]: unknown key`}},
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
	} {
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
		{name: "Windows line ends", text: strings.ReplaceAll(podHead+"  contaners: []\n  restartPolicy: 5\n", "\n",
			"\r\n"),
			want: []string{`f.yaml:5: warning: Pod p: spec.contaners: unknown field in Kubernetes 1.37; did you mean containers? (unknown-field)`, `f.yaml:6: error: Pod p: spec.restartPolicy: Invalid value: 5: must be a string`}},
		{name: "a mark of the byte order", text: "\ufeff" + good},
		{name: "JSON", text: `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},` + "\n" + `"spec": {"containers": [{"name": "c", "image": "i",` + "\n" + `"imagePullPolicy": []}]}}`,
			want: []string{`f.yaml:3: error: Pod p: spec.containers[0].imagePullPolicy: Invalid value: a list: must be a string`}},
		{name: "objects in JSON that follow each other", text: "# printed by jq\n{\"apiVersion\": \"v1\",\n" +
			"\"kind\": \"ConfigMap\", \"metadata\": {\"name\": \"a\"}}\n" +
			"{\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\", \"metadata\": {\"name\": \"b\"}, \"dta\": {}} {\"apiVersion\": " +
			"\"v1\",\n\"kind\": \"ConfigMap\", \"metadata\": {\"name\": \"c\"},\n\"dta\": {}}\n---\napiVersion: v1\n" +
			"kind: ConfigMap\nmetadata: {name: d}\ndta: {}\n",
			want: []string{`f.yaml:4: warning: ConfigMap b: dta: unknown`, `f.yaml:6: warning: ConfigMap c: dta: unknown`, `f.yaml:11: warning: ConfigMap d: dta: unknown`}},
		{name: "objects in JSON, of which the second is cut off", text: "{\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\", \"metadata\": {\"name\": \"a\"}}\n{\"apiVersion\": \"v1\",\n", want: []string{`f.yaml:2: error: did not find expected`}},
		{name: "several documents, of which some are empty", text: "---\n---\n# nothing\n---\n" + good + "---\n" + good +
			"---\n"},
		{name: "an anchor and what it is merged into", text: podHead +
			"  initContainers:\n  - &c {name: a, image: i}\n  containers:\n  - <<: *c\n    name: b\n    tty: perhaps\n",
			want: []string{`f.yaml:10: error: Pod p: spec.containers[0].tty: Invalid value: "perhaps": must be true or false (type)`}},
		{name: "a fault behind an anchor, once", text: podHead +
			"  initContainers:\n  - &c {name: a, image: i, tty: perhaps}\n  containers:\n  - *c\n",
			want: []string{`f.yaml:6: error: Pod p: spec.containers[0].tty: Invalid value`, `f.yaml:6: error: Pod p: spec.initContainers[0].tty: Invalid value`}},
		{name: "an anchor that contains itself", text: "a: &a [*a]\n", want: []string{`f.yaml:1: error: anchor 'a' value contains itself (syntax)`}},
		{name: "a merge of something that is no object", text: "apiVersion: v1\nkind: Pod\nmetadata:\n  <<: 5\n", want: []string{`f.yaml`}},
		{name: "a list of objects", text: "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Pod\n" +
			"  metadata: {name: p}\n  spec: {contaners: []}\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: c}\n" +
			"  dta: {}\n",
			want: []string{`f.yaml:7: warning: Pod p: spec.contaners: unknown field in Kubernetes 1.37; did you mean containers? (unknown-field)`, `f.yaml:11: warning: ConfigMap c: dta: unknown field in Kubernetes 1.37; did you mean data? (unknown-field)`}},
		{name: "a list of something else", text: "apiVersion: v1\nkind: List\nitems: [5]\n", want: []string{`f.yaml:3: error: this is not an object with apiVersion and kind (syntax)`}},
		{name: "several keys twice", text: "apiVersion: v1\nkind: Pod\nkind: Pod\nmetadata:\n  name: a\n  name: b\n",
			want: []string{
				`f.yaml:3: error: key "kind" already set in map (syntax)`, `f.yaml:6: error: key "name" already set in map (syntax)`}},
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
	assert.Contains(t, fmt.Sprint(err), "f.yaml: larger than 16 MiB")
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
