package validate

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"

	"berth.dev/berth/pkg/yamldoc"
)

// weighted are the extension points at which a weight counts.
var weighted = map[string]bool{"multiPoint": true, "score": true, "placementScore": true}

// weightsOf calls f for each plugin that the document enables in a profile, with the extension point and the node of
// its weight, nil without one. After decoding, a missing weight cannot be distinguished from 0.
func (d *document) weightsOf(profile string, f func(point, plugin string, item, weight *yaml.Node)) {
	plugins, _ := d.at(profile + ".plugins")
	if plugins == nil || plugins.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i+1 < len(plugins.Content); i += 2 {
		for _, item := range yamldoc.Items(yamldoc.Child(plugins.Content[i+1], "enabled")) {
			if plugin := yamldoc.Child(item, "name"); plugin != nil {
				f(plugins.Content[i].Value, plugin.Value, item, yamldoc.Child(item, "weight"))
			}
		}
	}
}

// negativeWeights reports negative weights, and returns whether there are any. The scheduler accepts them or stops at
// an overflow, depending on the order of its plugins.
func (d *document) negativeWeights(c *schedulerconfig.KubeSchedulerConfiguration) bool {
	found := false
	for i := range c.Profiles {
		d.weightsOf(fmt.Sprintf("profiles[%d]", i), func(_, plugin string, _, weight *yaml.Node) {
			if weight != nil && strings.HasPrefix(weight.Value, "-") {
				found = true
				d.findAt(Error, "weight", weight.Line,
					fmt.Sprintf("profile %s: %s has the weight %s, by which it would shun the nodes that it favours; want 1 or more",
						c.Profiles[i].SchedulerName, plugin, weight.Value))
			}
		})
	}
	return found
}

// weights warns of weights with an unexpected effect. A weight of 0 means none: the scheduler prints it for every
// plugin without a weight in a complete configuration.
func (l *profileLint) weights() {
	printed := false
	l.weightsOf(l.path, func(point, plugin string, _, weight *yaml.Node) {
		none := !weighted[point] || l.profile.weight(plugin) == 0
		printed = printed || none && weight != nil && weight.Value == "0"
	})
	l.weightsOf(l.path, func(point, plugin string, item, weight *yaml.Node) {
		effective, stock := l.profile.weight(plugin), stockWeight(plugin)
		warn := func(line int, format string, args ...any) {
			l.findAt(Warning, "weight", line, fmt.Sprintf(format, args...))
		}
		switch {
		case weight == nil && point == "multiPoint" && effective == 1 && stock > 1:
			warn(item.Line, "%s is enabled without a weight, which is then 1; stock it has %d", plugin, stock)
		case weight == nil:
		case printed && weight.Value == "0":
		case !weighted[point]:
			warn(weight.Line, "the weight of %s at %s counts nothing; a weight belongs to score or multiPoint", plugin, point)
		case effective == 0 && point == "multiPoint":
			warn(weight.Line, "%s does not score, so its weight counts nothing", plugin)
		case weight.Value == "0":
			warn(weight.Line, "the weight 0 of %s is read as %d; to switch its score off, name it under score.disabled", plugin,
				effective)
		}
	})
}

// stockWeight is the weight of a plugin in the default configuration, 0 for one that is not in it.
func stockWeight(plugin string) int32 {
	stock, err := latest.Default()
	if err != nil {
		return 0
	}
	for _, p := range stock.Profiles[0].Plugins.MultiPoint.Enabled {
		if p.Name == plugin {
			return p.Weight
		}
	}
	return 0
}
