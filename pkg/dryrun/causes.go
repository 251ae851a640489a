package dryrun

import (
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"

	"berth.dev/berth/pkg/gang"
)

// Causes counts the nodes by what keeps the first class that is short off them.
func (d *Run) Causes(r gang.Result) []gang.NodeCause {
	if len(r.Short) == 0 {
		return nil
	}
	short := d.Classes[r.Short[0].Class]
	counts := short.causes
	if len(counts) == 0 {
		counts = short.siblings
	}
	causes := make([]gang.NodeCause, 0, len(counts))
	for cause, n := range counts {
		cause.Nodes = n
		causes = append(causes, cause)
	}
	return causes
}

// withheld counts a node that has members of the gang, and room that is promised to others, by what is said of that.
func (t *Class) withheld(status *fwk.Status) {
	for cause := range CausesOf(status) {
		if cause.Kind == (PromisedTo{}).Kind() {
			t.causes[cause]++
		}
	}
}

// crowded counts a node by what is said of it with the members of the gang that were placed there. That they use what
// the node has is said only if nothing else is to be said.
func (t *Class) crowded(status *fwk.Status) {
	counts := t.siblings
	switch status.Plugin() {
	case names.NodePorts, names.InterPodAffinity, names.PodTopologySpread:
		counts = t.causes
	}
	for cause := range CausesOf(status) {
		if cause.Short == "" {
			cause.Says += givenMembers
		}
		counts[cause]++
	}
}

const givenMembers = ", with the members that were placed there"
