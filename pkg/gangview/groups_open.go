package gangview

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/tree"
	"berth.dev/berth/pkg/wellknown"
)

// open reads a group with as many copies as pods name. Those that are needed but that no pod has named yet get the names
// that come first.
func (r *groupsReader) open(g *groupText, field string, levels, depth int) (tree.Group, error) {
	all := tree.Group{Name: g.Name, Copies: true, Least: min(max(ptr.Deref(g.MinCopies, 0), 0), maxGroups)}
	names := slices.Clone(g.Named)
	for n := 0; len(names) < max(all.Least, 1); n++ {
		if next := *g.Open + strconv.Itoa(n); !slices.Contains(names, next) {
			names = append(names, next)
		}
	}
	for _, name := range names {
		one, err := r.one(g, name, name+".", field, levels, depth)
		if err != nil {
			return tree.Group{}, err
		}
		all.Groups = append(all.Groups, one)
	}
	return all, nil
}

// OpenGroup returns the group that the pod names within a gang with as many groups as pods name; empty if the gang has a
// number of groups, or the pod names none that it can have.
func OpenGroup(pod *v1.Pod, pg *schedulingv1alpha1.PodGroup) string {
	if pg == nil || !strings.Contains(pg.Annotations[wellknown.GroupsKey], `"open":`) {
		return ""
	}
	name := GroupOf(pod, pg)
	if len(validation.IsValidLabelValue(name)) > 0 {
		return ""
	}
	return name
}

// MostOpenGroups is how many groups of a gang pods may name, and mostOpenText how long their names are in all.
const (
	MostOpenGroups = maxGroups / 2
	mostOpenText   = maxGroupsText / 2
)

// WithGroups is the state with the groups that pods have named, where it has as many groups as they name.
func (s *OwnerState) WithGroups(names []string) OwnerState {
	out := *s
	says := map[string]string{}
	if len(names) == 0 || json.Unmarshal([]byte(s.Says), &says) != nil {
		return out
	}
	var groups []groupText
	if json.Unmarshal([]byte(says[wellknown.GroupsKey]), &groups) != nil {
		return out // annotations of Berth on the object, in YAML
	}
	length := 0
	for _, name := range names {
		if length += len(name); length > mostOpenText {
			break
		}
		// The one with the longest beginning that fits.
		at := -1
		for i := range groups {
			open := groups[i].Open
			if open != nil && strings.HasPrefix(name, *open) && len(name) > len(*open) &&
				(at < 0 || len(*open) > len(*groups[at].Open)) {
				at = i
			}
		}
		if at >= 0 && !slices.Contains(groups[at].Named, name) {
			groups[at].Named = append(groups[at].Named, name)
		}
	}
	text, _ := json.Marshal(groups) // names and numbers can be written
	says[wellknown.GroupsKey] = string(text)
	out.Says = encode(says)
	return out
}

// MapGroups returns the value of the annotation with other names of groups and roles; one that cannot be read becomes
// empty. Pods have to name their groups by MapGroup.
func MapGroups(value string, name, role func(string) string) string {
	var groups []groupText
	if yaml.UnmarshalStrict([]byte(value), &groups) != nil {
		return ""
	}
	mapGroups(groups, name, role)
	text, _ := json.Marshal(groups) // names and numbers can be written
	return string(text)
}

func mapGroups(groups []groupText, name, role func(string) string) {
	for i := range groups {
		g := &groups[i]
		g.Name, g.Open, g.Named = MapGroup(g.Name, name), nil, nil
		roles := make(map[string]int, len(g.Roles))
		for of, n := range g.Roles {
			roles[role(of)] = n
		}
		g.Roles = roles
		mapGroups(g.Groups, name, role)
	}
}

// MapGroup returns the name of a group, as pods say it, with other names in it: those of the groups around it stay
// apart, and numbers stay.
func MapGroup(value string, name func(string) string) string {
	parts := strings.Split(value, ".")
	for i, part := range parts {
		of := part
		for {
			dash := strings.LastIndexByte(of, '-')
			if dash <= 0 {
				break
			}
			if _, err := strconv.ParseUint(of[dash+1:], 10, 32); err != nil {
				break
			}
			of = of[:dash]
		}
		parts[i] = name(of) + part[len(of):]
	}
	return strings.Join(parts, ".")
}
