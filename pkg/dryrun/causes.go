package dryrun

import (
	"maps"

	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"

	"berth.dev/berth/pkg/gangplan"
)

// Causes counts the nodes by what keeps the first class that is short off them.
func (d *Run) Causes(r gangplan.Result) []gangplan.NodeCause {
	if len(r.Short) == 0 {
		return nil
	}
	short := d.Classes[r.Short[0].Class]
	counts := short.causes.nodes
	if len(counts) == 0 {
		counts = short.causes.siblings
	}
	causes := make([]gangplan.NodeCause, 0, len(counts))
	for cause, n := range counts {
		cause.Nodes = n
		causes = append(causes, cause)
	}
	return causes
}

// causeCounts count the nodes that do not fit by their causes, in which there are no numbers of nodes.
type causeCounts struct {
	// lasting are those of the nodes that will not fit whatever is placed elsewhere.
	nodes, lasting map[gangplan.NodeCause]int
	// siblings count the nodes that do not fit any more since members of the gang were placed there.
	siblings map[gangplan.NodeCause]int
}

func newCauseCounts() causeCounts {
	return causeCounts{map[gangplan.NodeCause]int{}, map[gangplan.NodeCause]int{}, map[gangplan.NodeCause]int{}}
}

// startOver forgets what may change with the places of siblings, before the nodes are looked at again.
func (c *causeCounts) startOver() {
	c.nodes = maps.Clone(c.lasting)
	clear(c.siblings)
}

// withheld counts a node that has members of the gang, and room that is kept for others, by what is said of that.
func (c *causeCounts) withheld(status *fwk.Status) {
	for cause := range CausesOf(status) {
		if cause.Kind == (KeptFor{}).Kind() {
			c.nodes[cause]++
		}
	}
}

// crowded counts a node by what is said of it with the members of the gang that were placed there. That they use what
// the node has is said only if nothing else is to be said.
func (c *causeCounts) crowded(status *fwk.Status) {
	counts := c.siblings
	switch status.Plugin() {
	case names.NodePorts, names.InterPodAffinity, names.PodTopologySpread:
		counts = c.nodes
	}
	for cause := range CausesOf(status) {
		if cause.Short == "" {
			cause.Says += givenMembers
		}
		counts[cause]++
	}
}

const givenMembers = ", with the members that were placed there"
