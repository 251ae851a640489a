package yamldoc

import (
	"encoding/json"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"
)

// oldTrue and oldFalse are words that YAML 1.1 reads as true and as false. So does Kubernetes; the parser here reads
// YAML 1.2.
var (
	oldTrue  = []string{"y", "Y", "yes", "Yes", "YES", "on", "On", "ON"}
	oldFalse = []string{"n", "N", "no", "No", "NO", "off", "Off", "OFF"}
)

// JSON is the node as Kubernetes reads it.
func JSON(node *yaml.Node) ([]byte, error) {
	// Decoding finds what is wrong with anchors, and keys that occur twice.
	var anything any
	if err := node.Decode(&anything); err != nil {
		return nil, err
	}
	value, err := nodeValue(node)
	if err != nil {
		return nil, err
	}
	return json.Marshal(value)
}

// nodeValue is the value that Kubernetes reads.
func nodeValue(node *yaml.Node) (any, error) {
	switch node.Kind {
	case yaml.AliasNode:
		return nodeValue(node.Alias)
	case yaml.SequenceNode:
		list := make([]any, len(node.Content))
		for i, item := range node.Content {
			var err error
			if list[i], err = nodeValue(item); err != nil {
				return nil, err
			}
		}
		return list, nil
	case yaml.MappingNode:
		return mappingValue(node)
	default:
		return scalarValue(node)
	}
}

// mappingValue lets the entries of an object win over those that are merged into it.
func mappingValue(node *yaml.Node) (map[string]any, error) {
	values := map[string]any{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].ShortTag() != "!!merge" {
			continue
		}
		from := node.Content[i+1]
		merged := []*yaml.Node{from}
		if from.Kind == yaml.SequenceNode {
			merged = slices.Clone(from.Content)
			slices.Reverse(merged) // the first of them wins
		}
		for _, m := range merged {
			value, err := nodeValue(m)
			if err != nil {
				return nil, err
			}
			object, ok := value.(map[string]any)
			if !ok {
				return nil, fmt.Errorf("line %d: only objects can be merged by <<", node.Content[i].Line)
			}
			for key, value := range object {
				values[key] = value
			}
		}
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key := node.Content[i]
		if key.ShortTag() == "!!merge" {
			continue
		}
		for key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		if key.Kind != yaml.ScalarNode {
			return nil, fmt.Errorf("line %d: a key must be a string", key.Line)
		}
		name, err := scalarValue(key)
		if err != nil {
			return nil, err
		}
		if values[fmt.Sprint(name)], err = nodeValue(node.Content[i+1]); err != nil {
			return nil, err
		}
	}
	return values, nil
}

func scalarValue(node *yaml.Node) (any, error) {
	switch tag := node.ShortTag(); {
	case tag == "!!timestamp":
		return node.Value, nil
	case tag == "!!str" && node.Style == 0 && slices.Contains(oldTrue, node.Value):
		return true, nil
	case tag == "!!str" && node.Style == 0 && slices.Contains(oldFalse, node.Value):
		return false, nil
	}
	var value any
	if err := node.Decode(&value); err != nil {
		return nil, err //nolint:wrapcheck // the caller finds the line in the parser's own words
	}
	return value, nil
}

// without is a copy of a tree that lacks some of its nodes. An element of a list leaves an empty one behind, or those
// after it would have other numbers.
func without(node *yaml.Node, left map[*yaml.Node]bool) *yaml.Node {
	for node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	kept := *node
	kept.Content = nil
	for i, c := range node.Content {
		for c.Kind == yaml.AliasNode {
			c = c.Alias
		}
		switch {
		case node.Kind == yaml.MappingNode && i%2 == 0:
			// The value decides.
		case node.Kind == yaml.MappingNode && !left[c]:
			kept.Content = append(kept.Content, node.Content[i-1], without(c, left))
		case node.Kind == yaml.MappingNode:
		case left[c]:
			kept.Content = append(kept.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null"})
		default:
			kept.Content = append(kept.Content, without(c, left))
		}
	}
	return &kept
}
