package policy

import (
	"unique"

	v1 "k8s.io/api/core/v1"
)

// Marks say of each node set of a Set whether a node is in it, a byte for each. They are a string, so that nodes in the
// same sets are found by comparing it. Empty Marks are those of a node that is not known, which may be in any set.
type Marks string

// The bytes of Marks.
const (
	outside   = 'o'
	inside    = 'i'
	uncertain = '?' // the set cannot be evaluated for the node
)

// everywhere is the number of the set of all nodes.
const everywhere = -1

// holds reports whether the node is in the set.
func (m Marks) holds(set int) bool { return set == everywhere || m[set] == inside }

// mayHold reports whether the node is in the set or may be.
func (m Marks) mayHold(set int) bool { return set == everywhere || m == "" || m[set] != outside }

// unclear reports whether it is not known if the node is in the set.
func (m Marks) unclear(set int) bool { return set != everywhere && m[set] == uncertain }

// MarksOf returns what the node has to do with the set.
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
	// Nodes in the same sets share their marks: a cycle that asks thousands of nodes finds them in the processor's cache.
	return Marks(unique.Make(string(marks)).Value())
}
