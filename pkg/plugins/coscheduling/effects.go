package coscheduling

import (
	"context"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apitypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/members"
	"berth.dev/berth/pkg/profiles"
)

// executor does what the ledger asks for: it wakes pods, lets go those that wait, or sends them back.
type executor struct {
	ledger   *gang.Ledger
	profiles *profiles.Set
	members  *members.Directory
	gates    gates
	// lost is told of members of started gangs that have lost their node.
	lost func(gang.Loss)
	// landed is told when the members of a gang have been bound.
	landed func()
}

// apply does what the ledger asks for. It must not be called under the queue's lock. The pods that it wakes enter the
// queue together, so that of several the queue's order decides which is first, and not which was woken first.
func (c *executor) apply(ctx context.Context, effects ...gang.Effects) {
	var woken []gang.Ref
	for _, e := range effects {
		if e.Empty() {
			continue
		}
		c.answer(ctx, e)
		woken = append(woken, e.Activate...)
		// A volume that never comes keeps a gang that has started from landing.
		if e.Started || e.Landed {
			c.landed()
		}
	}
	c.activate(ctx, woken)
}

// answer does what the ledger asks for but for waking pods.
func (c *executor) answer(ctx context.Context, e gang.Effects) {
	if e.Started {
		gangWait.Observe(e.Waited.Seconds())
	}
	for _, loss := range e.Lost {
		c.lost(loss)
	}
	profile := c.profiles.Any()
	for _, r := range e.Allow {
		c.deliver(ctx, profile, r, answer{allowed: true})
	}
	for _, r := range e.Reject {
		c.deliver(ctx, profile, r.Ref, answer{reason: r.Reason.String()})
	}
}

// activate puts pods into the scheduling queue.
func (c *executor) activate(ctx context.Context, refs []gang.Ref) {
	pods := make(map[string]*v1.Pod, len(refs))
	for _, r := range refs {
		if pod := c.members.Pod(r); pod != nil {
			pods[r.Namespace+"/"+r.Name] = pod
		}
	}
	if len(pods) > 0 {
		c.profiles.Any().Activate(klog.FromContext(ctx), pods)
	}
}

// whenPermitted asks for the member's permit once no other plugin holds the waiting pod. Until then a gang that is
// younger may be planned in between: which of two comes first is open here. The pod becomes a waiting pod right after
// its Permit; a tick before the first look makes it the same look every time, where a look at once would see it now and
// then, and a replay would depend on that.
func (c *executor) whenPermitted(ctx context.Context, profile framework.Framework, uid gang.UID) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		<-tick.C
		w := profile.GetWaitingPod(apitypes.UID(uid))
		if held, _ := c.ledger.Holding(uid); !held {
			if w != nil {
				answer{reason: "the plan of the gang changed"}.give(w)
			}
			return
		}
		if w == nil || slices.ContainsFunc(w.GetPendingPlugins(), func(name string) bool { return name != Name }) {
			continue
		}
		effects, wait, _, ok := c.ledger.Permit(uid, time.Now())
		c.apply(ctx, effects)
		switch {
		case !ok:
			answer{reason: "the plan of the gang changed"}.give(w)
		case wait == 0:
			answer{allowed: true}.give(w)
		}
		return
	}
}

// answer is what a member that waits for its siblings is told.
type answer struct {
	allowed bool
	reason  string
}

// deliver tells a waiting pod to go or to leave. A pod that was told to wait becomes a waiting pod a moment later, so
// that an answer that comes in between is repeated until the pod is there or does not hold its assignment any more.
func (c *executor) deliver(ctx context.Context, profile framework.Framework, r gang.Ref, v answer) {
	if c.tell(profile, r.UID, v) {
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
			if c.tell(profile, r.UID, v) {
				return
			}
			if held, allowed := c.ledger.Holding(r.UID); !held || allowed != v.allowed {
				return
			}
		}
	}()
}

// tell gives the answer to the pod if it waits somewhere.
func (c *executor) tell(profile framework.Framework, uid gang.UID, v answer) bool {
	if w := profile.GetWaitingPod(apitypes.UID(uid)); w != nil {
		v.give(w)
		return true
	}
	return c.gates.open(uid, v)
}

func (v answer) give(w fwk.WaitingPod) {
	if v.allowed {
		w.Allow(Name)
	} else {
		w.Reject(Name, v.reason)
	}
}

// gates are where members wait for their siblings that had to write something first, see gang.Assignment.First.
type gates struct {
	mu   sync.Mutex
	gate map[gang.UID]chan answer
}

// wait returns where the answer of the member will come from, and what ends the waiting.
func (g *gates) wait(uid gang.UID) (<-chan answer, func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.gate == nil {
		g.gate = map[gang.UID]chan answer{}
	}
	gate := make(chan answer, 1)
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
func (g *gates) open(uid gang.UID, v answer) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	gate, waits := g.gate[uid]
	if waits {
		delete(g.gate, uid)
		gate <- v
	}
	return waits
}
