package gangview

import (
	"strings"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/grouptree"
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
	children := map[string][]*objectReader{}
	tree := false
	for _, sub := range subGroups {
		parent := sub.text("parent")
		children[parent] = append(children[parent], sub)
		required, preferred := kaiLevels(sub, "topologyConstraint")
		tree = tree || parent != "" || len(subGroups) > 1 && len(required)+len(preferred) > 0
	}
	least := r.number("spec.minSubGroup", len(children[""]))
	switch {
	case len(subGroups) == 0:
	case tree || least < len(children[""]):
		g.groups = kaiGroups(children, "", 0)
		if least < len(g.groups) {
			g.groups = []grouptree.Group{{Name: "sub-groups", MinGroups: &least, Groups: g.groups}}
		}
	default:
		g.minimum, g.roles = 0, map[string]int{}
		for _, sub := range subGroups {
			name := sub.text("name")
			g.roles[name] = sub.number("minMember", 0)
			g.minimum = sum(g.minimum, g.roles[name])
			required, preferred := kaiLevels(sub, "topologyConstraint")
			g.ownLevels(required, preferred)
		}
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

// kaiGroups are the sub-groups of a parent, with those within. Those whose parents go round in a circle are in none.
func kaiGroups(children map[string][]*objectReader, parent string, depth int) []grouptree.Group {
	groups := make([]grouptree.Group, 0, len(children[parent]))
	if depth > maxGroupsDepth {
		return groups
	}
	for _, sub := range children[parent] {
		of := grouptree.Group{Name: sub.text("name")}
		required, preferred := kaiLevels(sub, "topologyConstraint")
		of.Required, of.Preferred = strings.Join(required, ","), strings.Join(preferred, ",")
		if within := children[of.Name]; len(within) > 0 {
			least := sub.number("minSubGroup", len(within))
			of.MinGroups, of.Groups = &least, kaiGroups(children, of.Name, depth+1)
		} else {
			pods := sub.number("minMember", 0)
			of.Pods = &pods
		}
		groups = append(groups, of)
	}
	return groups
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
