package validate

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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

// serverCases are files of which it is for the API server to say what is wrong.
func serverCases() []fileCase {
	return []fileCase{
		{name: "a Deployment without a selector", text: "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  template:\n    metadata: {labels: {a: b}}\n    spec: {containers: [{name: c, image: i}]}\n",
			want: []string{`f.yaml:4: error: Deployment web: spec.selector: Required value (invalid)`}},
		{name: "a Deployment whose selector selects other pods", text: "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  selector: {matchLabels: {a: c}}\n  template:\n    metadata:\n      labels: {a: b}\n    spec: {containers: [{name: c, image: i}]}\n",
			want: []string{"f.yaml:8: error: Deployment web: spec.template.metadata.labels: Invalid value: {\"a\":\"b\"}: `selector` does not match template `labels` (invalid)"}},
		{name: "a Deployment whose pods end", text: "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  selector: {matchLabels: {a: b}}\n  template:\n    metadata: {labels: {a: b}}\n    spec:\n      restartPolicy: Never\n      containers: [{name: c, image: i}]\n",
			want: []string{`f.yaml:9: error: Deployment web: spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always" (invalid)`}},
		{name: "a Job without a restart policy", text: jobHead + "  template:\n    spec:\n      containers: [{name: c, image: i}]\n",
			want: []string{`f.yaml:6: error: Job nn/j: spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never" (invalid)`}},
		{name: "a restart policy that there is not", text: podHead + "  restartPolicy: Sometimes\n  containers: [{name: c, image: i}]\n",
			want: []string{`f.yaml:5: error: Pod p: spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never" (invalid)`}},
		{name: "a pod without containers", text: "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n",
			want: []string{`f.yaml:1: error: Pod p: spec.containers: Required value (invalid)`}},
		{name: "a container without an image", text: podHead + "  containers:\n  - name: c\n",
			want: []string{`f.yaml:6: error: Pod p: spec.containers[0].image: Required value (invalid)`}},
		{name: "two containers of one name", text: podHead + "  containers:\n  - {name: c, image: i}\n  - {name: c, image: i}\n",
			want: []string{`f.yaml:7: error: Pod p: spec.containers[1].name: Duplicate value: "c" (invalid)`}},
		{name: "a name with capital letters", text: strings.Replace(podHead, "name: p", "name: P", 1) + "  containers: [{name: c, image: i}]\n",
			want: []string{`f.yaml:3: error: Pod P: metadata.name: Invalid value: "P": a lowercase RFC 1123 subdomain`}},
		{name: "no name at all", text: "apiVersion: v1\nkind: ConfigMap\nmetadata: {}\n",
			want: []string{`f.yaml:3: error: ConfigMap: metadata.name: Required value: name or generateName is required (invalid)`}},
		{name: "a generated name", text: "apiVersion: v1\nkind: ConfigMap\nmetadata: {generateName: c-}\n"},
		{name: "a fraction of a GPU", text: podHead + "  containers:\n  - name: c\n    image: i\n    resources:\n      limits:\n        nvidia.com/gpu: 500m\n",
			want: []string{`f.yaml:10: error: Pod p: spec.containers[0].resources.limits[nvidia.com/gpu]: Invalid value: "500m": must be an integer (invalid)`}},
		{name: "a resource without a domain", text: podHead + "  containers:\n  - name: c\n    image: i\n    resources: {limits: {gpu: 1}}\n",
			want: []string{`f.yaml:8: error: Pod p: spec.containers[0].resources.limits[gpu]: Invalid value: "gpu": must be a standard resource type or fully qualified (invalid)`}},
		{name: "a request above its limit", text: podHead + "  containers:\n  - name: c\n    image: i\n    resources: {requests: {cpu: 2}, limits: {cpu: 1}}\n",
			want: []string{`f.yaml:8: error: Pod p: spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1 (invalid)`}},
		{name: "a GPU that is requested without a limit", text: podHead + "  containers:\n  - name: c\n    image: i\n    resources: {requests: {nvidia.com/gpu: 1}}\n",
			want: []string{`f.yaml:8: error: Pod p: spec.containers[0].resources.limits: Required value: Limit must be set for non overcommitable resources (invalid)`}},
		{name: "a toleration with an operator that there is not", text: podHead + "  tolerations: [{key: a, operator: Matches}]\n  containers: [{name: c, image: i}]\n",
			want: []string{`f.yaml:5: error: Pod p: spec.tolerations[0].operator: Unsupported value: "Matches": supported values: "Equal", "Exists" (invalid)`}},
		{name: "a PriorityClass above what users may set", text: "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: top}\nvalue: 2000000000\n",
			want: []string{`f.yaml:4: error: PriorityClass top: value: Forbidden: maximum allowed value of a user defined priority is 1000000000 (invalid)`}},
		{name: "a Service without ports", text: "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {selector: {a: b}}\n",
			want: []string{`f.yaml:4: error: Service s: spec.ports: Required value (invalid)`}},
		{name: "a headless Service", text: "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {clusterIP: None, ports: [{port: 80}]}\n"},
		{name: "a PodGroup below its minimum", text: "apiVersion: scheduling.x-k8s.io/v1alpha1\nkind: PodGroup\nmetadata: {name: g}\nspec:\n  minMember: -3\n",
			want: []string{`f.yaml:5: error: PodGroup g: spec.minMember: Invalid value: -3: should be greater than or equal to 1 (invalid)`}},
		{name: "a version that is gone", text: "apiVersion: policy/v1beta1\nkind: PodDisruptionBudget\nmetadata: {name: b}\n",
			want: []string{`f.yaml:1: error: PodDisruptionBudget b: apiVersion: policy/v1beta1 is not served since Kubernetes 1.25; use policy/v1 (kind)`}},
		{name: "what the server warns of", text: podHead + "  containers:\n  - name: c\n    image: i\n    env: [{name: A, value: \"1\"}, {name: A, value: \"2\"}]\n",
			want: []string{`f.yaml:8: warning: Pod p: spec.containers[0].env[1]: hides previous definition of "A", which may be dropped when using apply (server)`}},
		{name: "a definition and an object of its kind", text: definition + "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a}\nspec: {size: 2}\n"},
		{name: "an object before its definition", text: "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a}\nspec:\n  color: green\n---\n" + definition,
			want: []string{`f.yaml:4: error: Thing a: spec.size: Required value (invalid)`, `f.yaml:5: error: Thing a: spec.color: Unsupported value: "green": supported values: "red", "blue" (invalid)`}},
		{name: "a field that a definition does not have", text: definition + "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a, lables: {}}\nspec:\n  size: 1\n  colour: red\n",
			want: []string{`f.yaml:20: error: Thing a: metadata.lables: unknown field; did you mean labels? (unknown-field)`, `f.yaml:23: error: Thing a: spec.colour: unknown field (unknown-field)`}},
		{name: "a definition that is wrong", text: strings.Replace(definition, "scope: Namespaced", "scope: Everywhere", 1),
			want: []string{`f.yaml:6: error: CustomResourceDefinition things.example.com: spec.scope: Unsupported value: "Everywhere": supported values: "Cluster", "Namespaced" (invalid)`}},
	}
}

