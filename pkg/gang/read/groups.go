package read

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gang/read/grouptree"
	"berth.dev/berth/pkg/gang/tree"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/wellknown"
)

const (
	// maxGroupsText bounds the text of a tree, maxGroups its groups with all copies, and maxGroupsDepth how deep they are.
	maxGroupsText  = 16 << 10
	maxGroups      = 512
	maxGroupsDepth = 4
	exampleGroups  = "[{name: replica, copies: 2, roles: {worker: 4}}]"
)

// GroupOf returns the pod's group within its gang, empty for none. The PodGroup, which may be nil, can name another
// label for it, or several, whose values are joined by hyphens.
func GroupOf(pod *v1.Pod, pg *schedulingv1alpha1.PodGroup) string {
	if pg == nil {
		return ""
	}
	name := ""
	for i, key := range groupLabels(pg) {
		value := podview.LabelOrAnnotation(pod, key)
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

// groupLabels returns the labels with a pod's group.
func groupLabels(pg *schedulingv1alpha1.PodGroup) []string {
	label, named := pg.Annotations[wellknown.GroupLabelKey]
	if !named {
		label = wellknown.GroupKey
	}
	return strings.Split(label, ",")
}

// roleInGroup is the name in the ledger of a role within a group.
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
		r.fail("", text, fmt.Sprintf("a list of groups of at most %d characters", maxGroupsText))
		return nil, r.err
	}
	var groups []grouptree.Group
	if err := yaml.UnmarshalStrict([]byte(text), &groups); err != nil || len(groups) == 0 {
		why := ""
		if err != nil {
			// The decoder names its own types.
			why = ": " + strings.NewReplacer("Go struct field Group.", "field ", "grouptree.Group", "a group",
				"error unmarshaling JSON: while decoding JSON: ", "", "error converting YAML to JSON: ", "").Replace(err.Error())
		}
		r.fail("", text, "a list of groups in YAML or JSON, such as "+exampleGroups+why)
		return nil, r.err
	}
	levels, err := TopologyOf(pg, &v1.Pod{})
	if err != nil {
		return nil, err
	}
	if levels.Segment.Size > 0 {
		r.fail("", text, "allowed together with "+wellknown.SegmentSizeKey)
	}
	root := &tree.Group{Least: len(groups), Groups: r.read(groups, "", "", len(levels.Required), 1)}
	if r.err != nil {
		return nil, r.err
	}
	return root, nil
}

// groupsReader reads groups, and keeps their names, which must differ, and the first error.
type groupsReader struct {
	object string
	names  map[string]bool
	err    error
}

func (r *groupsReader) fail(field, value, allowed string) {
	if r.err == nil {
		r.err = &wellknown.BadValue{Object: r.object, Kind: "annotation", Key: wellknown.GroupsKey + field, Value: value,
			Allowed: allowed}
	}
}

// number reads a number of pods or of groups, absent if there is none; of explains the bounds.
func (r *groupsReader) number(field string, n *int, absent, least, most int, of string) int {
	switch {
	case n == nil:
		return absent
	case *n < least || *n > most:
		r.fail(field, strconv.Itoa(*n), fmt.Sprintf("a whole number from %d to %d%s", least, most, of))
		return absent
	}
	return *n
}

// read reads groups within a group. Their names in labels begin with the prefix, at is the path of their field, and
// levels counts the required levels of the groups around them.
func (r *groupsReader) read(groups []grouptree.Group, prefix, at string, levels, depth int) []tree.Group {
	if depth > maxGroupsDepth && len(groups) > 0 {
		r.fail(at, fmt.Sprint(len(groups), " groups"), fmt.Sprintf("allowed: groups are at most %d deep", maxGroupsDepth))
	}
	out := make([]tree.Group, 0, len(groups))
	for i := range groups {
		g, field := &groups[i], fmt.Sprintf("%s[%d]", at, i)
		switch {
		case r.err != nil:
			return nil
		case g.Name == "" || strings.Contains(g.Name, "."): // dots separate the names of groups within copies
			r.fail(field+".name", g.Name, "the value of a label without dots")
		case g.Copies == nil && g.MinCopies != nil:
			r.fail(field+".minCopies", strconv.Itoa(*g.MinCopies), "allowed without copies")
		case g.Copies == nil:
			out = append(out, r.one(g, prefix+g.Name, prefix, field, levels, depth))
		default:
			copies := r.number(field+".copies", g.Copies, 0, 1, maxGroups, "")
			all := tree.Group{Name: prefix + g.Name, Copies: true,
				Least: r.number(field+".minCopies", g.MinCopies, copies, 0, copies, ", the copies")}
			for n := 0; n < copies && r.err == nil; n++ {
				name := fmt.Sprint(all.Name, "-", n)
				all.Groups = append(all.Groups, r.one(g, name, name+".", field, levels, depth))
			}
			out = append(out, all)
		}
	}
	return out
}

