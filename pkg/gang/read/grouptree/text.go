package grouptree

import "encoding/json"

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
