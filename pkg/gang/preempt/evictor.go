package preempt

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	policylisters "k8s.io/client-go/listers/policy/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/pkg/capacity"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/hold"
	"berth.dev/berth/pkg/gang/members"
	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/gang/status"
	"berth.dev/berth/pkg/gang/waiting"
	"berth.dev/berth/pkg/plural"
	"berth.dev/berth/pkg/process"
)

// Evictor owns the attempts to evict pods for gangs, or whole gangs for single pods. The search runs in the background
// on a copy of the account of capacity; a scheduling cycle only checks its result with the filters of the profile, on
// the nodes concerned.
type Evictor struct {
	Profiles *process.Profiles
	Members  *members.Directory
	Capacity *capacity.Index
	Ledger   *gang.Ledger
	Holds    *hold.Holds
	Sources  Sources
	// Inbox takes gangs and pods to try again when a search or an eviction has ended.
	Inbox *waiting.Inbox

	mu sync.Mutex
	// work has the attempts by request.name.
	work map[string]*attempt
}

// Sources are what an eviction has to respect besides the minimums of gangs.
type Sources struct {
	// Owners know which members can only be evicted together.
	Owners  *status.Owners
	Budgets policylisters.PodDisruptionBudgetLister
	// Loss knows what evictions lose.
	Loss *Loss
}

// lookForFlight records whether gangs of lower priority are being bound, and has the request tried again when they are
// bound: only then can such a gang be evicted as a whole or spare members, and no event of the scheduler's queue or of
// the account tells it.
func (e *Evictor) lookForFlight(r *request) {
	if r.inFlight = e.Ledger.Evictions.Beginning(r.priority); r.inFlight {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.of(r).landing = true
	}
}

// Landed retries the requests that may evict a gang whose members have been bound.
func (e *Evictor) Landed() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(e.work)) {
		if w := e.work[name]; w.landing {
			w.landing = false
			e.again(w.request)
		}
	}
}

// again retries the gang or the pod.
func (e *Evictor) again(r *request) {
	if r.only != nil {
		e.Inbox.Activate([]gang.Ref{read.RefOf(r.only)})
	} else {
		e.Inbox.Resume(r.id)
	}
}

// of returns the attempt for the request. The lock is held.
func (e *Evictor) of(r *request) *attempt {
	if w := e.work[r.name]; w != nil {
		return w
	}
	return e.begin(r)
}

// begin replaces the attempt for the request by a new one. The lock is held.
func (e *Evictor) begin(r *request) *attempt {
	w := &attempt{request: r, said: findings{}, idle: time.Now()}
	if before := e.work[r.name]; before != nil {
		w.landing = before.landing
	}
	if e.work == nil {
		e.work = map[string]*attempt{}
	}
	e.work[r.name] = w
	return w
}

// decide returns a proposal to check and carry out, or why the request waits. A proposal without victims means that the
// account has enough capacity; the check then finds what filters refuse.
func (e *Evictor) decide(ctx context.Context, r *request, now time.Time) (*proposal, string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	w := e.of(r)
	w.request = r
	left := e.remaining(w.awaited)
	switch w.ask(left, now) {
	case toWait:
		if w.searching {
			return nil, "looking for pods to evict"
		}
		return nil, waitingFor(left)
	case toRestart:
		w = e.begin(r)
	case toChooseOthers:
		e.postpone(w)
	case toUsePlan:
		p := w.found
		if !p.request.asks(r) {
			break // members were added or deleted meanwhile
		}
		w.found = nil
		switch {
		case p.Reason == "":
			return p, ""
		case !p.request.inFlight || r.inFlight:
			e.giveUp(w)
			if w.late && left > 0 {
				return nil, waitingFor(left) + ", which should have gone. Evicting others does not help: " + p.Reason
			}
			return nil, "preemption does not help: " + p.Reason
		}
	}
	e.search(ctx, w, 0)
	return nil, "looking for pods to evict"
}

// search looks for victims in the background, after a pause. The lock is held.
func (e *Evictor) search(ctx context.Context, w *attempt, pause time.Duration) {
	w.searching, w.found = true, nil
	r, said := w.request, maps.Clone(w.said)
	// The cycle's context ends with it.
	ctx = context.WithoutCancel(ctx)
	time.AfterFunc(pause, func() {
		start := time.Now()
		found := e.propose(r, said)
		found.at = time.Now()
		evictionSearch.Observe(found.at.Sub(start).Seconds())
		klog.FromContext(ctx).V(3).Info("Looked for pods to evict", "for", r.name, "victims", len(found.victims), "reason",
			found.Reason, "duration", found.at.Sub(start))
		e.mu.Lock()
		w.searching, w.found = false, found
		e.mu.Unlock()
		e.again(r)
	})
}

