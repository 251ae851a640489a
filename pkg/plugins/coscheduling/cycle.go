package coscheduling

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"

	"berth.dev/berth/pkg/dryrun"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gangview"
	"berth.dev/berth/pkg/obstacle"
	"berth.dev/berth/pkg/reasons"
)

// The keys of what a member's cycle keeps.
const (
	// nodesKey holds the nodes that the member may take.
	nodesKey fwk.StateKey = Name + "/nodes"
	// passedKey marks the cycle of a leader that has planned and lets others go first.
	passedKey fwk.StateKey = Name + "/passed"
	// firstKey marks the cycle of a member that waits for its siblings in PreBind rather than in Permit.
	firstKey fwk.StateKey = Name + "/first"
)

// nodeSet is nodes by name.
type nodeSet struct {
	sets.Set[string]
	// why says what else a user has to know of them, if anything.
	why string
}

// Clone returns the set itself, which is never changed.
func (s nodeSet) Clone() fwk.StateData { return s }

// mark is state without content.
type mark struct{}

// Clone returns the mark.
func (m mark) Clone() fwk.StateData { return m }

func marked(state fwk.CycleState, key fwk.StateKey) bool {
	_, err := state.Read(key)
	return err == nil
}

// confine sends a pod to some nodes only. The framework tries a node to which a pod was nominated before whatever the
// result of PreFilter says, so Filter has to know them, too.
func confine(state fwk.CycleState, nodes sets.Set[string]) (*fwk.PreFilterResult, *fwk.Status) {
	state.Write(nodesKey, nodeSet{Set: nodes})
	return &fwk.PreFilterResult{NodeNames: nodes}, nil
}

// PreFilter sends members to the nodes that they were assigned; the leader's makes the plan.
func (p *Plugin) PreFilter(ctx context.Context, state fwk.CycleState, pod *v1.Pod,
	nodes []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	c := p.shared
	c.told.leader.Schedules()
	p.complete.Do(func() {
		p.othersPermit = len(p.framework.ListPlugins().Permit.Enabled) > 1
		p.evictor.Guard()
	})
	if bad := c.misstated(pod); bad != nil {
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, bad.Error())
	}
	of, err := c.members.Of(pod)
	id := of.ID
	switch {
	case state.IsPodGroupSchedulingCycle(), err == nil && id == gang.ID{}:
		// A gang tries its members in such a cycle.
		if id == (gang.ID{}) {
			p.tellForeign(ctx, pod)
		}
		return p.open()
	case err != nil:
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, err.Error())
	}
	switch turn := c.ledger.Cycles.Turn(gang.UID(pod.UID)); turn.Kind {
	case gang.Free:
		return p.join(ctx, state, id, pod, nodes)
	case gang.Follow:
		p.forgetNominations(id, pod, turn.Node)
		return confine(state, sets.New(turn.Node))
	case gang.Lead:
		l := leading{p: p, ctx: ctx, state: state, id: id, pod: pod, turn: turn}
		return l.plan(nodes)
	default:
		return nil, reasons.Status(fwk.UnschedulableAndUnresolvable, turn.Why)
	}
}

// tellForeign records once about a pod that it is in a group of another scheduler, and so in none here.
func (p *Plugin) tellForeign(ctx context.Context, pod *v1.Pod) {
	f, says := gangview.ForeignOf(pod)
	if !says || pod.Spec.SchedulingGroup != nil || !p.shared.told.status.Pods.IsNews(pod, "ForeignGroup", f.String()) {
		return
	}
	p.framework.EventRecorder().WithLogger(klog.FromContext(ctx)).Eventf(pod, nil, v1.EventTypeWarning, "ForeignGroup",
		"Scheduling", "%s", f)
}

// open lets a pod go anywhere; its nodes are filtered only while something is kept for gangs.
func (p *Plugin) open() (*fwk.PreFilterResult, *fwk.Status) {
	if p.shared.holds.Gate.Any() {
		return nil, nil
	}
	return nil, fwk.NewStatus(fwk.Skip)
}

// PreFilterExtensions returns nil: an assignment does not depend on the pods of its node that preemption adds or
// removes.
func (*Plugin) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

// Filter keeps a member off nodes that its plan does not give it, and all pods off capacity that is kept for a gang.
func (p *Plugin) Filter(_ context.Context, state fwk.CycleState, pod *v1.Pod, node fwk.NodeInfo) *fwk.Status {
	if data, err := state.Read(nodesKey); err == nil && !data.(nodeSet).Has(node.Node().Name) {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "node(s) that the gang's plan does not give to this member")
	}
	if to, refused := p.shared.holds.Gate.Refuse(pod, node, p.framework.SnapshotSharedLister().NodeInfos()); refused {
		return reasons.Status(fwk.Unschedulable, dryrun.KeptFor(to))
	}
	return nil
}

