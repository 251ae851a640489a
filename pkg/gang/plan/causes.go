package plan

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/kubernetes/pkg/scheduler/metrics"

	"berth.dev/berth/pkg/capacity"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/obstacle"
	"berth.dev/berth/pkg/process"
)

// Causes counts the nodes, each once, by what keeps the first class that is short off them: the count of free capacity,
// or the filters on nodes that pass it. Filters see the nodes as the plan left them, or without the gang if its members
// share domains.
func (p *Planner) Causes(id gang.ID, a *Plan, nodes []fwk.NodeInfo) (obstacle.Nodes, error) {
	class, pod := a.lacks.Class, p.Members.Pod(a.lacks.Ref)
	if len(a.Short) > 0 {
		class = a.Short[0].Class
		pod = a.Classes[class].Pod
	}
	if pod == nil {
		return nil, nil
	}
	d := a.Run
	if len(a.keys) > 0 || a.homes.of != nil || len(a.Nodes) < len(nodes) {
		alone := memberOf(pod)
		alone.Class = class
		var err error
		if d, err = p.newRun(&Work{Ctx: a.ctx}, id, []gang.Member{alone}, Part{Nodes: nodes}); err != nil {
			return nil, err
		}
	}
	return d.Classes[class].causes(p.Capacity, pod, a.keys)
}

// causes counts the nodes for one more member of the class.
func (t *Class) causes(account *capacity.Index, pod *v1.Pod, keys []string) (obstacle.Nodes, error) {
	// The state does not know members that were placed after the last one of the class.
	t.State = nil
	if err := t.begin(pod); err != nil {
		return nil, err
	}
	if t.rejected != nil {
		return obstacle.Nodes{CauseOf(t.rejected)}, nil
	}
	key := account.Acquire(pod)
	defer account.Release(key)
	nodes := make([]string, len(t.run.Nodes))
	for i, n := range t.run.Nodes {
		nodes[i] = n.Node().Name
	}
	slots, statuses := account.SlotsOn(key, nodes), make([]*fwk.Status, len(nodes))
	outside := fwk.NewStatus(fwk.Unschedulable, fmt.Sprintf("node(s) didn't satisfy plugin(s) %v", sets.List(t.leftBy)))
	t.Profile.Parallelizer().Until(t.run.ctx, len(nodes), func(i int) {
		switch {
		case slots[i] == 0:
		case t.names != nil && !t.names.Has(nodes[i]):
			statuses[i] = outside
		default:
			if statuses[i] = t.fits(i); statuses[i].IsSuccess() {
				statuses[i] = t.turnedAway[nodes[i]]
			}
		}
	}, metrics.Filter)
	refused := map[string]obstacle.NodeCause{}
	for i, status := range statuses {
		switch {
		case status.IsRejected():
			refused[nodes[i]] = t.cause(status, t.run.copies[nodes[i]] != nil)
		case !status.IsSuccess():
			return nil, fmt.Errorf("filtering node %s: %w", nodes[i], status.AsError())
		}
	}
	unfit := t.filters.Unfit(pod)
	return account.Causes(key, keys, nil, func(node *v1.Node) obstacle.NodeCause {
		if cause := refused[node.Name]; cause != (obstacle.NodeCause{}) || unfit == nil {
			return cause
		}
		return unfit(node)
	}), nil
}

// cause is the message of a plugin against a node; none if only the members placed there make the node too small,
// because one fits without them.
func (t *Class) cause(status *fwk.Status, placed bool) obstacle.NodeCause {
	cause := CauseOf(status)
	if !placed {
		return cause
	}
	switch status.Plugin() {
	case names.NodePorts, names.InterPodAffinity, names.PodTopologySpread:
		cause.Message += ", with the members that were placed there"
		return cause
	}
	if cause.Kind == (capacity.KeptFor{}).Kind() {
		return cause
	}
	return obstacle.NodeCause{}
}

// CauseOf is the first cause that a plugin gives against a node, the zero value if it gives none.
func CauseOf(status *fwk.Status) obstacle.NodeCause {
	for reason := range process.Reasons(status) {
		cause := obstacle.OfNodes(reason)
		if short, ok := strings.CutPrefix(cause.Message, "Insufficient "); ok && status.Plugin() == names.NodeResourcesFit {
			return obstacle.NodeCause{Short: short}
		}
		cause.Own = process.Own(status)
		return cause
	}
	return obstacle.NodeCause{}
}

// RefusedBefore is the reason that a node is left out because it has refused a member. Its value is the message of the
// plugin, if known.
type RefusedBefore string

// String includes the message of the plugin.
func (r RefusedBefore) String() string {
	if r == "" {
		return r.Kind()
	}
	return r.Kind() + ": " + string(r)
}

// Kind leaves out the message of the plugin.
func (RefusedBefore) Kind() string { return "node(s) that turned a member away" }
