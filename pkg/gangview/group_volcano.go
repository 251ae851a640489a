package gangview

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
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
	volcanoNetwork(r, &g, "spec", "networkTopology")
	inSubGroups := 0
	for i, policy := range r.items("spec.subGroupPolicy") {
		size, least := policy.number("subGroupSize", 1), policy.number("minSubGroups", 0)
		inSubGroups = sum(inSubGroups, times(size, least))
		g.notKept("subGroupPolicy[%d]: the number of pods counts, not in which sub-group they are", i)
		volcanoNetwork(policy, &g, "", fmt.Sprintf("subGroupPolicy[%d].networkTopology", i))
	}
	g.minimum = max(g.minimum, inSubGroups)
	if queue := r.text("spec.queue"); queue != "" && queue != "default" {
		g.notKept("queue %s: Berth has no queues, Kueue has", queue)
	}
	g.podsPriority(r)
	return g.states(r)
}

// volcanoNetwork notes a constraint by tiers, which only the HyperNodes of Volcano give a meaning. With an annotation
// of Berth the group can say the same by a label of nodes.
func volcanoNetwork(r *objectReader, g *groupTerms, at, name string) {
	path := "networkTopology"
	if at != "" {
		path = at + "." + path
	}
	if !r.has(path) {
		return
	}
	// "hard" is what the definition fills in.
	mode, instead := r.text(path+".mode"), "berth.dev/topology-required"
	if mode == "soft" {
		instead = "berth.dev/topology-preferred"
	} else {
		mode = "hard"
	}
	tier := r.text(path + ".highestTierName")
	if r.has(path + ".highestTierAllowed") {
		tier = fmt.Sprint(r.number(path+".highestTierAllowed", 0))
	}
	g.notKept("%s (%s, tier %s): HyperNodes are not read; name the node label in the annotation %s", name, mode, tier,
		instead)
}
