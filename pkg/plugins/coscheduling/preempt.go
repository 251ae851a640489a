package coscheduling

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/plural"
)

// maxAsked is for how many shapes of members all nodes are asked in one cycle.
const maxAsked = 4

// preempt evicts exactly the pods without which the whole gang can start, all in one wave, or none at all. It returns
// what to say about it, or nothing if eviction does not help.
func (p *Plugin) preempt(ctx context.Context, id gang.ID, turn gang.Turn) (string, error) {
	c := p.shared
	r := &request{name: "gang " + id.String(), id: id, of: id, need: turn.Need, priority: turn.Members[0].Priority, held: c.ledger.Nodes(id)}
	index := map[gang.Shortage]int{}
	for _, m := range turn.Members {
		r.priority = min(r.priority, m.Priority)
		pod := c.pods.pod(m.Ref())
		if pod == nil || neverPreempts(pod) {
			return "", nil
		}
		key := gang.Shortage{Class: m.Class + "/" + m.Role}
		if i, known := index[key]; known {
			r.classes[i].count++
			continue
		}
		index[key] = len(r.classes)
		r.classes = append(r.classes, requestClass{class: m.Class, role: m.Role, pod: pod, count: 1})
	}
	if !c.headroom.anyLeaving() && !c.headroom.anyBelow(r.priority) && len(c.promises.to(id)) == 0 {
		return "", nil
	}
	levels, err := c.topology(id, r.classes[0].pod)
	if err != nil {
		return "", err
	}
	nodes, err := p.framework.SnapshotSharedLister().NodeInfos().List()
	if err != nil {
		return "", fmt.Errorf("listing nodes: %w", err)
	}
	r.required, r.wanted, r.own = levels.Required, minResources(c.groups.get(id)), map[v1.ResourceName]int64{}
	for name := range r.wanted {
		if claimed(p.framework, name) {
			delete(r.wanted, name)
		}
		for _, info := range c.own(id, nodes) {
			r.own[name] += requestedBy(info, name)
		}
	}
	found, why := c.evictor.decide(ctx, r, time.Now())
	if found == nil {
		return why, nil
	}
	a, said, err := p.check(ctx, r, turn, found)
	switch {
	case err != nil:
		return "", err
	case !a.Feasible():
		return c.evictor.useless(ctx, r, said), nil
	case found.idle():
		c.evictor.unneeded(r)
		return "", nil
	}
	kept := make([]promise, 0, len(a.Assignments))
	for _, placed := range a.Assignments {
		info, err := infoOf(a.pods[placed.UID])
		if err != nil {
			return "", err
		}
		kept = append(kept, promise{to: id, kind: afterEviction, priority: r.priority, node: placed.Node, member: placed.UID, info: info})
	}
	c.promises.keep(id, afterEviction, kept)
	if len(found.victims) == 0 {
		c.evictor.await(r, time.Now())
		return found.waitingFor(), nil
	}
	c.evictor.evict(ctx, p.framework, r, found)
	return fmt.Sprintf("evicting %d %s of lower priority", len(found.victims), plural.Choose(len(found.victims), "pod", "pods")), nil
}

// findings say of classes and nodes what filters said: true that they refuse, false that they accept. A refusal without a node is of
// every node that has room by the account and is not known to accept.
type findings = map[gang.Refusal]bool

