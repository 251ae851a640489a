package preempt

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/capacity"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/plan"
)

const (
	// maxAsked bounds the shapes of members for which a cycle filters all nodes.
	maxAsked = 4
	// maxAskedAlone bounds the nodes that a cycle filters for one class each.
	maxAskedAlone = 16
)

// findings are what filters have found about a class on a node: true if they refuse it, false if they accept it. A
// refusal without a node is for every node that has the capacity by the account and is not known to accept.
type findings = map[gang.Refusal]bool

// checking is one check of a proposal with the filters of the profile.
type checking struct {
	profile *Profile
	ctx     context.Context
	request *request
	demand  gang.Demand
	found   *proposal
	said    findings
	// alone counts the calls of refusedAlone.
	alone int
}

// check places the gang on the nodes of the proposal with the filters of the profile, as if the victims and the pods
// that terminate were gone. If that fails, it returns what the filters have found, nil if the proposal is outdated.
func (p *Profile) check(ctx context.Context, r *request, demand gang.Demand, found *proposal) (*plan.Plan, findings,
	error) {
	c := &checking{profile: p, ctx: ctx, request: r, demand: demand, found: found, said: findings{}}
	nodes, stale := c.nodes()
	on, classOf := plan.Part{Nodes: nodes}, map[gang.UID]string{}
	var members []gang.Member
	if r.division == nil {
		// The proposal is for the minimum, so that only these members are checked.
		members = c.proposed()
		for _, m := range members {
			classOf[m.UID] = m.Class
		}
	} else {
		var err error
		if on, members, err = c.bySet(classOf); err != nil || members == nil {
			return &plan.Plan{}, nil, err
		}
	}
	a, err := c.place(members, demand.Need, on)
	if err != nil || a.Feasible() || stale {
		// The pods of a node have changed, so that findings are of no use for the next proposal.
		return a, nil, err
	}
	return a, c.said, c.learn(a, classOf)
}

// nodes returns the nodes of the proposal. stale is set if the numbers of their pods have changed since.
func (c *checking) nodes() (nodes []fwk.NodeInfo, stale bool) {
	for _, name := range slices.Sorted(maps.Keys(c.found.pods)) {
		if n, err := c.profile.framework.SnapshotSharedLister().NodeInfos().Get(name); err == nil {
			nodes = append(nodes, n)
			stale = stale || len(n.GetPods()) != c.found.pods[name]
		}
	}
	return nodes, stale
}

// place plans members on nodes, as if the victims and the pods that terminate were gone.
func (c *checking) place(members []gang.Member, need gang.Minimum, on plan.Part) (*plan.Plan, error) {
	demand := c.demand
	demand.Members, demand.Need = members, need
	return c.profile.planner.Place(&plan.Work{Ctx: c.ctx}, c.request.id, demand, on, nil, c.found.going())
}

// proposed returns the members that the proposal places: of each class the oldest ones.
func (c *checking) proposed() []gang.Member {
	type classRole struct{ class, role string }
	wanted := map[classRole]int{}
	for _, placed := range c.found.Placed {
		class := &c.request.classes[placed.Class]
		wanted[classRole{class.class, class.role}] += placed.Members
	}
	out := make([]gang.Member, 0, c.request.need.Total)
	for _, m := range c.demand.Members {
		if of := (classRole{m.Class, m.Role}); wanted[of] > 0 {
			wanted[of]--
			out = append(out, m)
		}
	}
	return out
}

// learn derives findings from the places of the proposal that members did not get. classOf has the classes of the
// members.
func (c *checking) learn(a *plan.Plan, classOf map[gang.UID]string) error {
	placed, total, short := map[gang.Refusal]int{}, map[string]int{}, map[string]int{}
	for _, class := range classOf {
		short[class]++
	}
	for _, as := range a.Assignments {
		class := classOf[as.UID]
		placed[gang.Refusal{Class: class, Node: as.Node}]++
		total[class]++
		short[class]--
	}
	alike, nowhere := c.alike(), map[capacity.ShapeKey]bool{}
	for _, want := range c.found.Placed {
		class := c.request.classes[want.Class]
		shape, n := c.profile.evictor.Capacity.ShapeOf(class.pod), gang.Refusal{Class: class.class, Node: want.Node}
		if placed[n] >= want.Members {
			continue
		}
		if short[n.Class] > 0 && total[n.Class] == 0 && len(c.found.Victims) == 0 {
			// No eviction is needed, and yet there is no plan: the account does not know what refuses the class.
			nowhere[shape] = true
			continue
		}
		refused, err := c.refusedAlone(n)
		switch {
		case err != nil:
			return err
		case refused:
			for _, class := range alike[shape] {
				c.said[gang.Refusal{Class: class, Node: n.Node}] = true
			}
		case short[n.Class] > 0:
			c.said[n] = true
		}
	}
	for shape := range nowhere {
		for _, class := range alike[shape] {
			c.said[gang.Refusal{Class: class}] = true
		}
		if len(nowhere) <= maxAsked {
			if err := c.ask(alike[shape]); err != nil {
				return err
			}
		}
	}
	return nil
}

// alike returns the classes by the shape that the account knows. A finding about one class counts for all of its shape:
// otherwise each member of a StatefulSet, with its own volume, would be a class to check.
func (c *checking) alike() map[capacity.ShapeKey][]string {
	classes := map[capacity.ShapeKey][]string{}
	for _, class := range c.request.classes {
		shape := c.profile.evictor.Capacity.ShapeOf(class.pod)
		classes[shape] = append(classes[shape], class.class)
	}
	return classes
}

// refusedAlone reports whether a node refuses a single member of a class. After maxAskedAlone calls it returns false.
func (c *checking) refusedAlone(n gang.Refusal) (bool, error) {
	info, err := c.profile.framework.SnapshotSharedLister().NodeInfos().Get(n.Node)
	if c.alone++; err != nil || c.alone > maxAskedAlone {
		return false, nil //nolint:nilerr // the node is gone
	}
	first := slices.IndexFunc(c.demand.Members, func(m gang.Member) bool { return m.Class == n.Class })
	a, err := c.place(c.demand.Members[first:first+1], gang.Minimum{Total: 1},
		plan.Part{Nodes: []fwk.NodeInfo{info}})
	return err == nil && !a.Feasible(), err
}

// ask finds nodes that accept members of classes of one shape without an eviction.
func (c *checking) ask(classes []string) error {
	nodes, err := c.profile.framework.SnapshotSharedLister().NodeInfos().List()
	if err != nil {
		return fmt.Errorf("listing nodes: %w", err)
	}
	of, demand := sets.New(classes...), c.demand
	demand.Members = slices.DeleteFunc(slices.Clone(demand.Members), func(m gang.Member) bool { return !of.Has(m.Class) })
	demand.Need = gang.Minimum{Total: len(demand.Members)}
	a, err := c.profile.planner.Place(&plan.Work{Ctx: c.ctx}, c.request.id, demand, plan.Part{Nodes: nodes}, nil, nil)
	if err != nil {
		return err
	}
	for _, as := range a.Assignments {
		for _, class := range classes {
			c.said[gang.Refusal{Class: class, Node: as.Node}] = false
		}
	}
	return nil
}
