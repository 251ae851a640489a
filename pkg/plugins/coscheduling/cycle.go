package coscheduling

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/kubeview"
)

// trialKey marks the cycle states of a trial, in which the plugin must not plan again.
const trialKey fwk.StateKey = Name + "/trial"

type trialMark struct{}

// Clone returns the mark, which has no content.
func (m trialMark) Clone() fwk.StateData { return m }

// seatsKey holds the nodes that a member may take in its own cycle.
const seatsKey fwk.StateKey = Name + "/seats"

// seats are nodes by name.
type seats struct{ sets.Set[string] }

// Clone returns the seats themselves, which nobody changes.
func (s seats) Clone() fwk.StateData { return s }

// confine sends a pod to some nodes only. The framework tries a node to which a pod was nominated before whatever the
// result of PreFilter says, so Filter has to know them, too.
func confine(state fwk.CycleState, nodes sets.Set[string]) (*fwk.PreFilterResult, *fwk.Status) {
	state.Write(seatsKey, seats{nodes})
	return &fwk.PreFilterResult{NodeNames: nodes}, nil
}

// PreFilter sends members to their seats; the leader's makes the plan.
func (p *Plugin) PreFilter(ctx context.Context, state fwk.CycleState, pod *v1.Pod, nodes []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	p.shared.status.leading.Store(true)
	_, notTrial := state.Read(trialKey)
	if !isMember(pod) || notTrial == nil {
		if p.shared.reserved.Load() != nil {
			return nil, nil
		}
		return nil, fwk.NewStatus(fwk.Skip)
	}
	if _, _, err := kubeview.GangOf(pod); err != nil {
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, err.Error())
	}
	switch turn := p.shared.ledger.Turn(gang.UID(pod.UID)); turn.Kind {
	case gang.Free:
		return p.shared.join(state, pod, nodes)
	case gang.Follow:
		return confine(state, sets.New(turn.Node))
	case gang.Lead:
		return p.lead(ctx, state, pod, turn, nodes)
	default:
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, turn.Why)
	}
}

// PreFilterExtensions returns nil: a seat does not depend on the pods of its node that preemption adds or removes.
func (*Plugin) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

// lead plans for the whole gang of pod and gives pod its own seat.
func (p *Plugin) lead(ctx context.Context, state fwk.CycleState, pod *v1.Pod, turn gang.Turn, nodes []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	id, _, _ := kubeview.GangOf(pod)
	uid := gang.UID(pod.UID)
	fail := func(reason string) (*fwk.PreFilterResult, *fwk.Status) {
		p.shared.carryOut(ctx, p.shared.ledger.Block(uid, reason, p.shared.settings.backoff, time.Now()))
		if p.shared.settings.reserve {
			p.shared.look()
		}
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, reason)
	}
	if reason := p.lack(id, nodes, nil); reason != "" {
		return fail(reason)
	}
	start := time.Now()
	result, err := p.shared.arrange(ctx, id, turn, nodes, nil)
	var bad *kubeview.BadValue
	switch {
	case errors.As(err, &bad):
		return fail(err.Error())
	case err != nil:
		return nil, fwk.AsStatus(fmt.Errorf("planning gang %s: %w", id, err))
	}
	outcome := "infeasible"
	if result.Feasible() {
		outcome = "feasible"
	}
	planDuration.WithLabelValues(outcome).Observe(time.Since(start).Seconds())
	nodesExamined.Observe(float64(result.examined))
	klog.FromContext(ctx).V(3).Info("Planned gang", "gang", id, "needs", turn.Need, "members", len(turn.Members),
		"seats", len(result.Seats), "nodesExamined", result.examined, "duration", time.Since(start))
	seat, seated := result.Seats[uid]
	if result.Feasible() && !seated {
		// More members than fit: the leader stands for the gang, so it takes the seat of another that is like it.
		seat, seated = takeSeat(result.Seats, turn.Members, uid)
	}
	if !result.Feasible() || !seated {
		return fail(gang.Explain(id, turn, result.Result, result.describe, result.within, result.reasons(result.Result)))
	}
	p.shared.unnominate(p, id)
	effects, ok := p.shared.ledger.Propose(uid, result.Seats, time.Now())
	p.shared.carryOut(ctx, effects)
	if !ok {
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, fmt.Sprintf("gang %s changed while it was planned", id))
	}
	return confine(state, sets.New(seat))
}

