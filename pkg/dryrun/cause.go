package dryrun

import (
	"iter"
	"strings"

	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"

	"berth.dev/berth/pkg/cycles"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gangplan"
)

// CausesOf goes through what a plugin says against a node, as causes of no node yet.
func CausesOf(status *fwk.Status) iter.Seq[gangplan.NodeCause] {
	return func(yield func(gangplan.NodeCause) bool) {
		for r := range cycles.Reasons(status) {
			cause := gangplan.NodeCause{Says: r.String(), Kind: r.Kind()}
			resource, short := strings.CutPrefix(cause.Says, "Insufficient ")
			if short && status.Plugin() == names.NodeResourcesFit {
				cause = gangplan.NodeCause{Short: resource}
			}
			if !yield(cause) {
				return
			}
		}
	}
}

// KeptFor is the gang for which what a node has free is kept, or what pods that move are called.
type KeptFor gang.ID

// String names the gang.
func (p KeptFor) String() string {
	what := "gang "
	if strings.Contains(p.Name, " ") {
		what = "" // no object's name has a space
	}
	return "node(s) whose free capacity is kept for " + what + gang.ID(p).String()
}

// Kind does not name the gang.
func (KeptFor) Kind() string { return "node(s) whose free capacity is kept for a gang" }

// Cause is the cause of no node yet.
func (p KeptFor) Cause() gangplan.NodeCause {
	return gangplan.NodeCause{Says: p.String(), Kind: p.Kind()}
}

// RefusedBefore is what a plugin said when it turned a member away, as far as that is known, of a node that is left out
// for it.
type RefusedBefore string

// String repeats what the plugin said.
func (r RefusedBefore) String() string {
	if r == "" {
		return r.Kind()
	}
	return r.Kind() + ": " + string(r)
}

// Kind says it without the plugin's words.
func (RefusedBefore) Kind() string { return "node(s) that turned a member away" }
