package gangview

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/grouptree"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/tree"
	"berth.dev/berth/pkg/wellknown"
)

const (
	// maxGroupsText bounds the text of a tree, maxGroups its groups with all copies, and maxGroupsDepth how deep they are.
	maxGroupsText  = 16 << 10
	maxGroups      = 512
	maxGroupsDepth = 4
	exampleGroups  = "[{name: replica, copies: 2, roles: {worker: 4}}]"
)

// GroupOf returns the group within its gang that the pod names; the PodGroup, which may be nil, can name another label
// for it than the usual one, or several, whose values are joined.
func GroupOf(pod *v1.Pod, pg *schedulingv1alpha1.PodGroup) string {
	if pg == nil {
		return ""
	}
	name := ""
	for i, key := range groupLabels(pg) {
		value := labelOrAnnotation(pod, key)
		if key == grouptree.PodField {
			value = grouptree.GroupName(NativeName(pod))
		}
		switch {
		case value == "":
			return ""
		case i > 0:
			name += "-"
		}
		name += value
	}
	return name
}

// groupLabels are the labels by which pods name their group.
func groupLabels(pg *schedulingv1alpha1.PodGroup) []string {
	label, named := pg.Annotations[wellknown.GroupLabelKey]
	if !named {
		label = wellknown.GroupKey
	}
	return strings.Split(label, ",")
}

// roleInGroup is how a role is called in the ledger that counts in a group only.
func roleInGroup(group, role string) string {
	if role == "" {
		return group
	}
	return group + "/" + role
}

// groupsOf reads the groups of a gang from its PodGroup; nil if it has none.
func groupsOf(pg *schedulingv1alpha1.PodGroup) (*tree.Group, error) {
	if slices.ContainsFunc(groupLabels(pg), func(key string) bool { return len(validation.IsQualifiedName(key)) > 0 }) {
		return nil, podview.BadAnnotation(pg, wellknown.GroupLabelKey, "the key of a pod label, such as "+wellknown.GroupKey)
	}
	text, given := pg.Annotations[wellknown.GroupsKey]
	if !given {
		return nil, nil
	}
	r := groupsReader{object: "PodGroup " + pg.Name, names: map[string]bool{}}
	if len(text) > maxGroupsText {
		return nil, r.bad("", text, fmt.Sprintf("a list of groups of at most %d characters", maxGroupsText))
	}
	var groups []grouptree.Group
	if err := yaml.UnmarshalStrict([]byte(text), &groups); err != nil || len(groups) == 0 {
		why := ""
		if err != nil {
			// The decoder names its own types.
			why = ": " + strings.NewReplacer("Go struct field Group.", "field ", "grouptree.Group", "a group",
				"error unmarshaling JSON: while decoding JSON: ", "", "error converting YAML to JSON: ", "").Replace(err.Error())
		}
		return nil, r.bad("", text, "a list of groups in YAML or JSON, such as "+exampleGroups+why)
	}
	root := &tree.Group{Least: len(groups)}
	levels, err := TopologyOf(pg, &v1.Pod{})
	if err != nil {
		return nil, err
	}
	if levels.Segment.Size > 0 {
		return nil, r.bad("", text, "allowed together with "+wellknown.SegmentSizeKey)
	}
	root.Groups, err = r.read(groups, "", "", len(levels.Required), 1)
	if err != nil {
		return nil, err
	}
	return root, nil
}

// groupsReader reads groups, and keeps their names, which have to differ.
type groupsReader struct {
	object string
	names  map[string]bool
}

func (r *groupsReader) bad(field, value, allowed string) error {
	return &wellknown.BadValue{Object: r.object, Kind: "annotation", Key: wellknown.GroupsKey + field, Value: value,
		Allowed: allowed}
}