// takeSeat gives uid the seat of a member of the same class.
func takeSeat(seats map[gang.UID]string, members []gang.Member, uid gang.UID) (string, bool) {
	var class string
	for _, m := range members {
		if m.UID == uid {
			class = m.Class
		}
	}
	for i := len(members) - 1; i >= 0; i-- {
		if node, ok := seats[members[i].UID]; ok && members[i].Class == class {
			delete(seats, members[i].UID)
			seats[uid] = node
			return node, true
		}
	}
	return "", false
}

// PostFilter stops the preemption of pods one at a time for a gang: victims that make room for one member are lost if
// the others still do not fit. A member whose planned seat does not hold any more leads the planning of the rest.
func (p *Plugin) PostFilter(ctx context.Context, state fwk.CycleState, pod *v1.Pod, statuses fwk.NodeToStatusReader) (*fwk.PostFilterResult, *fwk.Status) {
	if !isMember(pod) || state.IsPodGroupSchedulingCycle() {
		return nil, fwk.NewStatus(fwk.Unschedulable)
	}
	uid := gang.UID(pod.UID)
	switch turn := p.shared.ledger.Turn(uid); turn.Kind {
	case gang.Free:
		return nil, fwk.NewStatus(fwk.Unschedulable)
	case gang.Follow:
		plansInvalidated.Inc()
		why := fmt.Sprintf("planned node %s: %s", turn.Node, statuses.Get(turn.Node).Message())
		p.shared.carryOut(ctx, p.shared.ledger.Broken(uid, why, p.shared.settings.backoff, time.Now()))
	case gang.Lead:
		if !p.shared.ledger.Blocked(uid) {
			// Another plugin turned the leader away before or instead of the plan.
			p.shared.carryOut(ctx, p.shared.ledger.Block(uid, "pod "+pod.Name+" cannot be scheduled", p.shared.settings.backoff, time.Now()))
			break
		}
		id, _, _ := kubeview.GangOf(pod)
		outcome, err := p.preempt(ctx, id, turn)
		if err != nil {
			return nil, fwk.AsStatus(fmt.Errorf("choosing pods to evict for gang %s: %w", id, err))
		}
		if outcome == "" {
			p.shared.unnominate(p, id)
			break
		}
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, outcome)
	}
	return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable)
}

// Reserve records that the member holds its seat.
func (p *Plugin) Reserve(ctx context.Context, state fwk.CycleState, pod *v1.Pod, node string) *fwk.Status {
	if !isMember(pod) || state.IsPodGroupSchedulingCycle() {
		return nil
	}
	effects, ok := p.shared.ledger.Reserve(gang.UID(pod.UID), node, time.Now())
	p.shared.carryOut(ctx, effects)
	if !ok {
		return fwk.NewStatus(fwk.Unschedulable, "the plan of the gang changed")
	}
	return nil
}

// Unreserve records that the member has given its seat back, and with it those of its siblings if they need it.
func (p *Plugin) Unreserve(ctx context.Context, state fwk.CycleState, pod *v1.Pod, _ string) {
	if !isMember(pod) || state.IsPodGroupSchedulingCycle() {
		return
	}
	p.shared.carryOut(ctx, p.shared.ledger.Unreserve(gang.UID(pod.UID), time.Now()))
	p.shared.roomMade()
}

// Permit lets the members of a gang go together, when the last of them holds its seat.
func (p *Plugin) Permit(ctx context.Context, _ fwk.CycleState, pod *v1.Pod, _ string) (*fwk.Status, time.Duration) {
	if !isMember(pod) {
		return nil, 0
	}
	effects, wait, ok := p.shared.ledger.Permit(gang.UID(pod.UID), time.Now())
	p.shared.carryOut(ctx, effects)
	switch {
	case !ok:
		return fwk.NewStatus(fwk.Unschedulable, "the plan of the gang changed"), 0
	case wait > 0:
		return fwk.NewStatus(fwk.Wait), wait
	default:
		return nil, 0
	}
}
