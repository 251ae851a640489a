package dryrun

import (
	"context"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/capacity"
	"berth.dev/berth/pkg/dryrun/account"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gangplan"
	"berth.dev/berth/pkg/gangview"
	"berth.dev/berth/pkg/gpuview"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/process"
	"berth.dev/berth/pkg/topology"
)

// Plan is a plan for a gang, or for as much of it as fits.
type Plan struct {
	gangplan.Result
	*Run
	// Within names the level that all members have to share, or is empty.
	Within string
	// Ordered is set if members have to reserve in the order of the plan.
	Ordered bool
	// keys are the labels whose values the members share that find no place, lacks is one of them if they were not tried.
	keys  []string
	lacks gang.Member
}

// Part is a set of nodes on which to try a gang.
type Part struct {
	Nodes []fwk.NodeInfo
	// ranks holds by node the place of its domain in the order in which domains are to be filled; nil if that does not
	// matter.
	ranks []int
	// homes keeps members on nodes of the domain of their group or segment; nil if there are none.
	homes *homes
}

// Planner makes plans for gangs in the scheduling cycles of their leaders, one at a time.
type Planner struct {
	Sources

	tables map[pathsKey]*pathTable
}

// Sources are what plans are made of.
type Sources struct {
	Ledger   *gang.Ledger
	GangOf   func(*v1.Pod) gang.ID
	Pod      func(gang.Ref) *v1.Pod
	PodGroup func(gang.ID) *schedulingv1alpha1.PodGroup
	Profiles *process.Profiles
	Capacity *capacity.Index
	Storage  account.StorageListers
	// Network finds where nodes are in the network of a profile; nil if that does not matter to it.
	Network func(profile string) *podview.NetworkLevels
	// GPUs are the names of the profiles: a gang may have members of several.
	GPUs *gpuview.ProfileKeys
	// Said returns what another plugin said last when it turned a member of the gang away.
	Said func(gang.ID) string
}

// Plan places the gang on nodes in a dry run, on GPUs of one model where that is possible, in the order of its ranks.
func (p *Planner) Plan(ctx context.Context, id gang.ID, turn gang.Turn, nodes []fwk.NodeInfo) (*Plan, error) {
	w := &Work{Ctx: ctx, bounded: true}
	levels, err := p.Topology(id, p.Pod(turn.Members[0].Ref))
	if err != nil {
		return nil, err
	}
	best, err := p.arrangeOn(w, id, levels, turn, nodes)
	if err == nil && best.Feasible() {
		best, err = p.onOneModel(w, id, levels, turn, nodes, best)
	}
	if err != nil {
		return nil, err
	}
	p.orderRanks(id, levels, turn, best)
	return best, nil
}

// arrangeOn places the gang on nodes in a dry run, within one domain of each level that it requires and spread over as
// few domains as possible of those that it prefers, or else of those of the network.
func (p *Planner) arrangeOn(w *Work, id gang.ID, levels gangview.Topology, turn gang.Turn,
	nodes []fwk.NodeInfo) (*Plan, error) {
	if levels.Segment.Size > 0 || turn.Need.Tree != nil {
		return p.arrangeSets(w, id, levels, turn, nodes)
	}
	var tried attempts
	for _, part := range p.parts(id, levels, turn, nodes) {
		a, err := p.tryPlaces(w, id, turn, part)
		if err != nil {
			return nil, err
		}
		tried.add(a)
		if a.Feasible() || w.spent() {
			break
		}
	}
	tried.best.finish(levels, turn)
	return tried.best, nil
}

// attempts are plans of one gang at different places: the best of them so far, which has examined what all did.
type attempts struct {
	best     *Plan
	examined int
}

func (t *attempts) add(a *Plan) {
	t.examined += a.Examined
	if t.best == nil || a.Feasible() || len(a.Assignments) > len(t.best.Assignments) {
		t.best = a
	}
	t.best.Examined = t.examined
}

// finish says in the plan what it has to keep to.
func (a *Plan) finish(levels gangview.Topology, turn gang.Turn) {
	if len(levels.Required) > 0 {
		a.Within = levels.Required[len(levels.Required)-1]
	}
	if a.keys == nil {
		a.keys = levels.Required
	}
	a.Ordered = slices.ContainsFunc(turn.Members, func(m gang.Member) bool {
		r := a.Classes[m.Class]
		return r != nil && r.filters.OrderMatters(r.Pod)
	})
}

// fewPlaces is in how many places a gang is tried whose first member decides where the others have to go.
const fewPlaces = 16

