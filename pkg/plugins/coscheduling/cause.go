package coscheduling

import (
	"iter"
	"strings"

	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/reasons"
)

// causesOf goes through what a plugin says against a node, as causes of no node yet.
func causesOf(status *fwk.Status) iter.Seq[gang.NodeCause] {
	return func(yield func(gang.NodeCause) bool) {
		for r := range reasons.Of(status) {
			cause := gang.NodeCause{Says: r.String(), Kind: r.Kind()}
			resource, short := strings.CutPrefix(cause.Says, "Insufficient ")
			if short && status.Plugin() == names.NodeResourcesFit {
				cause = gang.NodeCause{Short: resource}
			}
			if !yield(cause) {
				return
			}
		}
	}
}

// promisedTo is the gang to which what a node has free is promised.
type promisedTo gang.ID

// String names the gang.
func (p promisedTo) String() string {
	return "node(s) whose free capacity is promised to gang " + gang.ID(p).String()
}

// Kind does not name the gang.
func (promisedTo) Kind() string { return "node(s) whose free capacity is promised to a gang" }

// triedFirst says that gangs are tried for what came free before the pod is.
type triedFirst struct{}

// String does not name the gangs, of which there may be many.
func (t triedFirst) String() string { return t.Kind() }

// Kind says it.
func (triedFirst) Kind() string {
	return "node(s) with room that came free just now, for which gangs of higher priority are tried first"
}

// refusedBefore is what a plugin said when it turned a member away, as far as that is known, of a node that is left out
// for it.
type refusedBefore string

// String repeats what the plugin said.
func (r refusedBefore) String() string {
	if r == "" {
		return r.Kind()
	}
	return r.Kind() + ": " + string(r)
}

// Kind says it without the plugin's words.
func (refusedBefore) Kind() string { return "node(s) that turned a member away" }
