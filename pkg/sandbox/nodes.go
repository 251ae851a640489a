package sandbox

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"
)

// maxNodesFileBytes bounds what is read: 5,000 real nodes printed as YAML take about 60 MiB.
const maxNodesFileBytes = 256 << 20

// maxNodes bounds a short form that asks for more nodes than a local control plane can hold.
const maxNodes = 20_000

// Shape is the short form of a nodes file: count nodes of one kind.
type Shape struct {
	// Name is the prefix of the nodes' names: name-0, name-1, …
	Name string `json:"name"`
	// Count of nodes of this shape.
	Count int `json:"count"`
	// Labels and Annotations that every one of them carries.
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	// Spread gives each node one value of a label in turn: {topology.kubernetes.io/rack: [r1, r2]}.
	Spread map[string][]string `json:"spread,omitempty"`
	// Taints that every one of them carries.
	Taints []corev1.Taint `json:"taints,omitempty"`
	// Allocatable resources; capacity is set to the same. Pods are 110 unless it says otherwise.
	Allocatable corev1.ResourceList `json:"allocatable"`
}

// nodesFile is a document in the short form.
type nodesFile struct {
	Shapes []Shape `json:"shapes"`
}

// LoadNodes reads the nodes of a file: what `kubectl get nodes -o yaml` (or json) prints, any number of Node documents,
// or the short form {shapes: [...]}, also mixed. What belongs to the cluster the nodes came from (UIDs, versions,
// owners, addresses) is left out; every node is Ready, as a kubelet would report it.
func LoadNodes(path string) ([]*corev1.Node, error) {
	data, err := readBounded(path)
	if err != nil {
		return nil, fmt.Errorf("reading the nodes file: %w", err)
	}
	nodes, err := parseNodes(data)
	if err != nil {
		return nil, fmt.Errorf("nodes file %s: %w", path, err)
	}
	return nodes, nil
}

func readBounded(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxNodesFileBytes+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxNodesFileBytes {
		return nil, fmt.Errorf("%s is larger than %d MiB", path, maxNodesFileBytes>>20)
	}
	return data, nil
}

func parseNodes(data []byte) ([]*corev1.Node, error) {
	var nodes []*corev1.Node
	docs := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for i := 1; ; i++ {
		doc, err := docs.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", i, err)
		}
		if len(bytes.TrimSpace(doc)) == 0 {
			continue
		}
		found, err := parseNodesDocument(doc)
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", i, err)
		}
		nodes = append(nodes, found...)
		if len(nodes) > maxNodes {
			return nil, fmt.Errorf("%d nodes or more: at most %d are allowed", len(nodes), maxNodes)
		}
	}
	if len(nodes) == 0 {
		return nil, errors.New("no nodes in it: expected Node objects, a List of them, or {shapes: [...]}")
	}
	seen := make(map[string]bool, len(nodes))
	for _, node := range nodes {
		if errs := validation.IsDNS1123Subdomain(node.Name); len(errs) > 0 {
			return nil, fmt.Errorf("node name %q: %s", node.Name, errs[0])
		}
		if seen[node.Name] {
			return nil, fmt.Errorf("node name %q occurs twice", node.Name)
		}
		seen[node.Name] = true
	}
	return nodes, nil
}

func parseNodesDocument(doc []byte) ([]*corev1.Node, error) {
	var meta metav1.TypeMeta
	if err := sigsyaml.Unmarshal(doc, &meta); err != nil {
		return nil, err
	}
	switch meta.Kind {
	case "Node":
		var node corev1.Node
		if err := sigsyaml.Unmarshal(doc, &node); err != nil {
			return nil, err
		}
		return []*corev1.Node{asReady(&node)}, nil
	case "List", "NodeList":
		var list corev1.NodeList
		if err := sigsyaml.Unmarshal(doc, &list); err != nil {
			return nil, err
		}
		nodes := make([]*corev1.Node, 0, len(list.Items))
		for i := range list.Items {
			if kind := list.Items[i].Kind; kind != "" && kind != "Node" {
				return nil, fmt.Errorf("items[%d]: kind %q, expected Node", i, kind)
			}
			nodes = append(nodes, asReady(&list.Items[i]))
		}
		return nodes, nil
	case "":
		var short nodesFile
		if err := sigsyaml.UnmarshalStrict(doc, &short); err != nil {
			return nil, err
		}
		return expandShapes(short.Shapes)
	default:
		return nil, fmt.Errorf("kind %q, expected Node, List or no kind with {shapes: [...]}", meta.Kind)
	}
}