// tryPlaces places the gang on one set of nodes. Where the first member goes that uses a claim that members share, or
// that others have an affinity to, its siblings have to follow: if they do not fit there, they are tried elsewhere.
func (p *Planner) tryPlaces(w *Work, id gang.ID, turn gang.Turn, on Part) (*Plan, error) {
	var tried attempts
	refused := map[gang.Refusal]bool{}
	for range fewPlaces {
		a, err := p.Place(w, id, turn, on, refused, nil)
		if err != nil {
			return nil, err
		}
		tried.add(a)
		if a.Feasible() || len(a.Assignments) == 0 || !a.follows() || w.spent() {
			break
		}
		for _, placed := range a.Assignments {
			// Without a class it is refused to all.
			refused[gang.Refusal{Node: placed.Node}] = true
		}
	}
	return tried.best, nil
}

// follows reports whether where members go depends on where the first of them went.
func (a *Plan) follows() bool {
	if slices.ContainsFunc(a.Assignments, func(placed gang.Assignment) bool { return placed.First }) {
		return true
	}
	for _, r := range a.Classes {
		if f := r.Pod.Spec.Affinity; f != nil && f.PodAffinity != nil &&
			len(f.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0 {
			return true
		}
	}
	return false
}

// Place places the gang on one set of nodes, but for those refused to a class.
func (p *Planner) Place(w *Work, id gang.ID, turn gang.Turn, on Part, refused map[gang.Refusal]bool,
	prepare func(*Run) error) (*Plan, error) {
	var last *Run
	finish := func() {
		if last != nil {
			last.close()
		}
	}
	defer finish()
	open := func() (*Run, error) {
		finish()
		d, err := p.newRun(w, id, turn.Members, on)
		if err != nil {
			return nil, err
		}
		last = d
		maps.Copy(d.refusals.nodes, refused)
		if prepare != nil {
			return d, prepare(d)
		}
		return d, nil
	}
	first, err := open()
	if err != nil {
		return nil, err
	}
	result, d, err := gangplan.Build(turn.Members, turn.Need, first.hardness, func() (*Run, error) {
		if d := first; d != nil {
			first = nil
			return d, nil
		}
		return open()
	})
	if err != nil {
		return nil, err
	}
	return &Plan{Result: result, Run: d}, nil
}

// Topology returns the levels that the gang asks for.
func (s *Sources) Topology(id gang.ID, pod *v1.Pod) (gangview.Topology, error) {
	if pod == nil {
		pod = &v1.Pod{}
	}
	return gangview.TopologyOf(s.PodGroup(id), pod)
}

// parts returns the sets of nodes on which to try the gang, in order; at least one. What the nodes have free by the
// rough account rules out domains before any of their nodes is looked at.
func (p *Planner) parts(id gang.ID, levels gangview.Topology, turn gang.Turn, nodes []fwk.NodeInfo) []Part {
	paths := p.paths(levels, turn, nodes)
	if paths == nil {
		return []Part{{Nodes: nodes}}
	}
	tree, names := make([]topology.Node, len(nodes)), make([]string, len(nodes))
	held := p.Ledger.Nodes(id)
	beside := besideRanks(p.Pod, turn, p.Ledger.Where(id))
	for i, n := range nodes {
		names[i] = n.Node().Name
		tree[i] = topology.Node{Path: paths[i], Held: held[names[i]], Beside: beside[names[i]]}
	}
	demand := topology.Demand{Need: turn.Need.Total}
	classes := map[string]int{}
	var pods []*v1.Pod
	left := 0
	for _, m := range turn.Members {
		if at, known := classes[m.Class]; known {
			demand.Want[at]++
			continue
		}
		pod := p.Pod(m.Ref)
		if pod == nil {
			continue
		}
		if len(pods) == ManyClasses {
			// Too many are not asked about: those that are have to fit without the others.
			left++
			continue
		}
		classes[m.Class] = len(demand.Want)
		demand.Want, pods = append(demand.Want, 1), append(pods, pod)
	}
	countSlots(p.Capacity, tree, names, pods)
	demand.Need = max(demand.Need-left, 0)
	var parts []Part
	for _, a := range topology.Arrange(tree, len(levels.Required), demand) {
		var p Part
		for rank, set := range a.Sets {
			for _, i := range set {
				p.Nodes = append(p.Nodes, nodes[i])
				p.ranks = append(p.ranks, rank)
			}
		}
		parts = append(parts, p)
	}
	if len(parts) == 0 {
		parts = append(parts, Part{})
	}
	return parts
}

// countSlots enters how many members of each class fit on each node. Pods holds one of each class.
func countSlots(account *capacity.Index, tree []topology.Node, names []string, pods []*v1.Pod) {
	slots := make([]int, len(tree)*len(pods))
	for i := range tree {
		tree[i].Slots, slots = slots[:len(pods):len(pods)], slots[len(pods):]
	}
	for at, pod := range pods {
		key := account.Acquire(pod)
		for i, now := range account.SlotsOn(key, names) {
			if now > 0 {
				tree[i].Slots[at] = now
			}
		}
		account.Release(key)
	}
}
