package coscheduling

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/kubeview"
	"berth.dev/berth/pkg/topology"
)

// arrangement is a seating of a gang, or of as much of it as fits.
type arrangement struct {
	gang.Result
	*board
	// within is the label key of the level that all members have to share, or empty.
	within string
}

// arrange seats the gang on nodes, within one domain if it asks for that: in the domain that fits it most tightly.
// prepare, which may be nil, changes each board before anybody is seated.
func (c *coordinator) arrange(ctx context.Context, id gang.ID, turn gang.Turn, nodes []fwk.NodeInfo, prepare func(*board) error) (*arrangement, error) {
	levels, err := c.topology(id, c.pod(turn.Members[0].Ref()))
	if err != nil {
		return nil, err
	}
	var best *arrangement
	for _, part := range c.parts(id, levels, turn, nodes, prepare != nil) {
		b, err := c.newBoard(ctx, turn.Members, part)
		if err != nil {
			return nil, err
		}
		if prepare != nil {
			if err := prepare(b); err != nil {
				return nil, err
			}
		}
		r, err := gang.Build(turn.Members, turn.Need, b.hardness, b)
		if err != nil {
			return nil, err
		}
		if best == nil || len(r.Seats) > len(best.Seats) {
			if best != nil {
				b.examined += best.examined
			}
			best = &arrangement{Result: r, board: b, within: levels.Required}
		}
		if r.Feasible() {
			return best, nil
		}
	}
	return best, nil
}

// topology returns the levels that the gang asks for.
func (c *coordinator) topology(id gang.ID, pod *v1.Pod) (kubeview.GangTopology, error) {
	if pod == nil {
		pod = &v1.Pod{}
	}
	return kubeview.TopologyOf(c.podGroup(id), pod)
}

// podGroup returns the PodGroup of the gang, or nil.
func (c *coordinator) podGroup(id gang.ID) *schedulingv1alpha1.PodGroup {
	obj, exists, err := c.status.store.GetByKey(id.String())
	if err != nil || !exists {
		return nil
	}
	return obj.(*schedulingv1alpha1.PodGroup)
}

// parts returns the sets of nodes on which to try the gang, in order; at least one. What the nodes have free by the rough
// account rules out domains before any of their nodes is looked at.
func (c *coordinator) parts(id gang.ID, levels kubeview.GangTopology, turn gang.Turn, nodes []fwk.NodeInfo, evicting bool) [][]fwk.NodeInfo {
	keys := levels.Levels()
	if len(keys) == 0 {
		return [][]fwk.NodeInfo{nodes}
	}
	slots := map[string]int{}
	counted := map[string]bool{}
	for _, m := range turn.Members {
		pod := c.pod(m.Ref())
		if counted[m.Class] || pod == nil {
			continue
		}
		counted[m.Class] = true
		for node, n := range c.room.Slots(pod, evicting) {
			slots[node] += n
		}
	}
	pinned := c.pinned(id, levels.Required, nodes)
	all := make([]topology.Node, len(nodes))
	for i, n := range nodes {
		all[i] = topology.Node{Within: make([]string, len(keys)), Slots: slots[n.Node().Name]}
		for k, key := range keys {
			all[i].Within[k] = n.Node().Labels[key]
		}
		if pinned != "" && all[i].Within[0] != pinned {
			all[i] = topology.Node{Within: make([]string, len(keys))}
		}
	}
	widest := 0
	if levels.Required == "" {
		widest = -1
	}
	candidates := topology.Candidates(all, len(keys)-1, widest, turn.Need, len(turn.Members))
	if len(candidates) == 0 {
		// Nothing is large enough; the largest tells best what is missing.
		candidates = topology.Candidates(all, widest, widest, 0, len(nodes)*len(turn.Members)+1)
		candidates = candidates[:min(len(candidates), 1)]
	}
	parts := make([][]fwk.NodeInfo, 0, len(candidates))
	for _, d := range candidates {
		part := make([]fwk.NodeInfo, len(d.Nodes))
		for i, n := range d.Nodes {
			part[i] = nodes[n]
		}
		parts = append(parts, part)
	}
	if len(parts) == 0 {
		parts = append(parts, nil)
	}
	return parts
}

// pinned returns the domain in which most of the members that are placed already lie; empty if there are none.
func (c *coordinator) pinned(id gang.ID, key string, nodes []fwk.NodeInfo) string {
	if key == "" {
		return ""
	}
	held := c.ledger.Nodes(id)
	if len(held) == 0 {
		return ""
	}
	count := map[string]int{}
	best := ""
	for _, n := range nodes {
		domain := n.Node().Labels[key]
		if domain == "" || held[n.Node().Name] == 0 {
			continue
		}
		count[domain] += held[n.Node().Name]
		if best == "" || count[domain] > count[best] {
			best = domain
		}
	}
	return best
}

// join lets a member whose gang has its minimum go anywhere, or into the domain of the others if they have to share it.
func (c *coordinator) join(state fwk.CycleState, pod *v1.Pod, nodes []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	id, _, _ := kubeview.GangOf(pod)
	levels, err := c.topology(id, pod)
	if err != nil {
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, err.Error())
	}
	pinned := c.pinned(id, levels.Required, nodes)
	switch {
	case pinned != "":
	case c.reserved.Load() != nil:
		return nil, nil
	default:
		return nil, fwk.NewStatus(fwk.Skip)
	}
	names := sets.New[string]()
	for _, n := range nodes {
		if n.Node().Labels[levels.Required] == pinned {
			names.Insert(n.Node().Name)
		}
	}
	return confine(state, names)
}
