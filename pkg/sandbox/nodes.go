package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"berth.dev/berth/pkg/yamldoc"
)

// maxNodesFileBytes bounds the file: 5,000 real nodes in YAML take about 60 MiB.
const maxNodesFileBytes = 256 << 20

// maxNodes is the limit of a local control plane.
const maxNodes = 20_000

// LoadNodes reads the nodes of a file: the output of `kubectl get nodes -o yaml` (or json), Node documents, or the
// short form {shapes: [...]}, in any combination. Fields that belong to the original cluster (UIDs, versions, owners,
// addresses) are left out. Every node is Ready.
func LoadNodes(path string) ([]*corev1.Node, error) {
	data, err := readNodesFile(path)
	if err != nil {
		return nil, err
	}
	return ParseNodes(path, data)
}

// readNodes returns the content of the nodes file, if there is one, after checking it. It returns when ctx ends,
// because reading from a pipe may block.
func (o *Options) readNodes(ctx context.Context) ([]byte, error) {
	if o.NodesFile == "" {
		return nil, nil
	}
	var data []byte
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		var nodes []*corev1.Node
		if data, err = readNodesFile(o.NodesFile); err == nil {
			nodes, err = ParseNodes(o.NodesFile, data)
		}
		if err == nil {
			_, err = ScaleNodes(nodes, o.Scale)
		}
	}()
	select {
	case <-done:
		return data, err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// ParseNodes is LoadNodes for a file that has been read. Errors have its path and the line.
func ParseNodes(path string, data []byte) ([]*corev1.Node, error) {
	nodes, err := parseNodes(data)
	var at fault
	if errors.As(err, &at) {
		return nil, fmt.Errorf("%s:%d: %w", path, at.line, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return nodes, nil
}

func readNodesFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading the nodes file: %w", err)
	}
	defer f.Close()
	return ReadNodesFile(f, path)
}

// ReadNodesFile returns the content of a nodes file. A file that is too large is an error.
func ReadNodesFile(r io.Reader, path string) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxNodesFileBytes+1))
	if err == nil && len(data) > maxNodesFileBytes {
		err = fmt.Errorf("%s is larger than %d MiB", path, maxNodesFileBytes>>20)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the nodes file: %w", err)
	}
	return data, nil
}

func parseNodes(data []byte) ([]*corev1.Node, error) {
	var nodes []*corev1.Node
	first := map[string]place{}
	for _, doc := range yamldoc.Split(data) {
		found, err := nodesOf(doc)
		if err != nil {
			return nil, err
		}
		for _, node := range found {
			if before, twice := first[node.Name]; twice {
				return nil, node.name.fault("the node %q is in line %d already", node.Name, before.line())
			}
			first[node.Name] = node.name
			nodes = append(nodes, node.Node)
		}
		if len(nodes) > maxNodes {
			return nil, fmt.Errorf("%d nodes or more; must be at most %d", len(nodes), maxNodes)
		}
	}
	if len(nodes) == 0 {
		return nil, errors.New("there are no nodes in it; must be Node objects, a List of them, or {shapes: [...]}")
	}
	return nodes, nil
}

// placedNode is a node with the place of its name in the file.
type placedNode struct {
	*corev1.Node
	name place
}

func nodesOf(d yamldoc.Document) ([]placedNode, error) {
	whole := place{document: d}
	content, err := yamldoc.JSON(d.Text)
	if err != nil {
		return nil, syntaxFault(d, err)
	}
	var meta metav1.TypeMeta
	// Errors are reported below.
	_ = json.Unmarshal(content, &meta)
	switch meta.Kind {
	case "Node":
		var node corev1.Node
		if err := decode(d, content, &node); err != nil {
			return nil, err
		}
		made, err := readNode(&node, whole)
		return []placedNode{made}, err
	case "List", "NodeList":
		var list corev1.NodeList
		if err := decode(d, content, &list); err != nil {
			return nil, err
		}
		nodes := make([]placedNode, len(list.Items))
		for i := range list.Items {
			if nodes[i], err = readNode(&list.Items[i], whole.below(fmt.Sprintf("items[%d]", i))); err != nil {
				return nil, err
			}
		}
		return nodes, nil
	case "":
		var short nodesFile
		if err := decode(d, content, &short); err != nil {
			return nil, err
		}
		return expandShapes(whole, short.Shapes)
	default:
		return nil, whole.below("kind").fault("%q; must be Node, List, or left out with {shapes: [...]}", meta.Kind)
	}
}

func readNode(node *corev1.Node, at place) (placedNode, error) {
	if node.Kind != "" && node.Kind != "Node" {
		return placedNode{}, at.below(".kind").fault("%q; must be Node", node.Kind)
	}
	return placedNode{asReady(node), at.below(".metadata.name")}, checkNode(node, at)
}

// asReady keeps the fields of a node that affect placement, and sets it ready.
func asReady(in *corev1.Node) *corev1.Node {
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: in.Name, Labels: maps.Clone(in.Labels), Annotations: maps.Clone(in.Annotations)},
		Spec: corev1.NodeSpec{Taints: lastingTaints(in.Spec.Taints), Unschedulable: in.Spec.Unschedulable,
			ProviderID: in.Spec.ProviderID},
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
	if len(node.Name) <= validation.LabelValueMaxLength {
		node.Labels[corev1.LabelHostname] = node.Name
	}
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

// lastingTaints leaves out the taints that the node lifecycle controller sets: every node is ready here, and no
// controller would remove them.
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
