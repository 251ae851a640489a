package coscheduling

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/obstacle"
	"berth.dev/berth/pkg/gang/plan"
	"berth.dev/berth/pkg/gang/waiting"
	"berth.dev/berth/pkg/process"
	"berth.dev/berth/pkg/wellknown"
)

// leading is the cycle of a leader, which plans for its gang.
type leading struct {
	p     *Plugin
	ctx   context.Context
	state fwk.CycleState
	id    gang.ID
	pod   *v1.Pod
	// demand is what the plan has to place.
	demand gang.Demand
}

// plan plans for the gang, and gives the leader its own assignment.
func (l *leading) plan(nodes []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	c := l.p.shared
	if reason := l.p.evictor.Shortfall(l.id, nodes); reason != nil {
		return l.fail(reason, nil)
	}
	began := time.Now()
	result, err := c.planner.Plan(l.ctx, l.id, l.demand, nodes)
	took := time.Since(began)
	c.pace.Ran(l.id.Namespace, took, time.Now())
	c.loop.Inbox.Look()
	var bad *wellknown.BadValue
	switch {
	case errors.As(err, &bad):
		return l.fail(obstacle.Text(err.Error()), nil)
	case err != nil:
		return nil, fwk.AsStatus(fmt.Errorf("planning gang %s: %w", l.id, err))
	}
	outcome := "infeasible"
	if result.Feasible() {
		outcome = "feasible"
	}
	planDuration.WithLabelValues(outcome).Observe(took.Seconds())
	nodesExamined.Observe(float64(result.Examined))
	klog.FromContext(l.ctx).V(3).Info("Planned gang", "gang", l.id, "needs", l.demand.Need.Total,
		"members", len(l.demand.Members), "placed", len(result.Assignments), "nodesExamined", result.Examined,
		"duration", took)
	if !result.Feasible() {
		short := make([]string, len(result.Short))
		for i, s := range result.Short {
			short[i] = s.Class
			// The filters have found that devices are allocated where the gang cannot go, in the dry run alone.
			if r := result.Classes[s.Class]; r.State != nil {
				l.p.giveBack(l.ctx, r.State, r.Pod)
			}
		}
		causes, err := c.planner.Causes(l.id, result, nodes)
		if err != nil {
			return nil, fwk.AsStatus(fmt.Errorf("finding what keeps gang %s waiting: %w", l.id, err))
		}
		return l.fail(plan.NewShortfall(l.id, l.demand, result.Result, result.Describe, result.Within, causes), short)
	}
	if l.comesLate(result.Assignments) {
		time.AfterFunc(othersFirst, func() { c.loop.Inbox.Happened(waiting.Happening{Only: l.id}) })
		return l.fail(triedFirst{}, nil)
	}
	return l.propose(result)
}

// comesLate reports whether the plan uses what has come free since the loop last looked, while others wait that come
// first: members that gangs lack which have started, or who is more important. The loop has yet to try them for it.
func (l *leading) comesLate(assignments []gang.Assignment) bool {
	c := l.p.shared
	unseen := func(a gang.Assignment) bool { return c.headroom.Looks.FreedAfter(a.Node) }
	return slices.ContainsFunc(assignments, unseen) &&
		(len(c.ledger.Agenda.Stragglers()) > 0 || c.loop.List.Priorities.Above(l.pod))
}

// propose has the ledger take the plan, and sends the leader to its node.
func (l *leading) propose(result *plan.Plan) (*fwk.PreFilterResult, *fwk.Status) {
	c, uid := l.p.shared, gang.UID(l.pod.UID)
	effects, serves, proceed := c.ledger.Cycles.Propose(uid,
		gang.Proposal{Assignments: result.Assignments, Ordered: result.Ordered}, time.Now())
	c.effects.Apply(l.ctx, effects)
	if !serves {
		return nil, process.Reject(fwk.UnschedulableAndUnresolvable,
			obstacle.Obstacle{Cause: obstacle.PlanChanged, Group: l.id})
	}
	c.holds.Follow(l.id, result.Assignments)
	if !proceed {
		return l.pass()
	}
	for _, a := range result.Assignments {
		if a.UID == uid {
			l.p.forgetNominations(l.id, l.pod, a.Node)
			return confine(l.state, sets.New(a.Node))
		}
	}
	return nil, fwk.AsStatus(fmt.Errorf("planning gang %s: the plan has no node for its leader", l.id))
}

// fail ends the cycle of a leader whose gang does not fit; short are the classes with members that found no node.
func (l *leading) fail(reason obstacle.Reason, short []string) (*fwk.PreFilterResult, *fwk.Status) {
	c := l.p.shared
	c.effects.Apply(l.ctx, c.ledger.Cycles.Block(l.id, reason, short, c.settings.backoff, time.Now()))
	c.told.status.Pods.IsNews(l.pod, reason.Kind(), reason.Kind()) // the cycle's own event tells it
	return nil, process.Reject(fwk.UnschedulableAndUnresolvable, reason)
}

// pass ends the cycle of a leader that lets siblings go first.
func (l *leading) pass() (*fwk.PreFilterResult, *fwk.Status) {
	l.state.Write(passedKey, mark{})
	return nil, process.Reject(fwk.UnschedulableAndUnresolvable,
		obstacle.Obstacle{Cause: obstacle.PlanWaits, Group: l.id})
}

// forgetNominations takes back what nominates siblings to the node: it is of an earlier plan, or of an earlier
// scheduler, and the pod would have to fit beside them.
func (p *Plugin) forgetNominations(id gang.ID, pod *v1.Pod, node string) {
	for _, info := range p.framework.NominatedPodsForNode(node) {
		if other := info.GetPod(); other.UID != pod.UID && p.shared.members.ID(other) == id {
			p.framework.DeleteNominatedPodIfExists(other)
		}
	}
}