// searchAgain rejects the proposal, because filters refuse it or, if said is nil, because it is outdated. It starts
// another search, unless too many proposals were rejected, and returns why the request waits.
func (e *Evictor) searchAgain(ctx context.Context, r *request, said findings) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	w := e.work[r.name]
	if w == nil {
		return ""
	}
	maps.Copy(w.said, said)
	pause, again := w.reject(said == nil)
	if !again || said != nil && len(said) == 0 {
		e.giveUp(w)
		return ""
	}
	e.search(ctx, w, pause)
	return "looking for other pods to evict"
}

// postpone suspends the hold until the late pods have terminated. Until then other pods may use the free capacity
// there; then the hold counts again, or replacements of the late pods would take the place first. The lock is held.
func (e *Evictor) postpone(w *attempt) { e.Holds.Postpone(w.request.id, w.awaited) }

// giveUp ends an attempt and its hold. If awaited pods are late, the attempt only begins again. The lock is held.
func (e *Evictor) giveUp(w *attempt) {
	if w.late && e.remaining(w.awaited) > 0 {
		w.said, w.rejected, w.found = findings{}, 0, nil
		return
	}
	delete(e.work, w.request.name)
	if w.landing {
		// The statuses of all nodes are large and soon outdated.
		e.begin(&request{name: w.request.name, id: w.request.id, only: w.request.only}).landing = true
	}
	e.Holds.Drop(func(o hold.Hold) bool { return o.Kind == hold.AfterEviction }, w.request.id)
}

// refuse ends the attempt for the request, and returns why.
func (e *Evictor) refuse(r *request, why string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if w := e.work[r.name]; w != nil {
		e.giveUp(w)
	}
	return why
}

// Tidy ends the attempts for gangs that do not wait anymore, for pods that have a node or are gone, and those that have
// awaited no pod for a while. It retries gangs and pods whose awaited pods are late.
func (e *Evictor) Tidy(now time.Time, waits func(gang.ID) bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(e.work)) {
		w := e.work[name]
		if r := w.request; r.only != nil && e.Members.Settled(r.only) || r.only == nil && !waits(r.id) {
			delete(e.work, name)
			continue
		}
		switch w.review(e.remaining(w.awaited), now) {
		case toGiveUp:
			if w.stock.IsZero() {
				e.giveUp(w)
			}
		case toChooseOthers:
			e.postpone(w)
			e.again(w.request)
		}
	}
}

// remaining counts the pods that still exist.
func (e *Evictor) remaining(pods []*v1.Pod) int {
	left := 0
	for _, pod := range pods {
		if e.Members.Pod(read.RefOf(pod)) != nil {
			left++
		}
	}
	return left
}

// await begins an attempt that evicts nothing and awaits the pods that terminate anyway. If there are none, the gang is
// about to start.
func (e *Evictor) await(r *request, p *proposal) {
	e.mu.Lock()
	defer e.mu.Unlock()
	w := e.begin(r)
	if !p.idle() {
		w.awaited = p.leaving
		w.await(p.leaving, time.Now())
	}
}

// podName is the name of the requests of a single pod.
func podName(namespace, name string) string { return "pod " + namespace + "/" + name }

// waitingFor is the message about awaited pods.
func waitingFor(pods int) string {
	return "waiting for " + plural.Of(pods, "pod") + " to terminate"
}

// awaited returns the node on which pods are evicted for a single pod, as long as one of them exists or did when the
// cycle began, and a message about it.
func (e *Evictor) awaited(pod *v1.Pod, nodes fwk.NodeInfoLister, now time.Time) (node, why string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, name := range []string{stockName(pod.Namespace, pod.Name), podName(pod.Namespace, pod.Name)} {
		if w := e.work[name]; w != nil && w.node != "" && w.request.only.UID == pod.UID && !w.overdue(now) &&
			(e.remaining(w.awaited) > 0 || hold.Remain(w.awaited, nodes)) {
			return w.node, "waiting for the pods that are evicted on " + w.node + " to terminate"
		}
	}
	return "", ""
}

// evict evicts the victims of the proposal in the background, a few at a time. After that a single pod goes to the
// node.
func (e *Evictor) evict(ctx context.Context, profile framework.Framework, r *request, p *proposal, node string) {
	logger := klog.FromContext(ctx)
	e.mu.Lock()
	w := e.begin(r)
	w.awaited, w.node, w.idle = p.going(), node, time.Time{}
	e.mu.Unlock()
	gangsPreempted.Add(float64(len(p.Groups)))
	logger.V(2).Info("Evicting pods", "for", r.name, "victims", len(p.victims))
	ctx = context.WithoutCancel(ctx)
	go func() {
		e.evictAll(ctx, profile, p.victims, r)
		e.mu.Lock()
		w.await(p.going(), time.Now())
		e.mu.Unlock()
		e.again(r)
	}()
}
