package read

import (
	"slices"

	"berth.dev/berth/pkg/gang/read/fields"
	"berth.dev/berth/pkg/gang/read/grouptree"
)

// GroveGang is the kind of Grove's PodGangs. A label of the pods names them.
const GroveGang = "Grove"

const (
	grovePodGang = "grove.io/podgang"
	// grovePodClique is the label by which pods name the pod group of their PodGang.
	grovePodClique = "grove.io/podclique"
)

func readGroveGang(r *fields.Reader) OwnerState {
	s, roles := groupState(r, 0), map[string]int{}
	s.within(groveLevels(r, "spec.topologyConstraint"))
	groups, configs := r.Items("spec.podgroups"), r.Items("spec.topologyConstraintGroupConfigs")
	tree := len(configs) > 0
	for _, group := range groups {
		name := group.Text("name")
		roles[name] = group.Number("minReplicas", 0)
		s.Minimum = sum(s.Minimum, roles[name])
		required, preferred := groveLevels(group, "topologyConstraint")
		if len(groups) == 1 {
			s.within(required, preferred)
		}
		tree = tree || len(groups) > 1 && required+preferred != ""
	}
	if tree {
		s.needGroups(r, grovePodClique, groveGroups(groups, configs))
	} else {
		s.needRoles(r, grovePodClique, roles)
	}
	return s
}

// groveGroups returns the pod groups of a gang. Those that share a constraint are within one group.
func groveGroups(groups, configs []*fields.Reader) []grouptree.Group {
	leaf := func(r *fields.Reader) grouptree.Group {
		required, preferred := groveLevels(r, "topologyConstraint")
		pods := r.Number("minReplicas", 0)
		return grouptree.Group{Name: r.Text("name"), Pods: &pods, Required: required, Preferred: preferred}
	}
	shares := map[string]bool{}
	var out []grouptree.Group
	for _, config := range configs {
		required, preferred := groveLevels(config, "topologyConstraint")
		of := grouptree.Group{Name: config.Text("name"), Required: required, Preferred: preferred}
		names := config.Texts("podGroupNames")
		for _, group := range groups {
			if name := group.Text("name"); slices.Contains(names, name) && !shares[name] {
				shares[name] = true
				of.Groups = append(of.Groups, leaf(group))
			}
		}
		if len(of.Groups) > 0 {
			out = append(out, of)
		}
	}
	for _, group := range groups {
		if !shares[group.Text("name")] {
			out = append(out, leaf(group))
		}
	}
	return out
}

// groveLevels returns the levels of a constraint, which are node labels.
func groveLevels(r *fields.Reader, path string) (required, preferred string) {
	return r.Text(path + ".packConstraint.required"), r.Text(path + ".packConstraint.preferred")
}