func TestWhatTheAPIServerRefusesIsFound(t *testing.T) {
	t.Parallel()
	for _, tt := range serverCases() {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			sameBeginnings(t, findings(t, tt.text), tt.want)
		})
	}
}

// typeCases are files with values of a wrong type.
func typeCases() []fileCase {
	return []fileCase{
		{name: "several at once", text: jobHead + "  parallelism: many\n  completions: 2.5\n  suspend: \"yes\"\n  template: []\n",
			want: []string{
				`f.yaml:5: error: Job nn/j: spec.parallelism: Invalid value: "many": must be an integer (type)`,
				`f.yaml:6: error: Job nn/j: spec.completions: Invalid value: 2.5: must be an integer (type)`,
				`f.yaml:7: error: Job nn/j: spec.suspend: Invalid value: "yes": must be true or false (type)`,
				`f.yaml:8: error: Job nn/j: spec.template: Invalid value: a list: must be an object (type)`,
			}},
		{name: "one beside what the server refuses", text: "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  replicas: three\n  template:\n    metadata: {labels: {a: b}}\n" +
			"    spec:\n      restartPolicy: Sometimes\n      containers:\n      - {name: c, image: i, resources: {limits: {nvidia.com/gpus: 1}}}\n",
			want: []string{
				`f.yaml:4: error: Deployment web: spec.selector: Required value (invalid)`,
				`f.yaml:5: error: Deployment web: spec.replicas: Invalid value: "three": must be an integer (type)`,
				`f.yaml:9: error: Deployment web: spec.template.spec.restartPolicy: Unsupported value: "Sometimes"`,
				`f.yaml:11: warning: Deployment web: unknown resource nvidia.com/gpus; did you mean nvidia.com/gpu?`,
			}},
		{name: "one that others refer to", text: podHead + "  volumes: [{name: 1, emptyDir: {}}]\n  containers:\n  - name: c\n    image: i\n    volumeMounts: [{name: data, mountPath: /a}]\n    resources: {limits: {cpu: lots}, requests: {cpu: 2}}\n",
			want: []string{
				`f.yaml:5: error: Pod p: spec.volumes[0].name: Invalid value: 1: must be a string`,
				`f.yaml:10: error: Pod p: spec.containers[0].resources.limits[cpu]: Invalid value: "lots": must be a quantity`,
			}},
		{name: "an element of a list, with its number", text: podHead + "  tolerations: [5, {key: a, operator: Matches}]\n  containers: [{name: c, image: i}]\n",
			want: []string{
				`f.yaml:5: error: Pod p: spec.tolerations[0]: Invalid value: 5: must be an object`,
				`f.yaml:5: error: Pod p: spec.tolerations[1].operator: Unsupported value: "Matches"`,
			}},
		{name: "a PodGroup's", text: "apiVersion: scheduling.x-k8s.io/v1alpha1\nkind: PodGroup\nmetadata: {name: g}\nspec:\n  minMember: 0\n  scheduleTimeoutSeconds: soon\n",
			want: []string{
				`f.yaml:5: error: PodGroup g: spec.minMember: Invalid value: 0`,
				`f.yaml:6: error: PodGroup g: spec.scheduleTimeoutSeconds: Invalid value: "soon": must be an integer (type)`,
			}},
		{name: "numbers and words that YAML takes for something else", text: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n  a: 1\n  b: yes\n  c: \"yes\"\n  d: 2026-01-01\n  e: ~\n",
			want: []string{
				`f.yaml:5: error: ConfigMap c: data[a]: Invalid value: 1: must be a string, which takes quotes here: "1" (type)`,
				`f.yaml:6: error: ConfigMap c: data[b]: Invalid value: yes: must be a string, which takes quotes here: "yes" (type)`,
			}},
		{name: "a number that is too large", text: jobHead + "  parallelism: 4000000000\n  template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}\n", want: []string{`f.yaml:5: error: Job nn/j: spec.parallelism: Invalid value: 4000000000: must be from -2147483648 to 2147483647 (type)`}},
		{name: "a quantity with a unit that there is not", text: podHead + "  containers:\n  - name: c\n    image: i\n    resources:\n      limits: {memory: 16GB}\n",
			want: []string{`f.yaml:9: error: Pod p: spec.containers[0].resources.limits[memory]: Invalid value: "16GB": must be a quantity such as 500m, 4 or 16Gi (type)`}},
		{name: "a time that is none", text: "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\n  creationTimestamp: yesterday\n",
			want: []string{`f.yaml:5: error: ConfigMap c: metadata.creationTimestamp: Invalid value: "yesterday": must be a time such as 2026-01-31T12:00:00Z (type)`}},
		{name: "a secret that is not in base64", text: "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata:\n  a: \"?\"\n",
			want: []string{`f.yaml:5: error: Secret s: data[a]: Invalid value: "?": must be a string in base64 (type)`}},
		{name: "a scalar for an object", text: "apiVersion: v1\nkind: Pod\nmetadata: p\nspec: {containers: [{name: c, image: i}]}\n", want: []string{`f.yaml:3: error: Pod: metadata: Invalid value: "p": must be an object (type)`}},
		{name: "an object for a list", text: podHead + "  containers: {name: c}\n", want: []string{`f.yaml:5: error: Pod p: spec.containers: Invalid value: an object: must be a list (type)`}},
		{name: "args of a plugin", text: head + "profiles:\n- schedulerName: a\n  pluginConfig:\n  - name: GPUAware\n    args:\n      strategy: [Pack]\n  - name: Coscheduling\n    args:\n      scheduleTimeoutSeconds: soon\n",
			want: []string{
				`f.yaml:11: error: profiles[0].pluginConfig[0].args.strategy: Invalid value: a list: must be a string (type)`,
				`f.yaml:14: error: profiles[0].pluginConfig[1].args.scheduleTimeoutSeconds: Invalid value: "soon": must be an integer (type)`,
			}},
		{name: "the short form of nodes", text: "shapes:\n- name: a\n  count: three\n  allocatable: {cpu: lots}\n",
			want: []string{
				`f.yaml:3: error: shapes[0].count: Invalid value: "three": must be an integer (type)`,
				`f.yaml:4: error: shapes[0].allocatable[cpu]: Invalid value: "lots": must be a quantity such as 500m, 4 or 16Gi (type)`,
			}},
	}
}

