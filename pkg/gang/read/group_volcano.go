package read

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"berth.dev/berth/pkg/gang/read/fields"
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
	// volcanoPreemptable says whether others may evict the group. The annotation takes precedence over the label.
	volcanoPreemptable = "volcano.sh/preemptable"
)

func readVolcanoGroup(r *fields.Reader) OwnerState {
	s := groupState(r, r.Number("spec.minMember", 1))
	tasks, inTasks := r.Numbers("spec.minTaskMember"), 0
	for _, n := range tasks {
		inTasks = sum(inTasks, n)
	}
	// Volcano ignores minTaskMember if the sum is larger than minMember.
	if inTasks <= s.Minimum {
		s.needRoles(r, volcanoTask, tasks)
	}
	s.within(volcanoNetwork(r, &s))
	if r.Has("spec.subGroupPolicy") {
		s.notKept("subGroupPolicy: the number of pods counts, not in which sub-group they are")
	}
	if queue := r.Text("spec.queue"); queue != "" && queue != "default" {
		s.notKept("queue %s: Berth has no queues, Kueue has", queue)
	}
	preemptable, says := r.Key("metadata.annotations", volcanoPreemptable)
	if !says {
		preemptable, _ = r.Key("metadata.labels", volcanoPreemptable)
	}
	if preemptable == "false" {
		s.notKept("%s false: pods of a higher priority may evict it", volcanoPreemptable)
	}
	return s
}

// volcanoNetwork reads a constraint by tiers. Volcano names a tier after the node label that defines it; other tiers
// are defined only in HyperNodes.
func volcanoNetwork(r *fields.Reader, s *OwnerState) (required, preferred string) {
	const path = "spec.networkTopology"
	if !r.Has(path) {
		return "", ""
	}
	mode := r.Text(path + ".mode")
	tier := r.Text(path + ".highestTierName")
	if strings.Contains(tier, "/") && len(validation.IsQualifiedName(tier)) == 0 {
		if mode == "soft" {
			return "", tier
		}
		return tier, ""
	}
	if r.Has(path + ".highestTierAllowed") {
		tier = fmt.Sprint(r.Number(path+".highestTierAllowed", 0))
	}
	s.notKept("networkTopology (%s, tier %s): HyperNodes are not read; give the key of a node label, such as %s, as "+
		"highestTierName", cmp.Or(mode, "hard"), tier, wellknown.RackLabel)
	return "", ""
}
