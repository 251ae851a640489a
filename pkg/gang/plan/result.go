package plan

import "berth.dev/berth/pkg/gang"

// Result is what came of planning a group.
type Result struct {
	// Assignments holds what the members that found a node were given, in the order in which they were placed.
	Assignments []gang.Assignment
	// Short lists the classes with members that found no node.
	Short []Shortage
	// Segments says what parts of the group share, if there are such parts, Lacking which part finds no place.
	Segments, Lacking string
}

// Shortage is one class of members that do not all fit.
type Shortage struct {
	Class        string
	Wanted, Fits int
}
