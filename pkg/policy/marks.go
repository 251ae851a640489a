package policy

import (
	"unique"

	v1 "k8s.io/api/core/v1"
)

// Marks have one byte for each node set of a Set: whether the node is in it. They are a string, so that they can be
// compared. Empty Marks are those of an unknown node, which may be in any set.
type Marks string

// The bytes of Marks.
const (
	outside   = 'o'
	inside    = 'i'
	uncertain = '?' // the set cannot be evaluated for the node
)

// everywhere is the number of the set of all nodes.
const everywhere = -1

// in reports whether the node is in the set.
func (m Marks) in(set int) bool { return set == everywhere || m[set] == inside }

// mayBeIn reports whether the node is in the set or may be.
func (m Marks) mayBeIn(set int) bool { return set == everywhere || m == "" || m[set] != outside }

// unclear reports whether it is not known if the node is in the set.
func (m Marks) unclear(set int) bool { return set != everywhere && m[set] == uncertain }

// MarksOf returns the node sets that the node is in.
func (s *Set) MarksOf(node *v1.Node) Marks {
	marks, about := make([]byte, len(s.nodes)), nodeSubject(node)
	for i, of := range s.nodes {
		switch yes, err := of.matches(about); {
		case err != nil:
			marks[i] = uncertain
		case yes:
			marks[i] = inside
		default:
			marks[i] = outside
		}
	}
	// Nodes in the same sets share one string, so that a cycle that reads thousands of marks uses little memory.
	return Marks(unique.Make(string(marks)).Value())
}
