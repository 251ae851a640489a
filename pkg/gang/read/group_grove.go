package read

import (
	"slices"

	"berth.dev/berth/pkg/gang/read/grouptree"
)

// GroveGang is the kind of Grove's PodGangs. A label of the pods names them.
const GroveGang = "Grove"

const (
	grovePodGang = "grove.io/podgang"
	// grovePodClique is the label by which pods name the pod group of their PodGang.
	grovePodClique = "grove.io/podclique"
)

func readGroveGang(r *objectReader) OwnerState {
	s, roles := groupState(r, 0), map[string]int{}
	s.within(groveLevels(r, "spec.topologyConstraint"))
	groups, configs := r.items("spec.podgroups"), r.items("spec.topologyConstraintGroupConfigs")
	tree := len(configs) > 0
	for _, group := range groups {
		name := group.text("name")
		roles[name] = group.number("minReplicas", 0)
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

// groveGroups are the pod groups of a gang, those that share a constraint within a group of their own.
func groveGroups(groups, configs []*objectReader) []grouptree.Group {
	leaf := func(r *objectReader) grouptree.Group {
		required, preferred := groveLevels(r, "topologyConstraint")
		pods := r.number("minReplicas", 0)
		return grouptree.Group{Name: r.text("name"), Pods: &pods, Required: required, Preferred: preferred}
	}
	shares := map[string]bool{}
	var out []grouptree.Group
	for _, config := range configs {
		required, preferred := groveLevels(config, "topologyConstraint")
		of := grouptree.Group{Name: config.text("name"), Required: required, Preferred: preferred}
		names := config.texts("podGroupNames")
		for _, group := range groups {
			if name := group.text("name"); slices.Contains(names, name) && !shares[name] {
				shares[name] = true
				of.Groups = append(of.Groups, leaf(group))
			}
		}
		if len(of.Groups) > 0 {
			out = append(out, of)
		}
	}
	for _, group := range groups {
		if !shares[group.text("name")] {
			out = append(out, leaf(group))
		}
	}
	return out
}

// groveLevels are the levels of a constraint, which are labels of nodes.
func groveLevels(r *objectReader, path string) (required, preferred string) {
	return r.text(path + ".packConstraint.required"), r.text(path + ".packConstraint.preferred")
}
