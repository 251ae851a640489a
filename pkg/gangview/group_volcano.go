package gangview

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"berth.dev/berth/pkg/grouptree"
	"berth.dev/berth/pkg/wellknown"
)

// VolcanoGroup is the kind of Volcano's PodGroups. An annotation of the pods names them.
const VolcanoGroup = "Volcano"

const (
	// Annotations by which pods name their group. Volcano reads the first.
	volcanoName      = "scheduling.k8s.io/group-name"
	volcanoOtherName = "scheduling.volcano.sh/group-name"
	// volcanoTask is how pods name their task, in an annotation or a label.
	volcanoTask = "volcano.sh/task-spec"
)

var volcanoGroup = OwnerKind{Kind: VolcanoGroup, Object: "PodGroup",
	GroupResource: groupResource("scheduling.volcano.sh", "podgroups"), Versions: []string{"v1beta1"},
	owner: func(_ *OwnerPolicy, pod *v1.Pod, _ controlledBy) (Owner, error) {
		return namedGroup(VolcanoGroup, "annotation", pod.Annotations, volcanoName, volcanoOtherName)
	},
	read: readVolcanoGroup}

func readVolcanoGroup(r *objectReader) map[string]OwnerState {
	g := groupTerms{minimum: r.number("spec.minMember", 1), roleKey: volcanoTask}
	tasks, inTasks := r.numbers("spec.minTaskMember"), 0
	for _, n := range tasks {
		inTasks = sum(inTasks, n)
	}
	// Volcano looks at tasks only where the minimum of the whole covers them.
	if inTasks <= g.minimum {
		g.roles = tasks
	}
	g.required, g.preferred = volcanoNetwork(r, &g, "spec.networkTopology", "networkTopology")
	volcanoSubGroups(r, &g)
	if queue := r.text("spec.queue"); queue != "" && queue != "default" {
		g.notKept("queue %s: Berth has no queues, Kueue has", queue)
	}
	g.podsPriority(r)
	return g.states(r)
}

// volcanoPolicy is how some pods of a group are divided into sub-groups: those whose label has a value, or all, by the
// values of other labels.
type volcanoPolicy struct {
	name, label, value  string
	by                  []string
	size, least         int
	required, preferred []string
	// why says what of the policy cannot be followed.
	why string
}

// volcanoSubGroups reads the policies of sub-groups as groups within the gang. Where that cannot be, the sub-groups
// that are needed count as pods.
func volcanoSubGroups(r *objectReader, g *groupTerms) {
	var policies []volcanoPolicy
	why, inSubGroups := "", 0
	for i, item := range r.items("spec.subGroupPolicy") {
		p := readVolcanoPolicy(item, g, i)
		inSubGroups = sum(inSubGroups, times(p.size, p.least))
		if why == "" {
			why = p.why
		}
		if first := append(policies, p)[0]; why == "" && (p.label != first.label || !slices.Equal(p.by, first.by) ||
			i > 0 && p.label == "") {
			why = "other policies tell sub-groups apart by other labels"
		}
		policies = append(policies, p)
	}
	g.minimum = max(g.minimum, inSubGroups)
	if len(policies) == 0 {
		return
	}
	if why != "" {
		g.notKept("subGroupPolicy: %s, so the number of pods counts, not in which sub-group they are", why)
		return
	}
	var roles map[string]int
	if policies[0].label == volcanoTask {
		roles = maps.Clone(g.roles)
	} else if len(g.roles) > 0 {
		g.notKept("minTaskMember: the sub-groups count instead")
	}
	if policies[0].label != "" {
		g.groupKeys = []string{policies[0].label}
	}
	g.groupKeys = append(g.groupKeys, policies[0].by...)
	for _, p := range policies {
		of := grouptree.Group{Name: p.name, Open: new(string), MinCopies: &p.least, Required: strings.Join(p.required, ","),
			Preferred: strings.Join(p.preferred, ",")}
		if p.value != "" {
			*of.Open = p.value + "-"
		}
		if roles != nil {
			// The pods of a task in sub-groups are in whole ones.
			p.least = max(p.least, roles[p.value]/p.size)
			of.Roles = map[string]int{p.value: p.size}
			delete(roles, p.value)
		} else {
			of.Pods = &p.size
		}
		g.groups = append(g.groups, of)
	}
	g.roles = roles
}

func readVolcanoPolicy(r *objectReader, g *groupTerms, i int) volcanoPolicy {
	p := volcanoPolicy{size: max(r.number("subGroupSize", 1), 1), least: r.number("minSubGroups", 0),
		by: r.texts("matchLabelKeys")}
	selects := r.allTexts("labelSelector.matchLabels")
	for label, value := range selects {
		p.label, p.value = label, value
	}
	switch p.name = cmp.Or(p.value, r.text("name")); {
	case len(validation.IsDNS1123Label(p.name)) > 0 && p.value == "":
		p.name = fmt.Sprint("sub-groups-", i)
	case len(validation.IsDNS1123Label(p.name)) > 0:
		p.why = "it selects pods by a value that is not of lowercase letters, digits and hyphens"
	}
	switch {
	case len(selects) > 1 || len(r.items("labelSelector.matchExpressions")) > 0:
		p.why = "it does not select pods by one label and value"
	case len(p.by) == 0:
		p.why = "it names no matchLabelKeys"
	}
	p.required, p.preferred = volcanoNetwork(r, g, "networkTopology", fmt.Sprintf("subGroupPolicy[%d].networkTopology", i))
	return p
}

// volcanoNetwork reads a constraint by tiers. Volcano calls a tier after the node label that it was found by; what
// other tiers mean only HyperNodes say.
func volcanoNetwork(r *objectReader, g *groupTerms, path, name string) (required, preferred []string) {
	if !r.has(path) {
		return nil, nil
	}
	// "hard" is what the definition fills in.
	mode := r.text(path + ".mode")
	tier := r.text(path + ".highestTierName")
	if strings.Contains(tier, "/") && len(validation.IsQualifiedName(tier)) == 0 {
		if mode == "soft" {
			return nil, []string{tier}
		}
		return []string{tier}, nil
	}
	if r.has(path + ".highestTierAllowed") {
		tier = fmt.Sprint(r.number(path+".highestTierAllowed", 0))
	}
	g.notKept("%s (%s, tier %s): HyperNodes are not read; give the key of a node label, such as %s, as highestTierName",
		name, cmp.Or(mode, "hard"), tier, wellknown.RackLabel)
	return nil, nil
}
