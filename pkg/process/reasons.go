package process

import (
	"errors"
	"iter"

	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"

	"berth.dev/berth/pkg/gang/obstacle"
)

// rejectedError is the reason why a plugin rejects a pod or a node, with its text.
type rejectedError struct {
	obstacle.Reason
	text string
}

// Error returns the text.
func (e *rejectedError) Error() string { return e.text }

// String returns the text.
func (e *rejectedError) String() string { return e.text }

// ReasonError returns the reason as the error of a Status that is made many times: its text is made once.
func ReasonError(reason obstacle.Reason) error { return &rejectedError{reason, reason.String()} }

// Reject returns a Status of that code with the reason.
func Reject(code fwk.Code, reason obstacle.Reason) *fwk.Status {
	return fwk.NewStatus(code).WithError(ReasonError(reason))
}

// Reasons yields the reasons of a Status that rejects: the value that it was made with or, from plugins that give only
// texts, each of these.
func Reasons(status *fwk.Status) iter.Seq[obstacle.Reason] {
	return func(yield func(obstacle.Reason) bool) {
		if rejected, ok := errors.AsType[*rejectedError](status.AsError()); ok {
			yield(rejected)
			return
		}
		for _, text := range status.Reasons() {
			if !yield(obstacle.Text(text)) {
				return
			}
		}
	}
}

// Own reports whether a Status refuses a node for what the pod itself requires of nodes: its selector, node affinity,
// tolerations, GPU models, or more than the node's allocatable. Capacity that is freed there does not help.
func Own(status *fwk.Status) bool {
	if rejected, ok := errors.AsType[*rejectedError](status.AsError()); ok {
		reason, ok := rejected.Reason.(interface{ Own() bool })
		return ok && reason.Own()
	}
	switch status.Plugin() {
	case names.NodeAffinity, names.NodeName, names.TaintToleration:
		return true
	case names.NodeResourcesFit:
		return status.Code() == fwk.UnschedulableAndUnresolvable
	}
	return false
}
