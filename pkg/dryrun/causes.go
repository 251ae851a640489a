package dryrun

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/kubernetes/pkg/scheduler/metrics"

	"berth.dev/berth/pkg/capacity"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gangplan"
	"berth.dev/berth/pkg/podview"
)

// Causes counts the nodes by what keeps the first class that is short off them, each once. A plan that left nodes out
// for the domains that members have to share does not know of them: the nodes are filtered once more.
func (p *Planner) Causes(id gang.ID, a *Plan, nodes []fwk.NodeInfo) ([]gangplan.NodeCause, error) {
	if missing := p.Capacity.Missing(a.keys); len(missing) > 0 {
		return missing, nil
	}
	m, pod := a.lacks, p.Pod(a.lacks.Ref)
	if len(a.Short) > 0 {
		m.Class = a.Short[0].Class
		t := a.Classes[m.Class]
		if len(a.keys) == 0 && a.homes == nil && len(a.Nodes) == len(nodes) {
			return t.counted(nil, nil), nil
		}
		pod = t.Pod
	}
	if pod == nil {
		return nil, nil
	}
	alone := memberOf(pod)
	alone.Class = m.Class
	d, err := p.newRun(&Work{Ctx: a.ctx}, id, []gang.Member{alone}, Part{Nodes: nodes})
	if err != nil {
		return nil, err
	}
	defer d.close()
	return d.Classes[m.Class].survey(pod, a.keys)
}

// survey counts all nodes for a member that is placed alone and shares the values of the labels keys with others.
func (t *Class) survey(pod *v1.Pod, keys []string) ([]gangplan.NodeCause, error) {
	if err := t.begin(pod); err != nil {
		return nil, err
	}
	statuses := make([]*fwk.Status, len(t.eligible))
	t.Profile.Parallelizer().Until(t.run.ctx, len(statuses), func(i int) { statuses[i] = t.fits(t.eligible[i]) },
		metrics.Filter)
	fits := map[string]int{}
	for i, status := range statuses {
		at := t.eligible[i]
		labels, values := t.run.Nodes[at].Node().Labels, make([]string, len(keys))
		for k, key := range keys {
			values[k] = labels[key]
		}
		switch {
		case !status.IsSuccess() && !status.IsRejected():
			return nil, fmt.Errorf("filtering node %s: %w", t.run.Nodes[at].Node().Name, status.AsError())
		case slices.Contains(values, "") && !excludes(status):
			t.causes.nodes[capacity.Unlabelled(keys, 0)]++
		case status.IsSuccess():
			fits[strings.Join(values, "\x00")]++
		default:
			t.causes.nodes[t.cause(status, at)]++
		}
	}
	return t.counted(keys, slices.Collect(maps.Values(fits))), nil
}

// excludes reports whether what a node is keeps the pod off it, whatever it has.
func excludes(status *fwk.Status) bool {
	if status.IsSuccess() {
		return false
	}
	switch status.Plugin() {
	case names.NodeUnschedulable, names.NodeName, names.TaintToleration, names.NodeAffinity:
		return true
	}
	return false
}

// counted returns the causes with their numbers of nodes, and by domain of keys the nodes that fit: without keys those
// that are not counted otherwise.
func (t *Class) counted(keys []string, fits []int) []gangplan.NodeCause {
	counts := t.causes.nodes
	if len(counts) == 0 {
		counts = t.causes.siblings
	}
	left := len(t.run.Nodes)
	causes := make([]gangplan.NodeCause, 0, len(counts)+2)
	for cause, n := range counts {
		if left -= n; n == 0 {
			left = 0 // PreFilter turned the pod away
		}
		if cause.Most == anySize {
			causes = append(causes, capacity.Lacking(v1.ResourceName(cause.Short), t.causes.most[cause.Short], n))
			continue
		}
		cause.Nodes = n
		causes = append(causes, cause)
	}
	if t.names != nil {
		outside := 0
		for _, n := range t.run.Nodes {
			if !t.names.Has(n.Node().Name) {
				outside++
			}
		}
		if left -= outside; outside > 0 {
			causes = append(causes, capacity.Cause(fmt.Sprintf("node(s) didn't satisfy plugin(s) %v", sets.List(t.leftBy)),
				outside))
		}
	}
	if keys == nil {
		fits = []int{max(left, 0)}
	}
	return capacity.Fitting(causes, keys, fits)
}

// anySize stands for the most that nodes have of a resource while they are counted.
const anySize = "any"

// cause returns the first of what a plugin says against a node: what it lacks without pods, then what it is short of.
func (t *Class) cause(status *fwk.Status, i int) gangplan.NodeCause {
	var first gangplan.NodeCause
	var has int64
	for c := range CausesOf(status) {
		var most int64
		if name := v1.ResourceName(c.Short); name != "" {
			if t.asks == nil {
				t.asks = podview.Amounts(podview.Requests(t.Pod))
			}
			most = podview.AllocatableOf(t.run.Nodes[i].Node())[name]
			switch {
			case most == 0:
				c.Most = "0"
			case most < t.asks[name]:
				c.Most = anySize
			}
		}
		if first == (gangplan.NodeCause{}) || compareCauses(c, first) < 0 {
			first, has = c, most
		}
	}
	if first.Most != "" {
		t.causes.most[first.Short] = max(t.causes.most[first.Short], has)
	}
	return first
}

// compareCauses orders what one plugin says of a node: what lasts comes first, and devices before what all nodes have.
func compareCauses(a, b gangplan.NodeCause) int {
	kind := func(c gangplan.NodeCause) int {
		kind := 2
		switch {
		case strings.Contains(c.Short, "/"):
			kind = 0
		case c.Short == "":
			kind = 1
		}
		if c.Most == "" {
			kind += 3
		}
		return kind
	}
	return cmp.Or(cmp.Compare(kind(a), kind(b)), cmp.Compare(a.Short, b.Short))
}

// causeCounts count the nodes that do not fit by their causes, in which there are no numbers of nodes.
type causeCounts struct {
	// lasting are those of the nodes that will not fit whatever is placed elsewhere.
	nodes, lasting map[gangplan.NodeCause]int
	// siblings count the nodes that do not fit any more since members of the gang were placed there.
	siblings map[gangplan.NodeCause]int
	// most is how much nodes without enough have of a resource at most.
	most map[string]int64
}

func newCauseCounts() causeCounts {
	return causeCounts{map[gangplan.NodeCause]int{}, map[gangplan.NodeCause]int{}, map[gangplan.NodeCause]int{},
		map[string]int64{}}
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

// crowded counts a node by what is said of it with the members of the gang that were placed there: one that is short of
// a resource with them fits. Other plugins' words are said only if nothing else is to be said.
func (c *causeCounts) crowded(status *fwk.Status) {
	counts := c.siblings
	switch status.Plugin() {
	case names.NodePorts, names.InterPodAffinity, names.PodTopologySpread:
		counts = c.nodes
	}
	for cause := range CausesOf(status) {
		if cause.Short == "" && cause.Kind != (KeptFor{}).Kind() {
			cause.Says += givenMembers
			counts[cause]++
			break
		}
	}
}

const givenMembers = ", with the members that were placed there"
