package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"berth.dev/berth/test/harness/assert"
	"berth.dev/berth/test/harness/require"
)

func TestLoadNodes(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		file string
		// want is name:gpus:rack of each node.
		want    []string
		wantErr string
	}{
		{
			name: "a shape becomes as many nodes as it counts, with values of a label in turn",
			file: `shapes:
- {name: a, count: 3, spread: {topology.kubernetes.io/rack: [r1, r2]}, allocatable: {cpu: "8", nvidia.com/gpu: "4"}}`,
			want: []string{"a-0:4:r1", "a-1:4:r2", "a-2:4:r1"},
		},
		{
			name: "what kubectl prints for a list is taken, with what belongs to the old cluster left out",
			file: `apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Node
  metadata: {name: real, uid: abc, resourceVersion: "7", labels: {topology.kubernetes.io/rack: r9}}
  spec: {taints: [{key: node.kubernetes.io/not-ready, effect: NoSchedule}, {key: mine, effect: NoSchedule}]}
  status: {allocatable: {nvidia.com/gpu: "8"}, conditions: [{type: Ready, status: "False"}]}`,
			want: []string{"real:8:r9"},
		},
		{
			name: "single nodes and shapes may stand in one file",
			file: "kind: Node\napiVersion: v1\nmetadata: {name: one}\n---\n" +
				"shapes: [{name: s, count: 1, allocatable: {cpu: 1}}]\n",
			want: []string{"one:0:", "s-0:0:"},
		},
		{
			name: "quoted numbers, a byte order of CRLF and comments between documents are taken",
			file: "# nodes\r\n---\r\n\r\n--- # the second\r\nshapes:\r\n- name: s\r\n  count: 1\r\n" +
				"  allocatable: {cpu: 1, nvidia.com/gpu: \"2\"}\r\n",
			want: []string{"s-0:2:"},
		},
		{
			name: "a field of a newer API is left out",
			file: "kind: Node\nmetadata: {name: a}\nspec: {fromTheFuture: 1}\n",
			want: []string{"a:0:"},
		},
		{
			name: "a node with a name too long for a label value is taken",
			file: "kind: Node\nmetadata: {name: " + strings.Repeat("a", 70) + "}\n",
			want: []string{strings.Repeat("a", 70) + ":0:"},
		},
		{
			name: "numbers are texts where the field is one",
			file: "shapes: [{name: a, count: 1, labels: {nvidia.com/gpu.count: 8, topology.kubernetes.io/rack: 7}, " +
				"allocatable: {nvidia.com/gpu: 8}}]\n",
			want: []string{"a-0:8:7"},
		},
		{
			name: "objects in JSON may follow each other in lines of their own, or in one",
			file: "\ufeff# nodes\n{\"kind\": \"Node\",\n\"metadata\": {\"name\": \"a\"}}\n" +
				"{\"kind\": \"Node\", \"metadata\": {\"name\": \"b\"}}{\"shapes\": [{\"name\": \"s\", \"count\": 1, " +
				"\"allocatable\": {\"cpu\": 1}}]} # the last\n",
			want: []string{"a:0:", "b:0:", "s-0:0:"},
		},
		{
			name: "documents may begin beside their mark, and end with one",
			file: "--- {kind: Node, metadata: {name: a}}\n--- {kind: Node, metadata: {name: b}}\n...\nkind: Node\n" +
				"metadata: {name: c}\n...\n",
			want: []string{"a:0:", "b:0:", "c:0:"},
		},
		{name: "the line is that of the object in JSON", file: "{\"kind\": \"Node\",\n\"metadata\": {\"name\": \"a\"}}\n\n{\"kind\": \"Node\",\n\"metadata\": {\"name\": \"A_B\"}}\n", wantErr: `:5: metadata.name: "A_B": a lowercase`},
		{name: "what follows an object in JSON is not left out",
			file:    "{\"kind\": \"Node\", \"metadata\": {\"name\": \"a\"}}\n{\"kind\": \"Node\",\n",
			wantErr: ":2: did not find expected"},
		{name: "an empty file is refused", file: "",
			wantErr: ": there are no nodes in it; must be Node objects, a List of them, or {shapes: [...]}"},
		{name: "a file of comments is refused", file: "# nothing\n---\n", wantErr: ": there are no nodes in it"},
		{name: "an empty list is refused", file: "kind: List\nitems: []\n", wantErr: ": there are no nodes in it"},
		{name: "a file that is not YAML is refused", file: "shapes:\n- {name: a\n  b: [",
			wantErr: ":2: did not find expected"},
		{name: "the line is that of the file, not of the document",
			file: "kind: Node\nmetadata: {name: a}\n---\nkind: Node\nmetadata:\n  name: [\n", wantErr: ":6: "},
		{name: "a table is refused", file: "name,gpus\na,8\n", wantErr: `:1: Invalid value: "name,gpus a,8": must be an object`},
		{name: "a key that occurs twice is refused", file: "kind: Node\nmetadata:\n  name: a\n  name: b\n", wantErr: `:4: key "name" already set in map`},
		{name: "a misspelt field of a shape is named", file: "shapes:\n- count: 1\n  nam: a\n",
			wantErr: ":3: shapes[0].nam: unknown field; did you mean name?"},
		{name: "a misspelt field of the file is named", file: "shape: []\n",
			wantErr: ":1: shape: unknown field; did you mean shapes?"},
		{name: "a shape without a name is refused", file: "shapes:\n- {count: 1, allocatable: {cpu: 1}}",
			wantErr: ":2: shapes[0].name: missing; must be"},
		{name: "a count of zero is refused", file: "shapes:\n- name: a\n  count: 0\n  allocatable: {cpu: 1}\n",
			wantErr: ":3: shapes[0].count: 0; must be 1 to 20000"},
		{name: "a missing count is refused", file: "shapes: [{name: a, allocatable: {cpu: 1}}]",
			wantErr: ":1: shapes[0].count: 0; must be 1 to 20000"},
		{name: "a negative count is refused", file: "shapes: [{name: a, count: -4, allocatable: {cpu: 1}}]",
			wantErr: ":1: shapes[0].count: -4; must be 1 to 20000"},
		{name: "a huge count is refused before memory is taken",
			file: "shapes: [{name: a, count: 2000000000, allocatable: {cpu: 1}}]", wantErr: "must be 1 to 20000"},
		{name: "a count that no number holds is refused", file: "shapes: [{name: a, count: 99999999999999999999}]", wantErr: `:1: shapes[0].count: Invalid value: 99999999999999999999: must be an integer`},
		{name: "a count with a fraction is refused", file: "shapes:\n- name: a\n  count: 1.5\n", wantErr: `:3: shapes[0].count: Invalid value: 1.5: must be an integer`},
		{name: "a count in quotes is refused", file: "shapes:\n- name: a\n  count: \"3\"\n", wantErr: `:3: shapes[0].count: Invalid value: "3": must be an integer`},
		{name: "too many nodes together are refused",
			file:    "shapes: [{name: a, count: 20000, allocatable: {cpu: 1}}, {name: b, count: 1, allocatable: {cpu: 1}}]",
			wantErr: "must be at most 20000"},
		{name: "a shape without resources is refused", file: "shapes:\n- {name: a, count: 1}",
			wantErr: ":2: shapes[0].allocatable: missing; must be what a node offers"},
		{
			name:    "a quantity that is none is refused",
			file:    "shapes:\n- name: a\n  count: 1\n  allocatable:\n    cpu: 1\n    memory: 64 GB\n",
			wantErr: `:6: shapes[0].allocatable[memory]: Invalid value: "64 GB": must be a quantity such as 500m, 4 or 16Gi`,
		},
		{name: "a negative quantity is refused", file: "shapes: [{name: a, count: 1, allocatable: {cpu: -1}}]",
			wantErr: "shapes[0].allocatable[cpu]: -1; must not be negative"},
		{name: "half a GPU is refused", file: "shapes: [{name: a, count: 1, allocatable: {nvidia.com/gpu: 500m}}]",
			wantErr: "shapes[0].allocatable[nvidia.com/gpu]: 500m; must be a whole number"},
		{name: "a label that is a list is refused", file: "shapes:\n- name: a\n  labels:\n    nvidia.com/gpu.count: [8]\n",
			wantErr: ":4: shapes[0].labels[nvidia.com/gpu.count]: Invalid value: a list: must be a string"},
		{name: "a value that no label can have is refused", file: "shapes: [{name: a, count: 1, labels: {model: A100 80GB}, allocatable: {cpu: 1}}]", wantErr: `:1: shapes[0].labels[model]: "A100 80GB": a valid label must be`},
		{name: "a value to spread that no label can have is refused", file: "shapes: [{name: a, count: 1, spread: {rack: [r 1]}, allocatable: {cpu: 1}}]", wantErr: `shapes[0].spread[rack][0]: "r 1": a valid label must be`},
		{name: "an effect that no taint has is refused", file: "kind: Node\nmetadata: {name: a}\nspec:\n  taints:\n  - {key: a, effect: NoSchedul}\n", wantErr: `:5: spec.taints[0].effect: "NoSchedul"; must be NoSchedule, PreferNoSchedule or NoExecute`},
		{name: "two nodes of one name are refused", file: "shapes:\n- {name: a, count: 1, allocatable: {cpu: 1}}\n- {name: a, count: 1, allocatable: {cpu: 1}}\n", wantErr: `:3: shapes[1].name: the node "a-0" is in line 2 already`},
		{name: "a node that a shape has made is refused", file: "shapes:\n- {name: a, count: 1, allocatable: {cpu: 1}}\n---\nkind: Node\nmetadata:\n  name: a-0\n", wantErr: `:6: metadata.name: the node "a-0" is in line 2 already`},
		{name: "a name that no node can have is refused", file: "shapes: [{name: A_B, count: 1, allocatable: {cpu: 1}}]", wantErr: `:1: shapes[0].name: "A_B": a lowercase RFC 1123 subdomain`},
		{name: "a node without a name is refused", file: "kind: List\nitems:\n- kind: Node\n  metadata: {}\n",
			wantErr: ":4: items[0].metadata.name: missing; must be the node's name"},
		{name: "an object of another kind is refused", file: "kind: Pod\napiVersion: v1\n", wantErr: `:1: kind: "Pod"; must be Node, List, or left out with {shapes: [...]}`},
		{name: "a list of other objects is refused", file: "kind: List\napiVersion: v1\nitems:\n- kind: Pod\n  metadata: {name: p}\n", wantErr: `:4: items[0].kind: "Pod"; must be Node`},
		{name: "a label to spread without values is refused",
			file:    "shapes: [{name: a, count: 1, spread: {rack: []}, allocatable: {cpu: 1}}]",
			wantErr: "shapes[0].spread[rack]: has no values; must be a list of the label's values"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "nodes.yaml")
			require.NoError(t, os.WriteFile(path, []byte(tt.file), 0o600))
			nodes, err := LoadNodes(path)
			if tt.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), path+tt.wantErr) && !strings.Contains(err.Error(), " "+tt.wantErr) {
					t.Fatalf("got error %v, want one with the path and %q", err, tt.wantErr)
				}
				return
			}
			require.NoError(t, err)
			var got []string
			for _, node := range nodes {
				gpus := node.Status.Allocatable["nvidia.com/gpu"]
				got = append(got, fmt.Sprintf("%s:%d:%s", node.Name, gpus.Value(), node.Labels["topology.kubernetes.io/rack"]))
			}
			assert.Equal(t, "nodes", tt.want, got)
		})
	}
}

