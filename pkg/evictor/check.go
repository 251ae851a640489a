package evictor

import (
	"context"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/capacity"
	"berth.dev/berth/pkg/dryrun"
	"berth.dev/berth/pkg/eviction"
	"berth.dev/berth/pkg/gang"
)

// findings are the nodes that filters have refused to members of a shape. The next search for the same gang leaves them
// out.
type findings = map[refusal]bool

// refusal is that of a node, or of all nodes that have room for the shape by the account.
type refusal struct {
	shape capacity.ShapeKey
	node  string
}

// checking looks at a proposal with the profile's own filters.
type checking struct {
	profile *Profile
	ctx     context.Context
	request *request
	turn    gang.Turn
	found   *proposal
	gone    sets.Set[string]
	// elsewhere are those of the pods that go which are on other nodes than the members.
	elsewhere []dryrun.PlacedPod
	said      findings
}

// check places the gang on the nodes of the proposal with the profile's own filters, as if the victims and the pods
// that leave anyway were gone, and returns what it has found out about the nodes if that fails: nil if the proposal is
// out of date.
func (p *Profile) check(ctx context.Context, r *request, turn gang.Turn, found *proposal) (*dryrun.Plan, findings,
	error) {
	c := newChecking(ctx, p, r, turn, found)
	if r.division != nil {
		return c.bySet()
	}
	// What was proposed is for the minimum; the check is of no more members, and of no others.
	proposed := c.proposed()
	nodes, stale := c.nodes()
	a, err := c.place(proposed, turn.Need, dryrun.Part{Nodes: nodes})
	if err != nil || a.Feasible() || stale {
		// What filters say of nodes that have other pods by now says nothing of the next proposal.
		return a, nil, err
	}
	classOf := map[gang.UID]int{}
	for _, m := range proposed {
		classOf[m.UID] = slices.IndexFunc(r.classes,
			func(k requestClass) bool { return k.class == m.Class && k.role == m.Role })
	}
	c.learn(a, classOf)
	return a, c.said, nil
}

func newChecking(ctx context.Context, p *Profile, r *request, turn gang.Turn, found *proposal) *checking {
	c := &checking{profile: p, ctx: ctx, request: r, turn: turn, found: found, gone: sets.New[string](), said: findings{}}
	for _, pod := range found.going() {
		c.gone.Insert(string(pod.UID))
	}
	c.elsewhere = c.onOtherNodes()
	return c
}

// nodes returns those of the proposal. Stale is set if they have other pods than it was made for.
func (c *checking) nodes() (nodes []fwk.NodeInfo, stale bool) {
	for _, name := range slices.Sorted(maps.Keys(c.found.pods)) {
		if n, err := c.profile.framework.SnapshotSharedLister().NodeInfos().Get(name); err == nil {
			nodes = append(nodes, n)
			stale = stale || len(n.GetPods()) != c.found.pods[name]
		}
	}
	return nodes, stale
}

// place tries members on nodes from which the victims and what leaves are gone.
func (c *checking) place(members []gang.Member, need gang.Minimum, on dryrun.Part) (*dryrun.Plan, error) {
	turn := c.turn
	turn.Members, turn.Need = members, need
	return c.profile.planner.Place(&dryrun.Work{Ctx: c.ctx}, c.request.id, turn, on, nil,
		func(d *dryrun.Run) error {
			for _, n := range on.Nodes {
				if _, proposed := c.found.pods[n.Node().Name]; !proposed {
					continue
				}
				for _, info := range n.GetPods() {
					if !c.gone.Has(string(info.GetPod().UID)) {
						continue
					}
					if err := d.Remove(dryrun.PlacedPod{Info: info, Node: n.Node().Name}); err != nil {
						return err
					}
				}
			}
			d.Elsewhere = c.elsewhere
			return nil
		})
}

// onOtherNodes finds the pods that go with the rest of their gang, on nodes where no member is placed.
func (c *checking) onOtherNodes() []dryrun.PlacedPod {
	return slices.DeleteFunc(c.placed(c.found.going()), func(p dryrun.PlacedPod) bool {
		_, used := c.found.pods[p.Node]
		return used
	})
}

// placed returns those of the pods that are on nodes yet.
func (c *checking) placed(pods []*v1.Pod) []dryrun.PlacedPod {
	var placed []dryrun.PlacedPod
	nodes := c.profile.framework.SnapshotSharedLister().NodeInfos()
	for _, pod := range pods {
		node, err := nodes.Get(pod.Spec.NodeName)
		if err != nil {
			continue // it is gone, and the pod with it
		}
		for _, info := range node.GetPods() {
			if info.GetPod().UID == pod.UID {
				placed = append(placed, dryrun.PlacedPod{Info: info, Node: pod.Spec.NodeName})
			}
		}
	}
	return placed
}

// proposed returns the members whose places the proposal names: as many of each class, the oldest first.
func (c *checking) proposed() []gang.Member {
	type kind struct{ class, role string }
	wanted := map[kind]int{}
	for _, placed := range c.found.Placed {
		class := &c.request.classes[placed.Class]
		wanted[kind{class.class, class.role}] += placed.Members
	}
	out := make([]gang.Member, 0, c.request.need.Total)
	for _, m := range c.turn.Members {
		if of := (kind{m.Class, m.Role}); wanted[of] > 0 {
			wanted[of]--
			out = append(out, m)
		}
	}
	return out
}

// learn notes where members were not placed as proposed. What filters say of one shape holds of all its classes: each
// member of a StatefulSet has a volume of its own. Where no pod would have to go and yet no member is placed, something
// refuses the shape that the account does not know.
func (c *checking) learn(a *dryrun.Plan, classOf map[gang.UID]int) {
	placed, total, short := map[refusal]int{}, map[capacity.ShapeKey]int{}, map[capacity.ShapeKey]int{}
	for _, as := range a.Assignments {
		shape := c.shape(classOf[as.UID])
		placed[refusal{shape, as.Node}]++
		total[shape]++
		short[shape]--
	}
	wanted := map[refusal]int{}
	for _, want := range c.found.Placed {
		shape := c.shape(want.Class)
		wanted[refusal{shape, want.Node}] += want.Members
		short[shape] += want.Members
	}
	for at, members := range wanted {
		switch {
		case short[at.shape] <= 0 || placed[at] >= members: // it went elsewhere, as it may
		case c.found.Outcome == eviction.RoomAlready && total[at.shape] == 0:
			c.said[refusal{shape: at.shape}] = true
		default:
			c.said[at] = true
		}
	}
}

// shape is that of the class of the request.
func (c *checking) shape(class int) capacity.ShapeKey {
	return c.profile.evictor.Capacity.ShapeOf(c.request.classes[class].pod)
}
