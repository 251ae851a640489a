package gangview

import (
	v1 "k8s.io/api/core/v1"
)

// KAIGroup is the kind of KAI Scheduler's PodGroups. An annotation of the pods names them.
const KAIGroup = "KAI"

const (
	kaiName = "pod-group-name"
	// kaiSubGroup is the label by which pods name their sub-group.
	kaiSubGroup = "kai.scheduler/subgroup-name"
)

var kaiGroup = OwnerKind{Kind: KAIGroup, Object: "PodGroup",
	GroupResource: groupResource("scheduling.run.ai", "podgroups"), Versions: []string{"v2alpha2"},
	owner: func(_ *OwnerPolicy, pod *v1.Pod, _ controlledBy) (Owner, error) {
		return namedGroup(KAIGroup, "annotation", pod.Annotations, kaiName)
	},
	read: readKAIGroup}

func readKAIGroup(r *objectReader) map[string]OwnerState {
	g := groupTerms{minimum: r.number("spec.minMember", 1), roleKey: kaiSubGroup}
	g.required, g.preferred = kaiLevels(r, "spec.topologyConstraint")
	subGroups := r.items("spec.subGroups")
	children := map[string]int{}
	for _, sub := range subGroups {
		children[sub.text("parent")]++
	}
	// Where a part of the sub-groups is enough for KAI, all are needed here.
	some := func(at *objectReader, path, name string) {
		if n := at.number(path, children[name]); n < children[name] {
			what := "minSubGroup"
			if name != "" {
				what += " of " + name
			}
			g.notKept("%s %d: all %d sub-groups are needed", what, n, children[name])
		}
	}
	if len(subGroups) > 0 {
		g.minimum, g.roles = 0, map[string]int{}
		some(r, "spec.minSubGroup", "")
	}
	for _, sub := range subGroups {
		name := sub.text("name")
		if children[name] > 0 {
			some(sub, "minSubGroup", name)
		} else {
			g.roles[name] = sub.number("minMember", 0)
			g.minimum = sum(g.minimum, g.roles[name])
		}
		required, preferred := kaiLevels(sub, "topologyConstraint")
		g.ownLevels(len(subGroups) == 1, required, preferred, "sub-group "+name)
	}
	if queue := r.text("spec.queue"); queue != "" {
		g.notKept("queue %s: Berth has no queues, Kueue has", queue)
	}
	g.podsPriority(r)
	if r.text("spec.preemptibility") == "non-preemptible" {
		g.notKept("preemptibility non-preemptible: pods of a higher priority may evict it")
	}
	if delay := r.text("spec.preemptionDelay"); delay != "" {
		g.notKept("preemptionDelay %s: preemption does not wait", delay)
	}
	return g.states(r)
}

// kaiLevels are the levels of a constraint, which are labels of nodes. As in KAI they count only with the Topology that
// they are levels of.
func kaiLevels(r *objectReader, path string) (required, preferred []string) {
	if r.text(path+".topology") == "" {
		return nil, nil
	}
	return levelsOf(r.text(path + ".requiredTopologyLevel")), levelsOf(r.text(path + ".preferredTopologyLevel"))
}

// levelsOf is the list of one level, or of none.
func levelsOf(key string) []string {
	if key == "" {
		return nil
	}
	return []string{key}
}
