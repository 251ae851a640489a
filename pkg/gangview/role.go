package gangview

import (
	"cmp"
	"fmt"
	"maps"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/wellknown"
)

// maxRoles bounds how many roles a group may have.
const maxRoles = 32

// Role returns the member's role in its gang, empty if it has none. The PodGroup, which may be nil, can name another
// label for it than the usual one. Where the gang has groups within, a role is one of the member's group.
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

// minMembersByRole reads how many members of each role a group needs; nil if it does not say.
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

// parseRoles reads the least number of members by role. If it cannot be read, allowed says what it should be.
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
