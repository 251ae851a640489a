package sandbox

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Shape is the short form of a nodes file: count nodes of one kind.
type Shape struct {
	// Name is the prefix of the nodes' names: name-0, name-1, …
	Name string `json:"name"`
	// Count of nodes of this shape.
	Count int `json:"count"`
	// Labels and Annotations that every one of them carries.
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	// Spread sets a label to one value per node, in rotation: {topology.kubernetes.io/rack: [r1, r2]}.
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

func expandShapes(whole place, shapes []Shape) ([]placedNode, error) {
	var nodes []placedNode
	for i, shape := range shapes {
		at := whole.below(fmt.Sprintf("shapes[%d]", i))
		at.short = true
		if err := shape.check(at); err != nil {
			return nil, err
		}
		for n := range shape.Count {
			node := shape.node(n)
			// Another shape of the file may have a node of the same name.
			nodes = append(nodes, placedNode{node, at.below(".name")})
		}
	}
	return nodes, nil
}

// check returns an error for a shape from which no node can be made.
func (s Shape) check(at place) error {
	if s.Name == "" {
		return at.below(".name").fault("missing; must be the beginning of the nodes' names")
	}
	if s.Count < 1 || s.Count > maxNodes {
		return at.below(".count").fault("%d; must be 1 to %d", s.Count, maxNodes)
	}
	if len(s.Allocatable) == 0 {
		return at.below(".allocatable").fault(
			"missing; must be what a node offers, such as {cpu: \"96\", memory: 1Ti, nvidia.com/gpu: \"8\"}")
	}
	if errs := validation.IsDNS1123Subdomain(fmt.Sprintf("%s-%d", s.Name, s.Count-1)); len(errs) > 0 {
		return at.below(".name").fault("%q: %s", s.Name, errs[0])
	}
	for _, key := range slices.Sorted(maps.Keys(s.Spread)) {
		values, field := s.Spread[key], at.below(".spread["+key+"]")
		if len(values) == 0 {
			return field.fault("has no values; must be a list of the label's values")
		}
		for i, value := range values {
			if err := checkLabel(key, value, field.below(fmt.Sprintf("[%d]", i))); err != nil {
				return err
			}
		}
	}
	return checkNode(s.node(0), at)
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
