package preempt

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/hold"
	"berth.dev/berth/pkg/gang/members"
	"berth.dev/berth/pkg/gang/plan"
	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/podview"
)

// Profile is the evictor in the cycles of one profile.
type Profile struct {
	framework framework.Framework
	evictor   *Evictor
	planner   *plan.Planner
	losses    byLoss
	lowest    lowestPriorities
}

// NewProfile returns the evictor for a profile.
func NewProfile(e *Evictor, profile framework.Framework, planner *plan.Planner) *Profile {
	return &Profile{framework: profile, evictor: e, planner: planner, losses: byLoss{Loss: e.Sources.Loss}}
}

// ForGang evicts pods of lower priority, all at once, if the gang can start without them, and else none. It returns a
// message for the gang, empty if there is nothing to evict.
func (p *Profile) ForGang(ctx context.Context, id gang.ID, demand gang.Demand) (string, error) {
	e := p.evictor
	r := &request{name: "gang " + id.String(), id: id, priority: demand.Members[0].Priority,
		need: demand.Need, occupied: e.Ledger.Nodes(id)}
	never, complete := r.addMembers(e.Members, demand.Members)
	anyBelow := e.Capacity.Cluster.AnyBelow(r.priority)
	switch {
	case !complete || never != "" && !anyBelow:
		return "", nil
	case never != "":
		return "the gang evicts no pods: the preemption policy of pod " + never + " is Never", nil
	}
	e.lookForFlight(r)
	if !e.Capacity.Cluster.AnyLeaving() && !anyBelow && len(e.Holds.To(id)) == 0 {
		return "", nil
	}
	levels, err := p.planner.Members.Topology(id, r.classes[0].pod)
	if err != nil {
		return "", err
	}
	nodes, err := p.framework.SnapshotSharedLister().NodeInfos().List()
	if err != nil {
		return "", fmt.Errorf("listing nodes: %w", err)
	}
	if r.required = levels.Required; p.planner.Any(id, levels) {
		if err := r.divide(p.planner, levels, demand.Members, objectsOf(nodes)); err != nil {
			return "the gang evicts no pods: " + err.Error(), nil //nolint:nilerr // users are to read it
		}
	}
	found, plan, why, err := p.agree(ctx, r, demand)
	if found == nil || err != nil {
		return why, err
	}
	kept, err := holdsOf(r, plan)
	if err != nil {
		return "", err
	}
	e.Holds.Keep(id, hold.AfterEviction, kept)
	if len(found.victims) == 0 {
		e.await(r, found)
		return waitingFor(len(found.leaving)), nil
	}
	e.evict(ctx, p.framework, r, found, "")
	return found.evicting(), nil
}

// holdsOf returns the holds for the assignments of the plan.
func holdsOf(r *request, plan *plan.Plan) ([]hold.Hold, error) {
	kept := make([]hold.Hold, 0, len(plan.Assignments))
	for _, placed := range plan.Assignments {
		info, err := hold.InfoOf(plan.Pods[placed.UID])
		if err != nil {
			return nil, err
		}
		kept = append(kept, hold.Hold{To: r.id, Kind: hold.AfterEviction, Priority: r.priority,
			Node: placed.Node, Member: placed.UID, Info: info})
	}
	return kept, nil
}

// addMembers adds what the members ask for. never is the name of a member with the preemption policy Never, if there is
// one; complete is false if a member is gone.
func (r *request) addMembers(known *members.Directory, all []gang.Member) (never string, complete bool) {
	index := map[[2]string]int{}
	for _, m := range all {
		r.priority = min(r.priority, m.Priority)
		pod := known.Pod(m.Ref)
		if pod == nil {
			return "", false
		}
		if never == "" && podview.NeverPreempts(pod) {
			never = pod.Name
		}
		key := [2]string{m.Class, m.Role}
		if i, known := index[key]; known {
			r.classes[i].count++
			continue
		}
		index[key] = len(r.classes)
		r.classes = append(r.classes, requestClass{class: m.Class, role: m.Role, pod: pod, count: 1})
	}
	return never, true
}

// agree returns a proposal that the filters of the profile and the ledger accept, with the plan for the members. While
// there is none, it returns a message instead.
func (p *Profile) agree(ctx context.Context, r *request, demand gang.Demand) (*proposal, *plan.Plan, string, error) {
	e := p.evictor
	found, why := e.decide(ctx, r, time.Now())
	if found == nil {
		return nil, nil, why, nil
	}
	plan, said, err := p.check(ctx, r, demand, found)
	switch {
	case err != nil:
		return nil, nil, "", err
	case !plan.Feasible():
		return nil, nil, e.searchAgain(ctx, r, said), nil
	case found.idle():
		e.await(r, found)
		return nil, nil, "", nil
	}
	nodes, err := p.framework.SnapshotSharedLister().NodeInfos().List()
	if err != nil {
		return nil, nil, "", fmt.Errorf("listing nodes: %w", err)
	}
	if len(p.shortfall(r.id, nodes, found.going()).resources) > 0 {
		return nil, nil, e.refuse(r, "evicting pods of lower priority does not free the minimum resources"), nil
	}
	// From now on, pending members of gangs that are evicted as a whole wait until all have terminated.
	now := time.Now()
	if !e.Ledger.Evictions.Evict(found.impacts, now.Add(grace), now) {
		return nil, nil, e.searchAgain(ctx, r, nil), nil // the gangs have changed since the victims were chosen
	}
	return found, plan, "", nil
}