// one reads a group, or one copy of it, with its name in labels; names of groups within begin with the prefix.
func (r *groupsReader) one(g *grouptree.Group, name, prefix, field string, levels, depth int) tree.Group {
	switch {
	case len(validation.IsValidLabelValue(name)) > 0:
		r.fail(field+".name", name, "the value of a label, which has at most 63 characters")
	case r.names[name]:
		r.fail(field+".name", name, "a name that no other group has")
	case len(r.names) == maxGroups:
		r.fail(field, g.Name, fmt.Sprintf("allowed: a gang has at most %d groups, with all copies", maxGroups))
	}
	r.names[name] = true
	out := tree.Group{Name: name, Roles: map[string]int{}, Alone: g.Alone}
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
			r.fail(field+at.field, at.text, allowed)
		}
		*at.levels = keys
	}
	if g.Pods != nil {
		out.Roles[roleInGroup(name, "")] = r.number(field+".pods", g.Pods, 0, 0, maxMinMember, "")
	}
	if len(g.Roles) > maxRoles {
		r.fail(field+".roles", fmt.Sprint(len(g.Roles), " roles"), fmt.Sprintf("at most %d roles", maxRoles))
	}
	for role, n := range g.Roles {
		if role == "" || len(validation.IsValidLabelValue(role)) > 0 {
			r.fail(field+".roles", role, "the value of a label")
		}
		out.Roles[roleInGroup(name, role)] = r.number(field+".roles."+role, &n, 0, 0, maxMinMember, "")
	}
	out.Least = r.number(field+".minGroups", g.MinGroups, len(g.Groups), 0, len(g.Groups), ", the groups within")
	if len(out.Roles) == 0 && len(g.Groups) == 0 {
		r.fail(field, g.Name, "a group with pods, roles or groups")
	}
	out.Groups = r.read(g.Groups, prefix, field+".groups", levels, depth+1)
	return out
}

// UnknownGroup is the error of a pod that names a group that the gang does not have.
func UnknownGroup(pod *v1.Pod, pg *schedulingv1alpha1.PodGroup) *wellknown.BadValue {
	return &wellknown.BadValue{Object: "pod " + pod.Name, Kind: "label",
		Key:   cmp.Or(pg.Annotations[wellknown.GroupLabelKey], wellknown.GroupKey),
		Value: GroupOf(pod, pg), Allowed: "a group of PodGroup " + pg.Name}
}

// maxRoles bounds how many roles a group may have.
const maxRoles = 32

// Role returns the member's role in its gang, empty if it has none. The PodGroup, which may be nil, can name another
// label for it. If the gang has groups, the role includes the member's group.
func Role(pod *v1.Pod, pg *schedulingv1alpha1.PodGroup) string {
	if pg != nil && pg.Annotations[wellknown.GroupsKey] != "" {
		if group := GroupOf(pod, pg); group != "" {
			return roleInGroup(group, roleOf(pod, pg))
		}
	}
	return roleOf(pod, pg)
}

func roleOf(pod *v1.Pod, pg *schedulingv1alpha1.PodGroup) string {
	if pg != nil {
		if named := pg.Annotations[wellknown.RoleLabelKey]; named != "" {
			// Volcano writes a task into both, and reads either.
			return cmp.Or(pod.Labels[named], pod.Annotations[named])
		}
	}
	return pod.Labels[wellknown.RoleKey]
}

// minMembersByRole reads how many members of each role a gang needs, nil if it has no such annotation.
func minMembersByRole(pg *schedulingv1alpha1.PodGroup) (map[string]int, error) {
	if label, named := pg.Annotations[wellknown.RoleLabelKey]; named && len(validation.IsQualifiedName(label)) > 0 {
		return nil, podview.BadAnnotation(pg, wellknown.RoleLabelKey, "the key of a pod label, such as "+wellknown.RoleKey)
	}
	text, given := pg.Annotations[wellknown.MinMembersByRoleKey]
	if !given {
		return nil, nil
	}
	roles, allowed := parseRoles(text)
	if allowed != "" {
		return nil, podview.BadAnnotation(pg, wellknown.MinMembersByRoleKey, allowed)
	}
	maps.DeleteFunc(roles, func(_ string, n int) bool { return n == 0 })
	return roles, nil
}

// parseRoles reads the least number of members by role. For a bad value it returns what is allowed.
func parseRoles(text string) (roles map[string]int, allowed string) {
	const form = "roles with their least number of members, such as leader=1,worker=7"
	roles = map[string]int{}
	for part := range strings.SplitSeq(text, ",") {
		role, number, found := strings.Cut(part, "=")
		role = strings.TrimSpace(role)
		n, err := strconv.Atoi(strings.TrimSpace(number))
		_, twice := roles[role]
		switch {
		case !found || err != nil || role == "" || twice || len(validation.IsValidLabelValue(role)) > 0:
			return nil, form
		case n < 0 || n > maxMinMember:
			return nil, fmt.Sprintf("%s, each from 0 to %d", form, maxMinMember)
		case len(roles) == maxRoles:
			return nil, fmt.Sprintf("at most %d roles", maxRoles)
		}
		roles[role] = n
	}
	return roles, ""
}