func TestLoadedNodesAreReadyAndFree(t *testing.T) {
	t.Parallel()
	nodes, err := parseNodes([]byte(`kind: Node
apiVersion: v1
metadata: {name: n, uid: abc, resourceVersion: "9", ownerReferences: [{kind: X}]}
spec: {taints: [{key: node.kubernetes.io/unreachable, effect: NoExecute}, {key: dedicated, effect: NoSchedule}], podCIDR: 10.0.0.0/24}
status: {allocatable: {cpu: "4"}, conditions: [{type: Ready, status: "Unknown"}], addresses: [{type: InternalIP, address: 1.2.3.4}]}
`))
	require.NoError(t, err)
	node := nodes[0]
	if node.UID != "" || node.ResourceVersion != "" || len(node.OwnerReferences) > 0 || node.Spec.PodCIDR != "" ||
		len(node.Status.Addresses) > 0 {
		t.Errorf("the node keeps what belongs to its old cluster: %+v", node)
	}
	assert.Equal(t, "taints", []corev1.Taint{{Key: "dedicated", Effect: corev1.TaintEffectNoSchedule}},
		node.Spec.Taints)
	if node.Status.Conditions[0].Type != corev1.NodeReady || node.Status.Conditions[0].Status != corev1.ConditionTrue {
		t.Errorf("the node is not ready: %+v", node.Status.Conditions)
	}
	if pods := node.Status.Allocatable[corev1.ResourcePods]; pods.Value() != 110 {
		t.Errorf("a node that says nothing of pods takes %d, want the kubelet's default of 110", pods.Value())
	}
	if diff := cmp.Diff(node.Status.Allocatable, node.Status.Capacity); diff != "" {
		t.Errorf("capacity differs from allocatable (-allocatable +capacity):\n%s", diff)
	}
}

func FuzzParseNodes(f *testing.F) {
	f.Add([]byte("shapes: [{name: a, count: 2, allocatable: {cpu: 1}}]"))
	f.Add([]byte("kind: NodeList\nitems:\n- metadata: {name: x}\n"))
	f.Add([]byte("---\n---\nkind: Node"))
	f.Fuzz(func(t *testing.T, data []byte) {
		nodes, err := parseNodes(data)
		if err == nil && len(nodes) == 0 {
			t.Error("no nodes and no error")
		}
	})
}
