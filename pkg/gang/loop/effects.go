package loop

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apitypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/pkg/capacity"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/hold"
	"berth.dev/berth/pkg/gang/members"
	"berth.dev/berth/pkg/gang/preempt"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/process"
)

// Executor does what the ledger asks for: it wakes pods, lets go those that wait, or sends them back.
type Executor struct {
	// Plugin is the name of the plugin that members wait for.
	Plugin   string
	Ledger   *gang.Ledger
	Profiles *process.Profiles
	Members  *members.Directory
	Capacity *capacity.Index
	Holds    *hold.Holds
	Evictor  *preempt.Evictor
	// Recovery is for how long the room of a lost member is kept for its replacement, 0 for not at all.
	Recovery time.Duration
	gates    gates
}

// Apply does what the ledger asks for. It must not be called under the queue's lock. The pods that it wakes enter the
// queue together, so that of several the queue's order decides which is first, and not which was woken first.
func (e *Executor) Apply(ctx context.Context, effects ...gang.Effects) {
	var woken []gang.Ref
	for i := range effects {
		of := &effects[i]
		if of.Empty() {
			continue
		}
		e.answer(ctx, of)
		woken = append(woken, of.Activate...)
		// A volume that never comes keeps a gang that has started from landing.
		if of.Started || of.Landed {
			e.Evictor.Landed()
		}
	}
	e.Activate(ctx, woken)
}

// answer does what the ledger asks for but for waking pods.
func (e *Executor) answer(ctx context.Context, of *gang.Effects) {
	if of.Started {
		gangWait.Observe(of.Waited.Seconds())
	}
	for _, loss := range of.Lost {
		e.keepForReturn(loss)
	}
	profile := e.Profiles.Any()
	for _, r := range of.Allow {
		e.deliver(ctx, profile, r, Answer{Allowed: true})
	}
	for _, r := range of.Reject {
		e.deliver(ctx, profile, r.Ref, Answer{Reason: r.Reason.String()})
	}
}

// keepForReturn keeps the room of a member that was lost for its gang, so that its replacement finds it, or the
// member itself if it could not be bound. Where hardware fails it may not come back.
func (e *Executor) keepForReturn(loss gang.Loss) {
	pod := e.Capacity.Cluster.Pod(apitypes.UID(loss.Member.UID))
	if pod == nil {
		pod = e.Members.Pod(loss.Member)
	}
	node := e.Capacity.Cluster.Node(loss.Node)
	if e.Recovery == 0 || pod == nil || preempt.PreemptedByScheduler(pod) ||
		node != nil && podview.FailingHardware(node) != "" {
		return
	}
	info, err := hold.InfoOf(pod)
	v, known := e.Ledger.View(loss.Group)
	if err != nil || !known {
		return
	}
	priority := v.Priority
	if loss.Starting {
		// Had the member been bound, a pod of any priority could only have evicted the whole gang.
		priority = math.MaxInt32
	}
	e.Holds.Add(hold.Hold{To: loss.Group, Kind: hold.ForReturn, Priority: priority, Node: loss.Node,
		Role: loss.Role, Info: info, Until: time.Now().Add(e.Recovery)})
}

// Activate puts pods into the scheduling queue.
func (e *Executor) Activate(ctx context.Context, refs []gang.Ref) {
	pods := make(map[string]*v1.Pod, len(refs))
	for _, r := range refs {
		if pod := e.Members.Pod(r); pod != nil {
			pods[r.Namespace+"/"+r.Name] = pod
		}
	}
	if len(pods) > 0 {
		e.Profiles.Any().Activate(klog.FromContext(ctx), pods)
	}
}

// WhenPermitted asks for the member's permit once no other plugin holds the waiting pod. Until then a gang that is
// younger may be planned in between: which of two comes first is open here. The pod becomes a waiting pod right after
// its Permit; a tick before the first look makes it the same look every time, where a look at once would see it now and
// then, and a replay would depend on that.
func (e *Executor) WhenPermitted(ctx context.Context, profile framework.Framework, uid gang.UID) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		<-tick.C
		w := profile.GetWaitingPod(apitypes.UID(uid))
		if !e.Ledger.Cycles.Standing(uid).Holds {
			if w != nil {
				Answer{Reason: "the plan of the gang changed"}.give(e.Plugin, w)
			}
			return
		}
		if w == nil || slices.ContainsFunc(w.GetPendingPlugins(), func(name string) bool { return name != e.Plugin }) {
			continue
		}
		effects, wait, _, ok := e.Ledger.Cycles.Permit(uid, time.Now())
		e.Apply(ctx, effects)
		switch {
		case !ok:
			Answer{Reason: "the plan of the gang changed"}.give(e.Plugin, w)
		case wait == 0:
			Answer{Allowed: true}.give(e.Plugin, w)
		}
		return
	}
}

// Answer is what a member that waits for its siblings is told.
type Answer struct {
	Allowed bool
	Reason  string
}

// deliver tells a waiting pod to go or to leave. A pod that was told to wait becomes a waiting pod a moment later, so
// that an answer that comes in between is repeated until the pod is there or does not hold its assignment any more.
func (e *Executor) deliver(ctx context.Context, profile framework.Framework, r gang.Ref, v Answer) {
	if e.tell(profile, r.UID, v) {
		return
	}
	go func() {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if e.tell(profile, r.UID, v) {
				return
			}
			if s := e.Ledger.Cycles.Standing(r.UID); !s.Holds || s.Allowed != v.Allowed {
				return
			}
		}
	}()
}

// tell gives the answer to the pod if it waits somewhere.
func (e *Executor) tell(profile framework.Framework, uid gang.UID, v Answer) bool {
	if w := profile.GetWaitingPod(apitypes.UID(uid)); w != nil {
		v.give(e.Plugin, w)
		return true
	}
	return e.gates.open(uid, v)
}

func (v Answer) give(plugin string, w fwk.WaitingPod) {
	if v.Allowed {
		w.Allow(plugin)
	} else {
		w.Reject(plugin, v.Reason)
	}
}

// Wait returns where the answer of a member will come from that waits in PreBind, and what ends the waiting.
func (e *Executor) Wait(uid gang.UID) (<-chan Answer, func()) { return e.gates.wait(uid) }

// gates are where members wait for their siblings that had to write something first, see gang.Assignment.First.
type gates struct {
	mu   sync.Mutex
	gate map[gang.UID]chan Answer
}

// wait returns where the answer of the member will come from, and what ends the waiting.
func (g *gates) wait(uid gang.UID) (<-chan Answer, func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.gate == nil {
		g.gate = map[gang.UID]chan Answer{}
	}
	gate := make(chan Answer, 1)
	g.gate[uid] = gate
	return gate, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.gate[uid] == gate {
			delete(g.gate, uid)
		}
	}
}

// open gives the answer to the member if it waits at a gate.
func (g *gates) open(uid gang.UID, v Answer) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	gate, waits := g.gate[uid]
	if waits {
		delete(g.gate, uid)
		gate <- v
	}
	return waits
}
