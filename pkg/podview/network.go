package podview

import v1 "k8s.io/api/core/v1"

// NetworkLevel is a kind of domain in a network, such as a rack or a zone.
type NetworkLevel struct {
	// Labels of a node that may name its domain; the first that it has counts.
	Labels []string
}

// NetworkLevels are all levels of a network, the narrowest first.
type NetworkLevels []NetworkLevel

// Path returns the domain of the node at each level, the widest level first; empty where it lies in none.
func (l NetworkLevels) Path(node *v1.Node) []string {
	path := make([]string, len(l))
	for i := range l {
		for _, key := range l[i].Labels {
			if value := node.Labels[key]; value != "" {
				path[len(l)-1-i] = value
				break
			}
		}
	}
	return path
}