// giveBack lets the plugin of claims give back devices that are allocated to the pod for nothing.
func (p *Plugin) giveBack(ctx context.Context, state fwk.CycleState, pod *v1.Pod) {
	if !p.shared.profiles.Traits(pod).Claims(pod) {
		return
	}
	for _, plugin := range p.framework.PreEnqueuePlugins() {
		if claims, ok := plugin.(*dynamicresources.DynamicResources); ok {
			// It writes to the API server, for which no cycle is to wait.
			go func(ctx context.Context) {
				_, status := claims.PostFilter(ctx, state, pod, nil)
				klog.FromContext(ctx).V(4).Info("Looked for devices that are allocated without a result", "pod", klog.KObj(pod),
					"outcome", status.Message())
			}(context.WithoutCancel(ctx))
		}
	}
}

// PostFilter stops the preemption of pods one at a time for a gang: victims that make room for one member are lost if
// the others still do not fit. A member whose assignment does not hold any more leads the planning of the rest. For
// single pods it evicts gangs as a whole or not at all.
func (p *Plugin) PostFilter(ctx context.Context, state fwk.CycleState, pod *v1.Pod,
	statuses fwk.NodeToStatusReader) (*fwk.PostFilterResult, *fwk.Status) {
	if state.IsPodGroupSchedulingCycle() || p.shared.members.Policy.LeftToCore(pod) {
		return nil, fwk.NewStatus(fwk.Unschedulable)
	}
	c := p.shared
	uid := gang.UID(pod.UID)
	of, err := c.members.Of(pod)
	id := of.ID
	if err == nil && id == (gang.ID{}) {
		return p.preemptAlone(ctx, state, pod, statuses)
	}
	if err != nil || marked(state, passedKey) {
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable)
	}
	switch turn := c.ledger.Cycles.Turn(uid); turn.Kind {
	case gang.Free:
		result, status := p.preemptAlone(ctx, state, pod, statuses)
		return result, explained(state, status)
	case gang.Follow:
		plansInvalidated.Inc()
		why := obstacle.Obstacle{Cause: obstacle.NodeRefused, Group: id, Node: turn.Node,
			Says: statuses.Get(turn.Node).Message()}
		c.effects.Apply(ctx, c.ledger.Cycles.Broken(uid, why, c.settings.backoff, time.Now()))
	case gang.Lead:
		if !c.ledger.Cycles.Standing(uid).Blocked {
			// Another plugin turned the leader away before it could plan: from all nodes, whatever their names.
			why := obstacle.Obstacle{Cause: obstacle.Declined, Group: id, Pod: pod.Name, Says: statuses.Get("").Message()}
			c.effects.Apply(ctx, c.ledger.Cycles.Decline(uid, why, c.settings.backoff, time.Now()))
			return nil, p.stop(ctx, state, pod, "")
		}
		if turn.Grows {
			// What the gang runs without is not worth an eviction.
			return nil, p.stop(ctx, state, pod, "")
		}
		outcome, err := p.evictor.ForGang(ctx, id, turn)
		if err != nil {
			return nil, fwk.AsStatus(fmt.Errorf("choosing pods to evict for gang %s: %w", id, err))
		}
		return nil, p.stop(ctx, state, pod, outcome)
	}
	return nil, p.stop(ctx, state, pod, "")
}

// preemptAlone evicts pods for a single pod, or gives back what is allocated to it for nothing if that does not help.
func (p *Plugin) preemptAlone(ctx context.Context, state fwk.CycleState, pod *v1.Pod,
	statuses fwk.NodeToStatusReader) (*fwk.PostFilterResult, *fwk.Status) {
	result, status := p.evictor.ForPod(ctx, state, pod, statuses)
	if status.Code() == fwk.UnschedulableAndUnresolvable {
		p.giveBack(ctx, state, pod)
	}
	return result, status
}

// explained adds to why a pod cannot be scheduled what is to be said of the nodes to which it was sent.
func explained(state fwk.CycleState, status *fwk.Status) *fwk.Status {
	data, err := state.Read(nodesKey)
	if err != nil || data.(nodeSet).why == "" || !status.IsRejected() {
		return status
	}
	words := data.(nodeSet).why
	if said := status.Message(); said != "" {
		words = said + "; " + words
	}
	return fwk.NewStatus(status.Code(), words)
}

// stop ends the search for pods to evict. The other plugins are not asked: the scheduler's own preemption takes no
// victims for a member of a gang, and would look at all nodes to find that out.
func (p *Plugin) stop(ctx context.Context, state fwk.CycleState, pod *v1.Pod, message string) *fwk.Status {
	p.giveBack(ctx, state, pod)
	if message == "" {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable)
	}
	return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, message)
}
