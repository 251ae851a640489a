package dump

import (
	"strings"

	"berth.dev/berth/pkg/gang/steps"
	"berth.dev/berth/pkg/gangview"
	"berth.dev/berth/pkg/grouptree"
	"berth.dev/berth/pkg/wellknown"
)

// groups hashes the names of roles and groups of a gang.
func (h *NameHasher) groups(annotations map[string]any) {
	label, named := annotations[wellknown.RoleLabelKey].(string)
	if !named {
		label = wellknown.RoleKey
	}
	role := func(role string) string { return h.labelValue(label, role) }
	if roles, ok := annotations[wellknown.MinMembersByRoleKey].(string); ok {
		annotations[wellknown.MinMembersByRoleKey] = gangview.MapRoles(roles, role)
	}
	if groups, ok := annotations[wellknown.GroupsKey].(string); ok {
		annotations[wellknown.GroupsKey] = grouptree.MapGroups(groups, h.part, role)
	}
	if by, ok := annotations[wellknown.GrowByKey].(string); ok {
		_, isTree := annotations[wellknown.GroupsKey]
		size, _ := steps.Parse(by) // one that cannot be read becomes empty
		annotations[wellknown.GrowByKey] = string(size.Map(func(name string) string {
			group, of, within := strings.Cut(name, "/")
			switch {
			case within:
				return grouptree.MapGroupName(group, h.part) + "/" + role(of)
			case isTree:
				return grouptree.MapGroupName(name, h.part)
			}
			return role(name)
		}))
	}
	if group, ok := annotations[wellknown.GroupKey].(string); ok {
		annotations[wellknown.GroupKey] = h.labelValue(wellknown.GroupKey, group)
	}
	if _, named := annotations[wellknown.GroupLabelKey]; named {
		// The values of other labels are hashed whole. Without the tree, its members are of one gang all the same.
		delete(annotations, wellknown.GroupsKey)
		delete(annotations, wellknown.GrowByKey)
	}
}