// read reads groups within a group. The labels of their pods begin with the prefix, at is the path of the field that
// holds them, levels counts the levels that are required around them.
func (r *groupsReader) read(groups []grouptree.Group, prefix, at string, levels, depth int) ([]tree.Group, error) {
	if depth > maxGroupsDepth && len(groups) > 0 {
		return nil, r.bad(at, fmt.Sprint(len(groups), " groups"),
			fmt.Sprintf("allowed: groups are at most %d deep", maxGroupsDepth))
	}
	out := make([]tree.Group, 0, len(groups))
	for i := range groups {
		g, field := &groups[i], fmt.Sprintf("%s[%d]", at, i)
		if g.Name == "" || strings.Contains(g.Name, ".") { // dots separate the names of groups within copies
			return nil, r.bad(field+".name", g.Name, "the value of a label without dots")
		}
		if g.Copies == nil {
			if g.MinCopies != nil {
				return nil, r.bad(field+".minCopies", strconv.Itoa(*g.MinCopies), "allowed without copies")
			}
			one, err := r.one(g, prefix+g.Name, prefix, field, levels, depth)
			if err != nil {
				return nil, err
			}
			out = append(out, one)
			continue
		}
		if *g.Copies < 1 || *g.Copies > maxGroups {
			return nil, r.bad(field+".copies", strconv.Itoa(*g.Copies), fmt.Sprintf("a whole number from 1 to %d", maxGroups))
		}
		all := tree.Group{Name: prefix + g.Name, Copies: true, Least: *g.Copies}
		if g.MinCopies != nil {
			if all.Least = *g.MinCopies; all.Least < 0 || all.Least > *g.Copies {
				return nil, r.bad(field+".minCopies", strconv.Itoa(all.Least),
					fmt.Sprintf("a whole number from 0 to %d, the copies", *g.Copies))
			}
		}
		for n := range *g.Copies {
			name := prefix + g.Name + "-" + strconv.Itoa(n)
			one, err := r.one(g, name, name+".", field, levels, depth)
			if err != nil {
				return nil, err
			}
			all.Groups = append(all.Groups, one)
		}
		out = append(out, all)
	}
	return out, nil
}

// one reads a group, or one copy of it, whose pods carry the name in their label; those of groups within begin with the
// prefix.
func (r *groupsReader) one(g *grouptree.Group, name, prefix, field string, levels, depth int) (tree.Group, error) {
	out := tree.Group{Name: name, Least: len(g.Groups), Roles: map[string]int{}, Alone: g.Alone}
	switch {
	case len(validation.IsValidLabelValue(name)) > 0:
		return out, r.bad(field+".name", name, "the value of a label, which has at most 63 characters")
	case r.names[name]:
		return out, r.bad(field+".name", name, "a name that no other group has")
	case len(r.names) == maxGroups:
		return out, r.bad(field, g.Name, fmt.Sprintf("allowed: a gang has at most %d groups, with all copies", maxGroups))
	}
	r.names[name] = true
	for _, at := range []struct {
		field, text string
		levels      *[]string
	}{{".required", g.Required, &out.Required}, {".preferred", g.Preferred, &out.Preferred}} {
		if at.text == "" {
			continue
		}
		keys, allowed := topologyLevels(at.text)
		if levels += len(keys); allowed == "" && levels > maxTopologyLevels {
			allowed = fmt.Sprintf("allowed: a group and those around it have at most %d levels", maxTopologyLevels)
		}
		if allowed != "" {
			return out, r.bad(field+at.field, at.text, allowed)
		}
		*at.levels = keys
	}
	if g.Pods != nil {
		if *g.Pods < 0 || *g.Pods > maxMinMember {
			return out, r.bad(field+".pods", strconv.Itoa(*g.Pods), fmt.Sprintf("a whole number from 0 to %d", maxMinMember))
		}
		out.Roles[roleInGroup(name, "")] = *g.Pods
	}
	if len(g.Roles) > maxRoles {
		return out, r.bad(field+".roles", fmt.Sprint(len(g.Roles), " roles"), fmt.Sprintf("at most %d roles", maxRoles))
	}
	for role, n := range g.Roles {
		if role == "" || len(validation.IsValidLabelValue(role)) > 0 {
			return out, r.bad(field+".roles", role, "the value of a label")
		}
		if n < 0 || n > maxMinMember {
			return out, r.bad(field+".roles."+role, strconv.Itoa(n), fmt.Sprintf("a whole number from 0 to %d", maxMinMember))
		}
		out.Roles[roleInGroup(name, role)] = n
	}
	if g.MinGroups != nil {
		if out.Least = *g.MinGroups; out.Least < 0 || out.Least > len(g.Groups) {
			return out, r.bad(field+".minGroups", strconv.Itoa(out.Least),
				fmt.Sprintf("a whole number from 0 to %d, the groups within", len(g.Groups)))
		}
	}
	if len(out.Roles) == 0 && len(g.Groups) == 0 {
		return out, r.bad(field, g.Name, "a group with pods, roles or groups")
	}
	var err error
	out.Groups, err = r.read(g.Groups, prefix, field+".groups", levels, depth+1)
	return out, err
}

// UnknownGroup says that a pod names a group that the gang does not have.
func UnknownGroup(pod *v1.Pod, pg *schedulingv1alpha1.PodGroup) *wellknown.BadValue {
	return &wellknown.BadValue{Object: "pod " + pod.Name, Kind: "label",
		Key:   cmp.Or(pg.Annotations[wellknown.GroupLabelKey], wellknown.GroupKey),
		Value: GroupOf(pod, pg), Allowed: "a group of PodGroup " + pg.Name}
}
