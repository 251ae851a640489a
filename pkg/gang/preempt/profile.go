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

// Profile is the evictor in the cycles of one profile, whose plugins judge what it finds.
type Profile struct {
	framework framework.Framework
	evictor   *Evictor
	planner   *plan.Planner
	// losses are what evictions lose in the cycle that is running.
	losses byLoss
	lowest lowestPriorities
}

// NewProfile returns the evictor for a profile.
func NewProfile(e *Evictor, profile framework.Framework, planner *plan.Planner) *Profile {
	return &Profile{framework: profile, evictor: e, planner: planner, losses: byLoss{Loss: e.Sources.Loss}}
}

// ForGang evicts exactly the pods of lower priority without which a gang that does not fit can start as a whole, all in
// one wave, or none at all. It returns what to say about it, or nothing if no eviction helps.
func (p *Profile) ForGang(ctx context.Context, id gang.ID, demand gang.Demand) (string, error) {
	e := p.evictor
	r := &request{name: "gang " + id.String(), id: id, of: id,
		priority: demand.Members[0].Priority, need: demand.Need, held: e.Ledger.Nodes(id)}
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
	levels, err := p.planner.Topology(id, r.classes[0].pod)
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
	kept, err := roomOf(r, plan)
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

// roomOf is what the plan needs for the gang.
func roomOf(r *request, plan *plan.Plan) ([]hold.Hold, error) {
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

// addMembers adds what the members ask for. Never names a member that may evict no pods; complete is false if a member
// is gone.
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

// agree returns victims with which the filters of the profile and the gangs of the victims agree, and where the members
// go then. It returns no victims, and what to say about it, while there are none.
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
	if len(p.missing(r.id, nodes, found.going()).Short) > 0 {
		return nil, nil, e.refuse(r, "evicting pods of lower priority does not free the minimum resources"), nil
	}
	// From now on the other members of gangs that go as a whole wait until all have gone.
	now := time.Now()
	if !e.Ledger.Evictions.Evict(found.impacts, now.Add(grace), now) {
		return nil, nil, e.searchAgain(ctx, r, nil), nil // the gangs are not as they were when the victims were chosen
	}
	return found, plan, "", nil
}

// ForPod evicts pods for a single pod: as the scheduler's own preemption does, but of a gang only what it can
// spare; and if that is not enough, whole gangs.
func (p *Profile) ForPod(ctx context.Context, state fwk.CycleState, pod *v1.Pod,
	statuses fwk.NodeToStatusReader) (*fwk.PostFilterResult, *fwk.Status) {
	stock := stockPreemption(p.framework)
	if stock == nil {
		return nil, fwk.NewStatus(fwk.Unschedulable)
	}
	// Without its nomination, the pods that replace the victims would be there before it.
	if node, why := p.evictor.awaited(pod, p.framework.SnapshotSharedLister().NodeInfos(), time.Now()); node != "" {
		return nominate(node, why)
	}
	p.evictor.stockEnds(pod)
	if !p.anyBelow(corev1helpers.PodPriority(pod)) {
		// The scheduler's own preemption finds it out by trying each node, which takes longer than all else in the cycle.
		return framework.NewPostFilterResultWithNominatedNode(""), fwk.NewStatus(
			fwk.UnschedulableAndUnresolvable, "preemption: no pod has a lower priority")
	}
	defer p.losses.beginCycle(time.Now())()
	p.evictor.stockBegins(pod) // before, since it evicts beside the cycle
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

// anyBelow reports whether a pod on a node may have a lower priority. The account of capacity does not know pods that
// are being bound.
func (p *Profile) anyBelow(priority int32) bool {
	nodes, err := p.framework.SnapshotSharedLister().NodeInfos().List()
	return err != nil || p.lowest.Below(nodes, priority)
}

// nominate keeps a node for a pod. The scheduler tells users why, as it does of a failure.
func nominate(node, why string) (*fwk.PostFilterResult, *fwk.Status) {
	return framework.NewPostFilterResultWithNominatedNode(node), fwk.NewStatus(fwk.Success, why)
}

// preemptGangs evicts pods among which there are whole gangs, and returns what it does and the node that this is for.
func (p *Profile) preemptGangs(ctx context.Context, pod *v1.Pod, statuses fwk.NodeToStatusReader) (outcome, node string,
	err error) {
	e := p.evictor
	if podview.NeverPreempts(pod) {
		return "", "", nil
	}
	r := &request{name: podName(pod.Namespace, pod.Name), only: pod, of: e.Members.ID(pod), statuses: statuses,
		priority: corev1helpers.PodPriority(pod),
		need:     gang.Minimum{Total: 1}, classes: []requestClass{{pod: pod, count: 1}}}
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
		// Single pods are nominated by the scheduler's own preemption while others terminate.
		return waitingFor(len(found.leaving)), "", nil
	}
	node = plan.Assignments[0].Node
	e.evict(ctx, p.framework, r, found, node)
	return found.evicting() + " for room on " + node, node, nil
}
