package sandbox

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// ScaleNodes copies nodes, each in turn, until there are count of them; 0 leaves them as they are.
func ScaleNodes(nodes []*corev1.Node, count int) ([]*corev1.Node, error) {
	if count == 0 {
		return nodes, nil
	}
	if count < len(nodes) || count > maxNodes {
		return nil, fmt.Errorf("scale %d: must be %d (the number of nodes given) to %d", count, len(nodes), maxNodes)
	}
	taken := make(map[string]bool, count)
	for _, node := range nodes {
		taken[node.Name] = true
	}
	scaled := make([]*corev1.Node, 0, count)
	scaled = append(scaled, nodes...)
	for i := len(nodes); i < count; i++ {
		scaled = append(scaled, copyOf(nodes[i%len(nodes)], i/len(nodes), taken))
	}
	return scaled, nil
}

// copyOf is a copy with a new name, which is short enough for the label kubernetes.io/hostname.
func copyOf(node *corev1.Node, number int, taken map[string]bool) *corev1.Node {
	made := node.DeepCopy()
	made.Spec.ProviderID = ""
	for made.Name == node.Name || taken[made.Name] {
		suffix := fmt.Sprintf("-copy-%d", number)
		base := node.Name[:min(len(node.Name), validation.LabelValueMaxLength-len(suffix))]
		made.Name = strings.TrimRight(base, "-.") + suffix
		number++
	}
	taken[made.Name] = true
	made.Labels[corev1.LabelHostname] = made.Name
	return made
}
