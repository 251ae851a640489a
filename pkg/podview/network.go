package podview

import (
	"cmp"
	"path"

	v1 "k8s.io/api/core/v1"
)

// NetworkLevels are the keys of the node labels with the domain at each level of a network, the narrowest level first.
// Of the keys of a level, the first that a node has counts.
type NetworkLevels [][]string

// Domain is the nodes with one value of a label.
type Domain struct {
	// Level is the key of the label.
	Level string `json:"level"`
	Value string `json:"value"`
}

// at returns the domain of the node at a level, zero if it is in none.
func (l NetworkLevels) at(level int, node *v1.Node) Domain {
	for _, key := range l[level] {
		if value := node.Labels[key]; value != "" {
			return Domain{key, value}
		}
	}
	return Domain{}
}

// Path returns the domain of the node at each level, the widest level first; empty if it is in none.
func (l NetworkLevels) Path(node *v1.Node) []string {
	values := make([]string, len(l))
	for i := range l {
		values[len(l)-1-i] = l.at(i, node).Value
	}
	return values
}

// Narrowest returns the narrowest domain of the node, zero if it is in none. A host name is no domain.
func (l NetworkLevels) Narrowest(node *v1.Node) Domain {
	for i := range l {
		if d := l.at(i, node); d.Level != "" && d.Level != v1.LabelHostname {
			return d
		}
	}
	return Domain{}
}

// name is the level without the prefix of its label.
func (d Domain) name() string { return path.Base(d.Level) }

// String names the domain by its level and its value: rack=r1. The zero value is empty.
func (d Domain) String() string {
	if d.Level == "" {
		return ""
	}
	return d.name() + "=" + d.Value
}

// Compare orders domains by level, then by value.
func (d Domain) Compare(other Domain) int {
	return cmp.Or(cmp.Compare(d.Level, other.Level), cmp.Compare(d.Value, other.Value))
}

// CommonLevel returns the name of the level of all domains, empty if there are several or none.
func CommonLevel(domains []Domain) string {
	common := ""
	for _, d := range domains {
		switch {
		case d.Level == "":
		case common == "":
			common = d.name()
		case common != d.name():
			return ""
		}
	}
	return common
}
