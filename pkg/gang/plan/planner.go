package plan

import (
	"context"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/plan/account"
	"berth.dev/berth/pkg/gang/plan/sets"
	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/pkg/process"
	"berth.dev/berth/pkg/topology"
)

// Plan is a plan for a gang, or for as much of it as fits.
type Plan struct {
	Result
	*Run
	// Within is the narrowest level that all members have to share, empty without one.
	Within string
	// Ordered is set if members have to reserve in the order of the plan.
	Ordered bool
	// keys are the labels whose values the members share that found no node; lacks is one of these members if none was
	// tried.
	keys     []string
	lacks    gang.Member
	feasible bool
	// Examined is how many nodes the filters have looked at.
	Examined int
}

// Result is what came of planning a group.
type Result struct {
	// Assignments holds what the members that found a node were given, in the order in which they were placed.
	Assignments []gang.Assignment
	// Short lists the classes with members that found no node.
	Short []Shortage
	// Segments says what parts of the group share, if there are such parts, Lacking which part finds no place.
	Segments, Lacking string
}

// Shortage is one class of members that do not all fit.
type Shortage struct {
	Class        string
	Wanted, Fits int
}

// Feasible reports whether the group can start with the nodes found.
func (a *Plan) Feasible() bool { return a.feasible }

// Part is a set of nodes on which to try a gang.
type Part struct {
	Nodes []fwk.NodeInfo
	// ranks holds by node the place of its domain in the order in which domains are to be filled; nil if that does not
	// matter.
	ranks []int
	// homes keeps members on nodes of the domain of their group or segment.
	homes homes
}

// Planner makes plans for gangs in the scheduling cycles of their leaders, one at a time.
type Planner struct {
	Sources

	tables map[pathsKey]*pathTable
}

// Sources are what plans are made of.
type Sources struct {
	// Divider knows gangs and nodes, and divides gangs into groups and segments.
	*sets.Divider
	Profiles *process.Profiles
	Storage  account.StorageListers
	// Networks find where nodes are in the networks of profiles.
	Networks *process.Networks
	// GPUs are the names of the profiles: a gang may have members of several.
	GPUs *gpuview.ProfileKeys
}

// Plan places the gang on nodes in a dry run, on GPUs of one model where that is possible, in the order of its ranks.
func (p *Planner) Plan(ctx context.Context, id gang.ID, demand gang.Demand, nodes []fwk.NodeInfo) (*Plan, error) {
	w := &Work{Ctx: ctx, bounded: true}
	levels, err := p.Members.Topology(id, p.Members.Pod(demand.Members[0].Ref))
	if err != nil {
		return nil, err
	}
	best, err := p.arrangeOn(w, id, levels, demand, nodes)
	if err == nil && best.Feasible() {
		best, err = p.onOneModel(w, id, levels, demand, nodes, best)
	}
	if err != nil {
		return nil, err
	}
	p.orderRanks(id, levels, demand, best)
	best.Examined = w.examined
	return best, nil
}

// arrangeOn places the gang on nodes in a dry run, within one domain of each level that it requires and spread over as
// few domains as possible of those that it prefers, or else of those of the network.
func (p *Planner) arrangeOn(w *Work, id gang.ID, levels read.Topology, demand gang.Demand,
	nodes []fwk.NodeInfo) (*Plan, error) {
	if levels.Segment.Size > 0 || demand.Need.Tree != nil {
		return p.arrangeSets(w, id, levels, demand, nodes)
	}
	var best *Plan
	for _, part := range p.parts(id, levels, demand, nodes) {
		a, err := p.tryPlaces(w, id, demand, part)
		if err != nil {
			return nil, err
		}
		if best = better(best, a); a.Feasible() || w.spent() {
			break
		}
	}
	best.finish(levels, demand)
	return best, nil
}

// better returns the plan that starts the gang, or places more of it. The first may be nil.
func better(best, a *Plan) *Plan {
	if best == nil || a.Feasible() || len(a.Assignments) > len(best.Assignments) {
		return a
	}
	return best
}