// check places the gang on the nodes of the proposal with the profile's own filters, as if the victims and the pods that
// terminate anyway were gone, and returns what it has found out about the nodes if that fails: nil if the proposal is out of date.
func (p *Plugin) check(ctx context.Context, r *request, turn gang.Turn, found *proposal) (*arrangement, findings, error) {
	gone := map[string]bool{}
	for _, pod := range found.victims {
		gone[string(pod.UID)] = true
	}
	on := part{}
	stale := false
	for _, name := range slices.Sorted(maps.Keys(found.pods)) {
		if n, err := p.framework.SnapshotSharedLister().NodeInfos().Get(name); err == nil {
			on.nodes = append(on.nodes, n)
			stale = stale || len(n.GetPods()) != found.pods[name]
		}
	}
	// What was proposed is for the minimum; the check is of no more, and of nobody else.
	turn.Members = proposed(turn.Members, r, found)
	a, err := p.shared.try(&work{ctx: ctx}, r.id, turn, on, nil, func(d *dryRun) error {
		for _, n := range on.nodes {
			for _, info := range n.GetPods() {
				pod := info.GetPod()
				if pod.DeletionTimestamp == nil && !gone[string(pod.UID)] {
					continue
				}
				if err := d.remove(placedPod{info: info, node: n.Node().Name}); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil || a.Feasible() || stale {
		// What filters say of nodes that have other pods by now says nothing of the next proposal.
		return a, nil, err
	}
	placed, total, short := map[gang.Refusal]int{}, map[string]int{}, map[string]int{}
	classOf := make(map[gang.UID]string, len(turn.Members))
	for _, m := range turn.Members {
		classOf[m.UID] = m.Class
		short[m.Class]++
	}
	for _, as := range a.Assignments {
		class := classOf[as.UID]
		placed[gang.Refusal{Class: class, Node: as.Node}]++
		total[class]++
		short[class]--
	}
	said := findings{}
	// Classes that the account cannot tell apart are asked about together: each member of a StatefulSet has a volume of its own.
	nowhere := map[shapeKey][]string{}
	for _, want := range found.Placed {
		class := r.classes[want.Class]
		n := gang.Refusal{Class: class.class, Node: want.Node}
		switch everywhere := (gang.Refusal{Class: n.Class}); {
		case short[n.Class] == 0 || placed[n] >= want.Members: // it went elsewhere, if not there
		case found.Outcome != gang.RoomAlready || total[n.Class] > 0:
			said[n] = true
		case !said[everywhere]:
			// Nobody would have to go, and yet there is no plan: the account does not know what refuses the class.
			said[everywhere] = true
			shape := keyOf(asksOf(class.pod), describeRule(class.pod))
			nowhere[shape] = append(nowhere[shape], n.Class)
		}
	}
	if len(nowhere) > maxAsked {
		return a, said, nil
	}
	for _, classes := range nowhere {
		if err := p.ask(ctx, r.id, turn, classes, said); err != nil {
			return nil, nil, err
		}
	}
	return a, said, nil
}

// ask finds nodes that accept members of classes of one shape as they are.
func (p *Plugin) ask(ctx context.Context, id gang.ID, turn gang.Turn, classes []string, said findings) error {
	nodes, err := p.framework.SnapshotSharedLister().NodeInfos().List()
	if err != nil {
		return fmt.Errorf("listing nodes: %w", err)
	}
	of := sets.New(classes...)
	turn.Members = slices.DeleteFunc(slices.Clone(turn.Members), func(m gang.Member) bool { return !of.Has(m.Class) })
	turn.Need = gang.Minimum{Total: len(turn.Members)}
	a, err := p.shared.try(&work{ctx: ctx}, id, turn, part{nodes: nodes}, nil, nil)
	if err != nil {
		return err
	}
	for _, as := range a.Assignments {
		for _, class := range classes {
			said[gang.Refusal{Class: class, Node: as.Node}] = false
		}
	}
	return nil
}

// proposed returns the members whose places the proposal names: as many of each class, the oldest first.
func proposed(members []gang.Member, r *request, found *proposal) []gang.Member {
	type kind struct{ class, role string }
	wanted := map[kind]int{}
	for _, placed := range found.Placed {
		wanted[kind{r.classes[placed.Class].class, r.classes[placed.Class].role}] += placed.Members
	}
	out := make([]gang.Member, 0, r.need.Total)
	for _, m := range members {
		if of := (kind{m.Class, m.Role}); wanted[of] > 0 {
			wanted[of]--
			out = append(out, m)
		}
	}
	return out
}

// preemptAlone evicts pods for a single pod: as the scheduler's own preemption does, but of a gang only what it can spare;
// and if that is not enough, whole gangs.
func (p *Plugin) preemptAlone(ctx context.Context, state fwk.CycleState, pod *v1.Pod, statuses fwk.NodeToStatusReader) (*fwk.PostFilterResult, *fwk.Status) {
	stock := stockPreemption(p.framework)
	if stock == nil {
		return nil, fwk.NewStatus(fwk.Unschedulable)
	}
	result, status := stock.PostFilter(ctx, state, pod, statuses)
	if status.IsSuccess() || status.Code() == fwk.Error {
		return result, status
	}
	if c := p.shared; !neverPreempts(pod) && c.ledger.Beginning(corev1helpers.PodPriority(pod)) {
		// Also if it goes on to look for victims: those that it needs may be bound after that and before the result is read.
		c.carrier.afterStart.add(refOf(pod))
	}
	outcome, node, err := p.preemptGangs(ctx, pod, statuses)
	switch {
	case err != nil:
		return nil, fwk.AsStatus(fmt.Errorf("choosing gangs to evict for pod %s/%s: %w", pod.Namespace, pod.Name, err))
	case node != "":
		return framework.NewPostFilterResultWithNominatedNode(node), fwk.NewStatus(fwk.Success)
	case claimsDevices(p.framework, pod):
		// The plugin of claims gives back what is allocated in vain.
		return result, status
	}
	if outcome == "" {
		outcome = status.Message()
	}
	return result, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, outcome)
}

// preemptGangs evicts pods among which there are whole gangs, and returns the node that this is for.
func (p *Plugin) preemptGangs(ctx context.Context, pod *v1.Pod, statuses fwk.NodeToStatusReader) (outcome, node string, err error) {
	c := p.shared
	priority := corev1helpers.PodPriority(pod)
	if neverPreempts(pod) || !c.headroom.anyBelow(priority) || pod.Status.NominatedNodeName != "" {
		return "", "", nil
	}
	member := gang.Member{UID: gang.UID(pod.UID), Namespace: pod.Namespace, Name: pod.Name, Priority: priority, Ours: true}
	turn := gang.Turn{Kind: gang.Lead, Need: gang.Minimum{Total: 1}, Of: gang.Minimum{Total: 1}, Members: []gang.Member{member}}
	r := &request{name: "pod " + pod.Namespace + "/" + pod.Name, only: pod, of: c.members.id(pod), statuses: statuses,
		priority: priority, need: turn.Need, classes: []requestClass{{pod: pod, count: 1}}}
	found, why := c.evictor.decide(ctx, r, time.Now())
	if found == nil {
		return why, "", nil
	}
	a, said, err := p.check(ctx, r, turn, found)
	switch {
	case err != nil:
		return "", "", err
	case !a.Feasible():
		return c.evictor.useless(ctx, r, said), "", nil
	case found.idle():
		c.evictor.unneeded(r)
		return "", "", nil
	}
	if len(found.victims) == 0 {
		// Single pods are nominated by the scheduler's own preemption while others terminate.
		return found.waitingFor(), "", nil
	}
	c.evictor.evict(ctx, p.framework, r, found)
	return "", a.Assignments[0].Node, nil
}

func neverPreempts(pod *v1.Pod) bool {
	return pod.Spec.PreemptionPolicy != nil && *pod.Spec.PreemptionPolicy == v1.PreemptNever
}

// stockPreemption returns the scheduler's own preemption plugin of the profile, or nil if it has none.
func stockPreemption(profile framework.Framework) *defaultpreemption.DefaultPreemption {
	for _, plugin := range profile.PreEnqueuePlugins() {
		if stock, ok := plugin.(*defaultpreemption.DefaultPreemption); ok {
			return stock
		}
	}
	return nil
}

// guard makes the scheduler's own preemption leave gangs whole: of a gang it takes only members beyond the minimum, and for a
// member of a gang that has not started it takes nobody.
func (p *Plugin) guard() {
	p.othersPermit = len(p.framework.ListPlugins().Permit.Enabled) > 1
	stock := stockPreemption(p.framework)
	if stock == nil {
		return
	}
	eligible := stock.IsEligiblePod
	stock.IsEligiblePod = func(node fwk.NodeInfo, victim preemption.Victim, preemptor *v1.Pod) bool {
		return eligible(node, victim, preemptor) && p.shared.spares(victim, preemptor)
	}
}

// spares reports whether no gang is left with less than its minimum if the victim is evicted.
func (c *coordinator) spares(victim preemption.Victim, preemptor *v1.Pod) bool {
	if c.members.has(preemptor) && !c.ledger.Alone(gang.UID(preemptor.UID)) {
		return false
	}
	for _, info := range victim.Pods() {
		pod := info.GetPod()
		if c.members.has(pod) && !c.ledger.Surplus(gang.UID(pod.UID)) {
			return false
		}
	}
	return true
}
