// Package grouptext is the text by which a PodGroup declares the groups within its gang, in the annotation
// berth.dev/groups: what it can say, how it is written, and how names in it are replaced.
//
// gangview reads it and checks what it says, dialects and trees of native groups write it, and dumps replace the names.
package grouptext

import (
	"encoding/json"
	"strings"

	"sigs.k8s.io/yaml"
)

// Group is a group as the annotation has it.
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
	// Open is set by dialects in which pods name the copies. The names of the copies begin with its value, and Named are
	// those that pods have named.
	Open  *string  `json:"open,omitempty"`
	Named []string `json:"named,omitempty"`
	// Alone and Later are set by dialects: no other such group has the domain, and this number of pods comes when the
	// others have nodes.
	Alone bool `json:"alone,omitempty"`
	Later int  `json:"later,omitempty"`
}

// Encode writes the groups so that equal ones are written alike.
func Encode(groups []Group) string {
	text, _ := json.Marshal(groups) // names and numbers can be written
	return string(text)
}

// Map returns the value of the annotation with other names of groups and roles; one that cannot be read becomes empty.
// Pods have to name their groups by MapName.
func Map(value string, name, role func(string) string) string {
	var groups []Group
	if yaml.UnmarshalStrict([]byte(value), &groups) != nil {
		return ""
	}
	mapGroups(groups, name, role)
	return Encode(groups)
}

func mapGroups(groups []Group, name, role func(string) string) {
	for i := range groups {
		g := &groups[i]
		g.Name, g.Open, g.Named = MapName(g.Name, name), nil, nil
		roles := make(map[string]int, len(g.Roles))
		for of, n := range g.Roles {
			roles[role(of)] = n
		}
		g.Roles = roles
		mapGroups(g.Groups, name, role)
	}
}

// MapName returns the name of a group, as pods say it, with other names in it: those of the groups around it stay
// apart, and numbers stay.
func MapName(value string, name func(string) string) string {
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
