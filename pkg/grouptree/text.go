package grouptree

import (
	"encoding/json"
	"strings"

	"sigs.k8s.io/yaml"
)

// Group is a group within a gang as the annotation berth.dev/groups of a PodGroup has it.
type Group struct {
	Name      string         `json:"name"`
	Copies    *int           `json:"copies,omitempty"`
	MinCopies *int           `json:"minCopies,omitempty"`
	Required  string         `json:"required,omitempty"`
	Preferred string         `json:"preferred,omitempty"`
	Pods      *int           `json:"pods,omitempty"`
	Roles     map[string]int `json:"roles,omitempty"`
	Groups    []Group        `json:"groups,omitempty"`
	MinGroups *int           `json:"minGroups,omitempty"`
	// Alone is set by dialects: no other such group has the domain.
	Alone bool `json:"alone,omitempty"`
}

// EncodeGroups writes the groups so that equal ones are written alike.
func EncodeGroups(groups []Group) string {
	text, _ := json.Marshal(groups) // names and numbers can be written
	return string(text)
}

// MapGroups returns the value of the annotation with other names of groups and roles; one that cannot be read becomes empty.
// Pods have to name their groups by MapGroupName.
func MapGroups(value string, name, role func(string) string) string {
	var groups []Group
	if yaml.UnmarshalStrict([]byte(value), &groups) != nil {
		return ""
	}
	mapGroups(groups, name, role)
	return EncodeGroups(groups)
}

func mapGroups(groups []Group, name, role func(string) string) {
	for i := range groups {
		g := &groups[i]
		g.Name = MapGroupName(g.Name, name)
		roles := make(map[string]int, len(g.Roles))
		for of, n := range g.Roles {
			roles[role(of)] = n
		}
		g.Roles = roles
		mapGroups(g.Groups, name, role)
	}
}

// MapGroupName returns the name of a group, as pods say it, with other names in it: those of the groups around it stay
// apart, and numbers stay.
func MapGroupName(value string, name func(string) string) string {
	parts := strings.Split(value, ".")
	for i, part := range parts {
		of := part
		for {
			dash := strings.LastIndexByte(of, '-')
			if dash <= 0 || strings.Trim(of[dash+1:], "0123456789") != "" {
				break
			}
			of = of[:dash]
		}
		parts[i] = name(of) + part[len(of):]
	}
	return strings.Join(parts, ".")
}
