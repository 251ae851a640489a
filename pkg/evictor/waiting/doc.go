// Package waiting knows those that wait before others are evicted for them: while capacity may come, or until the gang
// that may have to make room has been bound.
//
// The evictor asks it in cycles and in the loop of gangs, and has those tried again that it returns. It evicts nothing.
package waiting

import (
	"time"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/gang"
)

// LookEvery is how often it is looked whether a notice or a delay has ended.
const LookEvery = time.Second

// For is the gang or the pod that waits.
type For struct {
	// Name says for whom, in messages and as a key; ID is the zero ID for a single pod.
	Name string
	ID   gang.ID
	Only *v1.Pod
}
