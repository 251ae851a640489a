package cycles

import (
	"errors"
	"iter"

	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"

	"berth.dev/berth/pkg/gang/obstacle"
)

// rejectedError is why a pod or a node is rejected on its way through the framework, put into words once.
type rejectedError struct {
	obstacle.Reason
	words string
}

// Error returns the words.
func (e *rejectedError) Error() string { return e.words }

// String returns the words.
func (e *rejectedError) String() string { return e.words }

// ReasonError puts the reason into words, for a Status that is made more than once; Reject makes one that is not.
func ReasonError(reason obstacle.Reason) error { return &rejectedError{reason, reason.String()} }

// Reject is a Status that rejects for the reason.
func Reject(code fwk.Code, reason obstacle.Reason) *fwk.Status {
	return fwk.NewStatus(code).WithError(ReasonError(reason))
}

// Reasons goes through the reasons of a Status that rejects: the value that it was made of or, for plugins that give
// words alone, each of its texts.
func Reasons(status *fwk.Status) iter.Seq[obstacle.Reason] {
	return func(yield func(obstacle.Reason) bool) {
		if rejected, ok := errors.AsType[*rejectedError](status.AsError()); ok {
			yield(rejected)
			return
		}
		for _, words := range status.Reasons() {
			if !yield(obstacle.Text(words)) {
				return
			}
		}
	}
}

// Own reports whether a Status refuses a node for what the pod itself asks of nodes: by its selector, its affinity to
// nodes, taints that it does not tolerate, models of GPUs, or more than the node has. What comes free there does not
// help.
func Own(status *fwk.Status) bool {
	if rejected, ok := errors.AsType[*rejectedError](status.AsError()); ok {
		reason, says := rejected.Reason.(interface{ Own() bool })
		return says && reason.Own()
	}
	switch status.Plugin() {
	case names.NodeAffinity, names.NodeName, names.TaintToleration:
		return true
	case names.NodeResourcesFit:
		return status.Code() == fwk.UnschedulableAndUnresolvable
	}
	return false
}
