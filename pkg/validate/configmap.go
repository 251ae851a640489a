package validate

import (
	"errors"
	"io"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"berth.dev/berth/pkg/yamldoc"
)

// namesConfigurationKind finds the kind in a text that cannot be parsed.
var namesConfigurationKind = regexp.MustCompile(`\bkind["']?[ \t]*:[ \t]*["']?` + configurationKind + `\b`)

// configMap checks the configurations that a ConfigMap carries.
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
		if !holdsConfiguration(scalarText(value)) {
			continue
		}
		offset := d.offset + value.Line
		if value.Style&(yaml.LiteralStyle|yaml.FoldedStyle) == 0 {
			offset = d.offset + value.Line - 1
		}
		d.report.check(d.file, []byte(value.Value), offset)
	}
}

// holdsConfiguration says whether one of the documents in a text is a configuration of a scheduler, or seems to be
// meant as one.
func holdsConfiguration(text string) bool {
	if !strings.Contains(text, configurationKind) {
		return false // which spares parsing it
	}
	docs := yaml.NewDecoder(strings.NewReader(text))
	for {
		var node yaml.Node
		switch err := docs.Decode(&node); {
		case errors.Is(err, io.EOF):
			return false
		case err != nil:
			return namesConfigurationKind.MatchString(text)
		case len(node.Content) > 0 && scalarText(yamldoc.Child(node.Content[0], "kind")) == configurationKind:
			return true
		}
	}
}
