// Package yamldoc reads files of YAML and JSON documents with line numbers.
//
// It splits a file into documents, follows paths in them, and finds every unknown field and every value of a wrong type
// for a Go type. Packages validate, sandbox and explain call it. It does not know what the documents are about.
package yamldoc

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	sigsyaml "sigs.k8s.io/yaml"
)

// JSON converts a document. A duplicate key is an error, unless it overrides a key that << merges in.
func JSON(text []byte) ([]byte, error) {
	content, err := sigsyaml.YAMLToJSONStrict(text)
	var value any
	if err == nil || !bytes.Contains(text, []byte("<<")) || yaml.Unmarshal(text, &value) != nil {
		return content, err
	}
	return sigsyaml.YAMLToJSON(text)
}

// Child is the value of a key; nil if the node is not an object or does not have the key.
func Child(node *yaml.Node, key string) *yaml.Node {
	value, _ := entry(node, key)
	return value
}

// KeyLine is the line of a key, 0 if the node does not have it.
func KeyLine(node *yaml.Node, key string) int {
	_, line := entry(node, key)
	return line
}

func entry(node *yaml.Node, key string) (value *yaml.Node, line int) {
	if node != nil && node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	if node == nil || node.Kind != yaml.MappingNode {
		return nil, 0
	}
	var merged []*yaml.Node
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == key {
			return node.Content[i+1], node.Content[i].Line
		}
		if node.Content[i].ShortTag() == "!!merge" {
			merged = append(merged, node.Content[i+1])
			merged = append(merged, Items(node.Content[i+1])...)
		}
	}
	for _, from := range merged {
		if value, line = entry(from, key); value != nil {
			return value, line
		}
	}
	return nil, 0
}

// Items are the elements of a list; none if the node is not a list.
func Items(list *yaml.Node) []*yaml.Node {
	if list == nil || list.Kind != yaml.SequenceNode {
		return nil
	}
	return list.Content
}

// Text is the value of a scalar.
func Text(node *yaml.Node) string {
	if node == nil || node.Kind != yaml.ScalarNode {
		return ""
	}
	return node.Value
}

// segment matches a part of a path such as profiles[0].pluginConfig[GPUAware].args.weights.
var segment = regexp.MustCompile(`([^.\[\]]+)|\[([^\]]*)\]`)

// At follows a path. If the end does not exist, the node is nil and the line that of the last existing part.
func At(root *yaml.Node, path string) (*yaml.Node, int) {
	node, line := root, root.Line
	for _, m := range segment.FindAllStringSubmatch(path, -1) {
		next, at := step(node, m[1], m[2])
		if next == nil {
			return nil, line
		}
		node, line = next, at
	}
	return node, line
}

// step goes to a field, or to an element by its index or its name.
func step(node *yaml.Node, name, element string) (*yaml.Node, int) {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	if name != "" {
		return entry(node, name)
	}
	if node.Kind == yaml.MappingNode {
		return entry(node, element)
	}
	if i, err := strconv.Atoi(element); err == nil && i >= 0 && i < len(node.Content) {
		return node.Content[i], node.Content[i].Line
	}
	for _, item := range node.Content {
		for _, key := range []string{"schedulerName", "name", "resourceName"} {
			if value := Child(item, key); value != nil && value.Value == element {
				return item, item.Line
			}
		}
	}
	return nil, 0
}

var (
	// layers are what readers of YAML put before the parser's words.
	layers     = strings.NewReplacer("error converting YAML to JSON: ", "", "yaml: ", "", "unmarshal errors:", "")
	numberedBy = regexp.MustCompile(`^line (\d+): `)
)

// Complaint is what the parser says is wrong, in one line of text, and the line of the document that it names; 0 for
// none.
func Complaint(err error) (line int, text string) {
	text = strings.Join(strings.Fields(layers.Replace(err.Error())), " ")
	m := numberedBy.FindStringSubmatch(text)
	if m == nil {
		return 0, text
	}
	line, _ = strconv.Atoi(m[1])
	return line, strings.TrimPrefix(text, m[0])
}
