package dump

import (
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
	if group, ok := annotations[wellknown.GroupKey].(string); ok {
		annotations[wellknown.GroupKey] = h.labelValue(wellknown.GroupKey, group)
	}
	if _, named := annotations[wellknown.GroupLabelKey]; named {
		// The values of other labels are hashed whole. Without the tree, its members are of one gang all the same.
		delete(annotations, wellknown.GroupsKey)
	}
}
