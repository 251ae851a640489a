package read

import (
	"fmt"
	"strings"

	"berth.dev/berth/pkg/gang/read/fields"
	"berth.dev/berth/pkg/gang/read/grouptree"
	"berth.dev/berth/pkg/plural"
)

// KAIGroup is the kind of KAI Scheduler's PodGroups. An annotation of the pods names them.
const KAIGroup = "KAI"

const (
	kaiName = "pod-group-name"
	// kaiSubGroup is the label by which pods name their sub-group.
	kaiSubGroup = "kai.scheduler/subgroup-name"
	// kaiLasting is the least priority at which KAI by default does not evict a group.
	kaiLasting = 100
)

func readKAIGroup(r *fields.Reader) OwnerState {
	s := groupState(r, r.Number("spec.minMember", 1))
	s.within(kaiLevels(r, "spec.topologyConstraint", &s))
	subGroups := r.Items("spec.subGroups")
	children := map[string][]*fields.Reader{}
	tree := false
	for _, sub := range subGroups {
		parent := sub.Text("parent")
		children[parent] = append(children[parent], sub)
		required, preferred := kaiLevels(sub, "topologyConstraint", &s)
		tree = tree || parent != "" || len(subGroups) > 1 && required+preferred != ""
	}
	n := len(children[""])
	least, why := r.Number("spec.minSubGroup", n), kaiUnrooted(subGroups, children)
	if why == "" && least > n {
		why = fmt.Sprintf("minSubGroup is %d, and there %s %s without a parent", least, plural.Choose(n, "is", "are"),
			plural.Of(n, "sub-group"))
	}
	switch {
	case why != "":
		s.Why = fmt.Sprintf("%s %s cannot start: %s", r.Kind, r.Name, why)
	case len(subGroups) == 0:
	case tree || least < n:
		groups := kaiGroups(children, "")
		if least < len(groups) {
			groups = []grouptree.Group{{Name: "sub-groups", MinGroups: &least, Groups: groups}}
		}
		s.needGroups(r, kaiSubGroup, groups)
	default:
		roles := map[string]int{}
		s.Minimum = 0
		for _, sub := range subGroups {
			name := sub.Text("name")
			roles[name] = sub.Number("minMember", 0)
			s.Minimum = sum(s.Minimum, roles[name])
			s.within(kaiLevels(sub, "topologyConstraint", nil))
		}
		s.needRoles(r, kaiSubGroup, roles)
	}
	s.readKAIPolicies(r)
	return s
}

// readKAIPolicies reads the fields that Berth does not follow.
func (s *OwnerState) readKAIPolicies(r *fields.Reader) {
	if queue := r.Text("spec.queue"); queue != "" {
		s.notKept("queue %s: Berth has no queues, Kueue has", queue)
	}
	switch r.Text("spec.preemptibility") {
	case "non-preemptible":
		s.notKept("preemptibility non-preemptible: pods of a higher priority may evict it")
	case "":
		s.Lasting = true
	}
	if delay := r.Text("spec.preemptionDelay"); delay != "" {
		s.notKept("preemptionDelay %s: preemption does not wait", delay)
	}
	if grace := r.Text("spec.stalenessGracePeriod"); grace != "" {
		s.notKept("stalenessGracePeriod %s: a group that has lost members is not evicted", grace)
	}
}

// kaiUnrooted returns what is wrong with the sub-groups: one that is not within the root, has the name of another, or
// needs more sub-groups than it has. It is empty if nothing is.
func kaiUnrooted(subGroups []*fields.Reader, children map[string][]*fields.Reader) string {
	rooted := map[string]bool{}
	for names := []string{""}; len(names) > 0; names = names[1:] {
		if rooted[names[0]] {
			return fmt.Sprintf("two sub-groups are called %.120q", names[0])
		}
		rooted[names[0]] = true
		for _, sub := range children[names[0]] {
			name := sub.Text("name")
			names = append(names, name)
			within := len(children[name])
			if least := sub.Number("minSubGroup", within); within > 0 && least > within {
				return fmt.Sprintf("minSubGroup of sub-group %.120q is %d, and it has %s", name, least,
					plural.Of(within, "sub-group"))
			}
		}
	}
	for _, sub := range subGroups {
		if name := sub.Text("name"); !rooted[name] {
			return fmt.Sprintf("sub-group %.120q is in no group: its parent %.120q does not exist, or the parents form a circle",
				name, sub.Text("parent"))
		}
	}
	return ""
}

// kaiGroups returns the sub-groups of a parent, each with its own.
func kaiGroups(children map[string][]*fields.Reader, parent string) []grouptree.Group {
	groups := make([]grouptree.Group, 0, len(children[parent]))
	for _, sub := range children[parent] {
		of := grouptree.Group{Name: sub.Text("name")}
		of.Required, of.Preferred = kaiLevels(sub, "topologyConstraint", nil)
		if within := children[of.Name]; len(within) > 0 {
			least := sub.Number("minSubGroup", len(within))
			of.MinGroups, of.Groups = &least, kaiGroups(children, of.Name)
		} else {
			pods := sub.Number("minMember", 0)
			of.Pods = &pods
		}
		groups = append(groups, of)
	}
	return groups
}

// kaiLevels returns the levels of a constraint, which are node labels. As in KAI, they count only if the constraint
// names their Topology. A level without a slash is an alias, which is added to what s does not follow, unless s is nil.
func kaiLevels(r *fields.Reader, path string, s *OwnerState) (required, preferred string) {
	if r.Text(path+".topology") == "" {
		return "", ""
	}
	required, preferred = r.Text(path+".requiredTopologyLevel"), r.Text(path+".preferredTopologyLevel")
	for _, level := range []string{required, preferred} {
		if s != nil && level != "" && !strings.Contains(level, "/") {
			s.notKept("level %s as an alias: Topology objects are not read, the key of a node label counts", level)
		}
	}
	return required, preferred
}