func expandShapes(shapes []Shape) ([]*corev1.Node, error) {
	var nodes []*corev1.Node
	for i, shape := range shapes {
		if shape.Name == "" {
			return nil, fmt.Errorf("shapes[%d].name: missing", i)
		}
		if shape.Count < 1 || shape.Count > maxNodes {
			return nil, fmt.Errorf("shapes[%d].count: %d, allowed are 1 to %d", i, shape.Count, maxNodes)
		}
		if len(shape.Allocatable) == 0 {
			return nil, fmt.Errorf("shapes[%d].allocatable: missing", i)
		}
		for key, values := range shape.Spread {
			if len(values) == 0 {
				return nil, fmt.Errorf("shapes[%d].spread[%s]: no values", i, key)
			}
		}
		for n := range shape.Count {
			nodes = append(nodes, shape.node(n))
		}
	}
	return nodes, nil
}

func (s Shape) node(n int) *corev1.Node {
	node := &corev1.Node{}
	node.Name = fmt.Sprintf("%s-%d", s.Name, n)
	node.Labels = maps.Clone(s.Labels)
	if node.Labels == nil {
		node.Labels = map[string]string{}
	}
	for key, values := range s.Spread {
		node.Labels[key] = values[n%len(values)]
	}
	node.Annotations = maps.Clone(s.Annotations)
	node.Spec.Taints = slices.Clone(s.Taints)
	node.Status.Allocatable = s.Allocatable.DeepCopy()
	return asReady(node)
}

// asReady keeps of a node what decides about placement and reports it ready.
func asReady(in *corev1.Node) *corev1.Node {
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: in.Name, Labels: maps.Clone(in.Labels), Annotations: maps.Clone(in.Annotations)},
		Spec:       corev1.NodeSpec{Taints: lastingTaints(in.Spec.Taints), Unschedulable: in.Spec.Unschedulable, ProviderID: in.Spec.ProviderID},
		Status: corev1.NodeStatus{
			Allocatable: in.Status.Allocatable.DeepCopy(),
			Capacity:    in.Status.Capacity.DeepCopy(),
			NodeInfo:    in.Status.NodeInfo,
			Images:      in.Status.Images,
		},
	}
	if node.Labels == nil {
		node.Labels = map[string]string{}
	}
	node.Labels[corev1.LabelHostname] = node.Name
	for key, value := range map[string]string{corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64"} {
		if node.Labels[key] == "" {
			node.Labels[key] = value
		}
	}
	if node.Status.Allocatable == nil {
		node.Status.Allocatable = corev1.ResourceList{}
	}
	if _, ok := node.Status.Allocatable[corev1.ResourcePods]; !ok {
		node.Status.Allocatable[corev1.ResourcePods] = *resource.NewQuantity(110, resource.DecimalSI)
	}
	if len(node.Status.Capacity) == 0 {
		node.Status.Capacity = node.Status.Allocatable.DeepCopy()
	}
	for _, condition := range []corev1.NodeCondition{
		{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady"},
		{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasSufficientMemory"},
		{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasNoDiskPressure"},
		{Type: corev1.NodePIDPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasSufficientPID"},
	} {
		condition.LastHeartbeatTime = metav1.Now()
		condition.LastTransitionTime = condition.LastHeartbeatTime
		node.Status.Conditions = append(node.Status.Conditions, condition)
	}
	return node
}

// lastingTaints leaves out the taints that the node lifecycle controller sets from conditions: here every node is
// ready, and nobody would take them away.
func lastingTaints(taints []corev1.Taint) []corev1.Taint {
	var kept []corev1.Taint
	for _, taint := range taints {
		switch taint.Key {
		case corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable, corev1.TaintNodeMemoryPressure,
			corev1.TaintNodeDiskPressure, corev1.TaintNodePIDPressure, corev1.TaintNodeNetworkUnavailable,
			corev1.TaintNodeUnschedulable:
		default:
			kept = append(kept, taint)
		}
	}
	return kept
}
