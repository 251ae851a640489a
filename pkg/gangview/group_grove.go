package gangview

import (
	v1 "k8s.io/api/core/v1"
)

// GroveGang is the kind of Grove's PodGangs. A label of the pods names them.
const GroveGang = "Grove"

const (
	grovePodGang = "grove.io/podgang"
	// grovePodClique is the label by which pods name the pod group of their PodGang.
	grovePodClique = "grove.io/podclique"
)

var groveGang = OwnerKind{Kind: GroveGang, Object: "PodGang",
	GroupResource: groupResource("scheduler.grove.io", "podgangs"), Versions: []string{"v1alpha1"},
	EndedLabel: grovePodGang,
	owner: func(_ *OwnerPolicy, pod *v1.Pod, _ controlledBy) (Owner, error) {
		return namedGroup(GroveGang, "label", pod.Labels, grovePodGang)
	},
	read: readGroveGang}

func readGroveGang(r *objectReader) map[string]OwnerState {
	g := groupTerms{roleKey: grovePodClique, roles: map[string]int{}}
	g.required, g.preferred = groveLevels(r, "spec.topologyConstraint")
	groups := r.items("spec.podgroups")
	for _, group := range groups {
		name := group.text("name")
		g.roles[name] = group.number("minReplicas", 0)
		g.minimum = sum(g.minimum, g.roles[name])
		required, preferred := groveLevels(group, "topologyConstraint")
		g.ownLevels(len(groups) == 1, required, preferred, "pod group "+name)
	}
	for _, config := range r.items("spec.topologyConstraintGroupConfigs") {
		g.notKept("topologyConstraintGroupConfigs %s: levels count for the whole group only", config.text("name"))
	}
	g.podsPriority(r)
	return g.states(r)
}

// groveLevels are the levels of a constraint, which are labels of nodes.
func groveLevels(r *objectReader, path string) (required, preferred []string) {
	return levelsOf(r.text(path + ".packConstraint.required")), levelsOf(r.text(path + ".packConstraint.preferred"))
}
