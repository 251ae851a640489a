package validate

import (
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"berth.dev/berth/pkg/yamldoc"
)

// namesConfigurationKind finds the kind in a text that cannot be parsed.
var namesConfigurationKind = regexp.MustCompile(`\bkind["']?[ \t]*:[ \t]*["']?` + configurationKind + `\b`)

// configMap checks the configurations in a ConfigMap.
func (d *document) configMap() {
	data := yamldoc.Child(d.root, "data")
	if data != nil && data.Kind == yaml.AliasNode {
		data = data.Alias
	}
	if data == nil || data.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i+1 < len(data.Content); i += 2 {
		value := data.Content[i+1]
		if value.Kind == yaml.AliasNode {
			value = value.Alias
		}
		if !holdsConfiguration(yamldoc.Text(value)) {
			continue
		}
		offset := d.offset + value.Line
		if value.Style&(yaml.LiteralStyle|yaml.FoldedStyle) == 0 {
			offset = d.offset + value.Line - 1
		}
		d.report.check(d.file, []byte(value.Value), offset)
	}
}

// holdsConfiguration reports whether a document in the text is a scheduler configuration, or a broken one.
func holdsConfiguration(text string) bool {
	if !strings.Contains(text, configurationKind) {
		return false // without parsing the text
	}
	return slices.ContainsFunc(yamldoc.Split([]byte(text)), func(doc yamldoc.Document) bool {
		var node yaml.Node
		if yaml.Unmarshal(doc.Text, &node) != nil {
			return namesConfigurationKind.Match(doc.Text)
		}
		return len(node.Content) > 0 && yamldoc.Text(yamldoc.Child(node.Content[0], "kind")) == configurationKind
	})
}