func TestEachValueOfAWrongTypeIsFoundOnItsLine(t *testing.T) {
	t.Parallel()
	for _, tt := range typeCases() {
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
		{name: "Windows line ends", text: strings.ReplaceAll(podHead+"  contaners: []\n  restartPolicy: Sometimes\n", "\n", "\r\n"),
			want: []string{`f.yaml:5: error: Pod p: spec.contaners: unknown field; did you mean containers? (unknown-field)`, `f.yaml:6: error: Pod p: spec.restartPolicy: Unsupported value: "Sometimes"`}},
		{name: "a mark of the byte order", text: "\ufeff" + good},
		{name: "JSON", text: `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},` + "\n" + `"spec": {"containers": [{"name": "c", "image": "i",` + "\n" + `"imagePullPolicy": "Perhaps"}]}}`,
			want: []string{`f.yaml:3: error: Pod p: spec.containers[0].imagePullPolicy: Unsupported value: "Perhaps"`}},
		{name: "objects in JSON that follow each other", text: "# printed by jq\n{\"apiVersion\": \"v1\",\n\"kind\": \"ConfigMap\", \"metadata\": {\"name\": \"a\"}}\n{\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\", \"metadata\": {\"name\": \"b\"}, \"dta\": {}} {\"apiVersion\": \"v1\",\n\"kind\": \"ConfigMap\", \"metadata\": {\"name\": \"c\"},\n\"dta\": {}}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: d}\ndta: {}\n",
			want: []string{`f.yaml:4: error: ConfigMap b: dta: unknown`, `f.yaml:6: error: ConfigMap c: dta: unknown`, `f.yaml:11: error: ConfigMap d: dta: unknown`}},
		{name: "objects in JSON, of which the second is cut off", text: "{\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\", \"metadata\": {\"name\": \"a\"}}\n{\"apiVersion\": \"v1\",\n", want: []string{`f.yaml:2: error: did not find expected`}},
		{name: "several documents, of which some are empty", text: "---\n---\n# nothing\n---\n" + good + "---\n" + good + "---\n"},
		{name: "an anchor and what it is merged into", text: podHead + "  initContainers:\n  - &c {name: a, image: i}\n  containers:\n  - <<: *c\n    name: b\n    tty: perhaps\n",
			want: []string{`f.yaml:10: error: Pod p: spec.containers[0].tty: Invalid value: "perhaps": must be true or false (type)`}},
		{name: "a fault behind an anchor, once", text: podHead + "  initContainers:\n  - &c {name: a, image: i, tty: perhaps}\n  containers:\n  - *c\n",
			want: []string{`f.yaml:6: error: Pod p: spec.initContainers[0].tty: Invalid value`, `f.yaml:6: error: Pod p: spec.containers[0].tty: Invalid value`,
				`f.yaml:6: error: Pod p: spec.initContainers[0].name: Duplicate value: "a" (invalid)`}},
		{name: "an anchor that contains itself", text: "a: &a [*a]\n", want: []string{`f.yaml:1: error: anchor 'a' value contains itself (syntax)`}},
		{name: "a merge of something that is no object", text: "apiVersion: v1\nkind: Pod\nmetadata:\n  <<: 5\n", want: []string{`f.yaml`}},
		{name: "a list of objects", text: "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Pod\n  metadata: {name: p}\n  spec: {containers: []}\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: c}\n  dta: {}\n",
			want: []string{`f.yaml:7: error: Pod p: spec.containers: Required value (invalid)`, `f.yaml:11: error: ConfigMap c: dta: unknown field; did you mean data? (unknown-field)`}},
		{name: "a list of something else", text: "apiVersion: v1\nkind: List\nitems: [5]\n", want: []string{`f.yaml:3: error: this is not an object with apiVersion and kind (syntax)`}},
		{name: "several keys twice", text: "apiVersion: v1\nkind: Pod\nkind: Pod\nmetadata:\n  name: a\n  name: b\n", want: []string{
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
	err := (&Report{}).Read(strings.NewReader(strings.Repeat("a", maxFileBytes+1)), "f.yaml")
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
