package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
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
			file: "kind: Node\napiVersion: v1\nmetadata: {name: one}\n---\nshapes: [{name: s, count: 1, allocatable: {cpu: 1}}]\n",
			want: []string{"one:0:", "s-0:0:"},
		},
		{name: "an empty file is refused", file: "", wantErr: "no nodes in it"},
		{name: "a file that is not YAML is refused", file: "{", wantErr: "document 1"},
		{name: "a misspelt field of a shape is named", file: "shapes: [{nam: a, count: 1}]", wantErr: `unknown field "nam"`},
		{name: "a count of zero is refused", file: "shapes: [{name: a, count: 0, allocatable: {cpu: 1}}]", wantErr: "shapes[0].count: 0, allowed are 1 to 20000"},
		{name: "a negative count is refused", file: "shapes: [{name: a, count: -4, allocatable: {cpu: 1}}]", wantErr: "shapes[0].count: -4"},
		{name: "a huge count is refused before memory is taken", file: "shapes: [{name: a, count: 2000000000, allocatable: {cpu: 1}}]", wantErr: "allowed are 1 to 20000"},
		{name: "a shape without resources is refused", file: "shapes: [{name: a, count: 1}]", wantErr: "shapes[0].allocatable: missing"},
		{name: "a quantity that is none is refused", file: "shapes: [{name: a, count: 1, allocatable: {cpu: many}}]", wantErr: "quantities must match"},
		{name: "two nodes of one name are refused", file: "shapes: [{name: a, count: 1, allocatable: {cpu: 1}}, {name: a, count: 1, allocatable: {cpu: 1}}]", wantErr: `"a-0" occurs twice`},
		{name: "a name that no node can have is refused", file: "shapes: [{name: A_B, count: 1, allocatable: {cpu: 1}}]", wantErr: `"A_B-0"`},
		{name: "an object of another kind is refused", file: "kind: Pod\napiVersion: v1\n", wantErr: `kind "Pod", expected Node`},
		{name: "a list of other objects is refused", file: "kind: List\napiVersion: v1\nitems: [{kind: Pod, metadata: {name: p}}]", wantErr: `items[0]: kind "Pod"`},
		{name: "a label to spread without values is refused", file: "shapes: [{name: a, count: 1, spread: {rack: []}, allocatable: {cpu: 1}}]", wantErr: "shapes[0].spread[rack]: no values"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "nodes.yaml")
			if err := os.WriteFile(path, []byte(tt.file), 0o600); err != nil {
				t.Fatal(err)
			}
			nodes, err := LoadNodes(path)
			if tt.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wantErr) || !strings.Contains(err.Error(), path) {
					t.Fatalf("got error %v, want one that names %s and %q", err, path, tt.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, node := range nodes {
				gpus := node.Status.Allocatable["nvidia.com/gpu"]
				got = append(got, fmt.Sprintf("%s:%d:%s", node.Name, gpus.Value(), node.Labels["topology.kubernetes.io/rack"]))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("nodes (-want +got):\n%s", diff)
			}
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
	if err != nil {
		t.Fatal(err)
	}
	node := nodes[0]
	if node.UID != "" || node.ResourceVersion != "" || len(node.OwnerReferences) > 0 || node.Spec.PodCIDR != "" || len(node.Status.Addresses) > 0 {
		t.Errorf("the node keeps what belongs to its old cluster: %+v", node)
	}
	if diff := cmp.Diff([]corev1.Taint{{Key: "dedicated", Effect: corev1.TaintEffectNoSchedule}}, node.Spec.Taints); diff != "" {
		t.Errorf("taints (-want +got):\n%s", diff)
	}
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
