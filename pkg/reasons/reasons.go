// Package reasons carries why a pod or a node is rejected through the framework's Status as a value, from the plugin
// that finds it to those who count it. A Status has words for users; code that groups rejections by what is the matter
// needs no words.
package reasons

import (
	"errors"
	"iter"

	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/obstacle"
)

// rejectedError is a reason on its way through the framework, put into words once.
type rejectedError struct {
	obstacle.Reason
	words string
}

// Error returns the words.
func (e *rejectedError) Error() string { return e.words }

// String returns the words.
func (e *rejectedError) String() string { return e.words }

// Error puts the reason into words, for a Status that is made more than once. See Status for one that is not.
func Error(reason obstacle.Reason) error { return &rejectedError{reason, reason.String()} }

// Status is one that rejects for the reason.
func Status(code fwk.Code, reason obstacle.Reason) *fwk.Status {
	return fwk.NewStatus(code).WithError(Error(reason))
}

// Of goes through the reasons of a Status that rejects: the value that it was made of or, for plugins that give words
// alone, each of its texts.
func Of(status *fwk.Status) iter.Seq[obstacle.Reason] {
	return func(yield func(obstacle.Reason) bool) {
		if rejected, ok := errors.AsType[*rejectedError](status.AsError()); ok {
			yield(rejected)
			return
		}
		for _, words := range status.Reasons() {
			if !yield(obstacle.Told(words)) {
				return
			}
		}
	}
}