// finish says in the plan what it has to keep to.
func (a *Plan) finish(levels read.Topology, demand gang.Demand) {
	if len(levels.Required) > 0 {
		a.Within = levels.Required[len(levels.Required)-1]
	}
	if a.keys == nil {
		a.keys = levels.Required
	}
	a.Ordered = slices.ContainsFunc(demand.Members, func(m gang.Member) bool {
		r := a.Classes[m.Class]
		return r != nil && r.filters.OrderMatters(r.Pod)
	})
}

// fewPlaces bounds how often a gang is tried whose first member decides where the others have to go.
const fewPlaces = 16

// tryPlaces places the gang on one set of nodes. Where the first member goes that uses a claim that members share, or
// that others have an affinity to, its siblings have to follow: if they do not fit there, they are tried elsewhere.
func (p *Planner) tryPlaces(w *Work, id gang.ID, demand gang.Demand, on Part) (*Plan, error) {
	var best *Plan
	refused := map[gang.Refusal]bool{}
	for range fewPlaces {
		a, err := p.Place(w, id, demand, on, refused, nil)
		if err != nil {
			return nil, err
		}
		best = better(best, a)
		if a.Feasible() || len(a.Assignments) == 0 || !a.follows() || w.spent() {
			break
		}
		for _, placed := range a.Assignments {
			// Without a class the refusal applies to all.
			refused[gang.Refusal{Node: placed.Node}] = true
		}
	}
	return best, nil
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

// Place places the gang on one set of nodes, except on refused ones, as if the pods in gone were gone.
func (p *Planner) Place(w *Work, id gang.ID, demand gang.Demand, on Part, refused map[gang.Refusal]bool,
	gone []*v1.Pod) (*Plan, error) {
	o := orders{roles: len(demand.Need.Roles) > 0}
	for _, d := range p.byClass(demand.Members) {
		o.classes = append(o.classes, d.members)
	}
	return o.best(func(order order) (*Plan, bool, error) {
		d, err := p.newRun(w, id, demand.Members, on)
		if err != nil {
			return nil, false, err
		}
		defer d.close()
		maps.Copy(d.refusals.nodes, refused)
		if err := d.remove(gone); err != nil {
			return nil, false, err
		}
		result, enough, err := order.place(demand.Need, d)
		return &Plan{Result: result, Run: d, feasible: enough}, enough || w.spent(), err
	})
}

// parts returns the sets of nodes on which to try the gang, in order; at least one. What the nodes have free by the
// rough account rules out domains before any of their nodes is looked at.
func (p *Planner) parts(id gang.ID, levels read.Topology, demand gang.Demand, nodes []fwk.NodeInfo) []Part {
	paths := p.paths(levels, demand, nodes)
	if paths == nil {
		return []Part{{Nodes: nodes}}
	}
	tree, names := make([]topology.Node, len(nodes)), make([]string, len(nodes))
	held := p.Ledger.Nodes(id)
	beside := p.besideRanks(demand.Members, p.Ledger.Where(id))
	for i, n := range nodes {
		names[i] = n.Node().Name
		tree[i] = topology.Node{Path: paths[i], Held: held[names[i]], Beside: beside[names[i]]}
	}
	want, of := topology.Demand{Need: demand.Need.Total}, p.byClass(demand.Members)
	for len(of) > manyClasses {
		// The members of further classes are not counted, and Need is smaller by them.
		want.Need = max(want.Need-len(of[manyClasses].members), 0)
		of = slices.Delete(of, manyClasses, manyClasses+1)
	}
	slots := make([]int, len(nodes)*len(of))
	for i := range tree {
		tree[i].Slots = slots[i*len(of) : (i+1)*len(of)]
	}
	for class, d := range of {
		want.Want = append(want.Want, len(d.members))
		for i, n := range p.slotsOn(d.pod, names) {
			tree[i].Slots[class] = n
		}
	}
	var parts []Part
	for _, a := range topology.Arrange(tree, len(levels.Required), want) {
		var p Part
		for rank, set := range a {
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