// ForPod evicts pods for a single pod, as the scheduler's own preemption does, but of a gang only members beyond its
// minimum. If that is not enough, it evicts whole gangs.
func (p *Profile) ForPod(ctx context.Context, state fwk.CycleState, pod *v1.Pod,
	statuses fwk.NodeToStatusReader) (*fwk.PostFilterResult, *fwk.Status) {
	stock := stockPreemption(p.framework)
	if stock == nil {
		return nil, fwk.NewStatus(fwk.Unschedulable)
	}
	// Without a nomination, replacements of the victims would take the place.
	if node, why := p.evictor.awaited(pod, p.framework.SnapshotSharedLister().NodeInfos(), time.Now()); node != "" {
		return nominate(node, why)
	}
	p.evictor.stockEnds(pod)
	if !p.anyBelow(corev1helpers.PodPriority(pod)) {
		// The scheduler's own preemption would try each node, which takes longer than the rest of the cycle.
		return framework.NewPostFilterResultWithNominatedNode(""), fwk.NewStatus(
			fwk.UnschedulableAndUnresolvable, "preemption: no pod has a lower priority")
	}
	defer p.losses.beginCycle(time.Now())()
	p.evictor.stockBegins(pod) // before, because it evicts in the background
	result, status := stock.PostFilter(ctx, state, pod, statuses)
	evicts := status.IsSuccess() && result != nil && result.NominatedNodeName != ""
	if !evicts {
		p.evictor.stockEnds(pod)
	}
	switch {
	case evicts:
		return nominate(result.NominatedNodeName, "evicting pods of lower priority on "+result.NominatedNodeName)
	case status.IsSuccess() || status.Code() == fwk.Error:
		return result, status
	}
	outcome, node, err := p.preemptGangs(ctx, pod, statuses)
	switch {
	case err != nil:
		return nil, fwk.AsStatus(fmt.Errorf("choosing gangs to evict for pod %s/%s: %w", pod.Namespace, pod.Name, err))
	case node != "":
		return nominate(node, outcome)
	}
	if outcome == "" {
		outcome = status.Message()
	}
	return result, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, outcome)
}

// anyBelow reports whether a pod on a node may have a lower priority.
func (p *Profile) anyBelow(priority int32) bool {
	nodes, err := p.framework.SnapshotSharedLister().NodeInfos().List()
	return err != nil || p.lowest.below(nodes, priority)
}

// nominate nominates a node for a pod. why becomes the scheduler's message about the pod.
func nominate(node, why string) (*fwk.PostFilterResult, *fwk.Status) {
	return framework.NewPostFilterResultWithNominatedNode(node), fwk.NewStatus(fwk.Success, why)
}

// preemptGangs evicts pods, with whole gangs among them. It returns a message, and the node for the pod if it evicts.
func (p *Profile) preemptGangs(ctx context.Context, pod *v1.Pod, statuses fwk.NodeToStatusReader) (outcome, node string,
	err error) {
	e := p.evictor
	if podview.NeverPreempts(pod) {
		return "", "", nil
	}
	r := &request{name: podName(pod.Namespace, pod.Name), only: pod, statuses: statuses,
		priority: corev1helpers.PodPriority(pod), need: gang.Minimum{Total: 1}, classes: []requestClass{{pod: pod, count: 1}}}
	e.lookForFlight(r)
	if !e.Capacity.Cluster.AnyBelow(r.priority) || pod.Status.NominatedNodeName != "" {
		return "", "", nil
	}
	member := gang.Member{Ref: read.RefOf(pod), Priority: r.priority, Ours: true}
	demand := gang.Demand{Need: r.need, Minimum: r.need, Members: []gang.Member{member}}
	found, plan, why, err := p.agree(ctx, r, demand)
	if found == nil || err != nil {
		return why, "", err
	}
	if len(found.victims) == 0 {
		// While pods terminate, the scheduler's own preemption nominates single pods.
		return waitingFor(len(found.leaving)), "", nil
	}
	node = plan.Assignments[0].Node
	e.evict(ctx, p.framework, r, found, node)
	return found.evicting() + " to free capacity on " + node, node, nil
}
