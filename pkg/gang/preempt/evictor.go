package preempt

import (
	"context"
	"fmt"
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
	"berth.dev/berth/pkg/gang/work"
	"berth.dev/berth/pkg/plural"
	"berth.dev/berth/pkg/process"
)

// Evictor owns what is known of pods to be evicted for gangs, or for single pods that only a gang can make way for. The
// search runs beside the scheduling cycles, on a copy of the account of the cluster; a cycle only checks with the
// profile's filters what was found, on the few nodes that it concerns.
type Evictor struct {
	Profiles *process.Profiles
	Members  *members.Directory
	Capacity *capacity.Index
	Ledger   *gang.Ledger
	Holds    *hold.Holds
	Sources  Sources
	// Inbox has a gang or a pod tried again because a search or an eviction has ended.
	Inbox *waiting.Inbox

	mu   sync.Mutex
	work map[string]*attempt
}

// Sources know what an eviction has to respect besides gangs.
type Sources struct {
	// Owners know which members can only be evicted together.
	Owners  *status.Owners
	Budgets policylisters.PodDisruptionBudgetLister
	// Loss knows what evictions lose.
	Loss *work.Loss
}

// lookForFlight notes whether gangs of lower priority are on their way, and has the request tried again when they have
// landed: such a gang is evicted as a whole or spares some members, which it can when all are bound, and no event of
// the scheduler's queue or of the account says that they are.
func (e *Evictor) lookForFlight(r *request) {
	if r.inFlight = e.Ledger.Evictions.Beginning(r.priority); r.inFlight {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.of(r).landing = true
	}
}

// Landed has those tried again that may evict a gang whose members have been bound.
func (e *Evictor) Landed() {
	e.mu.Lock()
	defer e.mu.Unlock()
	var requests []*request
	for _, name := range slices.Sorted(maps.Keys(e.work)) {
		if w := e.work[name]; w.landing {
			w.landing = false
			requests = append(requests, w.request)
		}
	}
	for _, r := range requests {
		e.again(r)
	}
}

// again has the gang or the pod tried again.
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

// begin starts afresh for a request. The lock is held.
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

// decide says what to do for the request: evict what is returned, once it is checked, or wait for the reason given. It
// may be that no pod has to be evicted: there is room by the account, so the check shows where filters know better.
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
			break // members may have come and gone meanwhile
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

// searchAgain records that the proposal does not help, because the nodes do not take the classes even then, or because
// it was out of date, in which case said is nil. It looks for another one unless that did not help too often.
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

// postpone has the hold count again once the pods have gone that are late, whenever that is: what replaces them
// would be there first, and be evicted in turn. Until then others may use what lies idle there. The lock is held.
func (e *Evictor) postpone(w *attempt) { e.Holds.Postpone(w.request.id, w.awaited) }

// giveUp ends an attempt, and what was kept while pods were awaited. While some of them are late it only begins
// again. The lock is held.
func (e *Evictor) giveUp(w *attempt) {
	if w.late && e.remaining(w.awaited) > 0 {
		w.said, w.rejected, w.found = findings{}, 0, nil
		return
	}
	delete(e.work, w.request.name)
	if w.landing {
		// What all nodes say of a single pod is large, and soon out of date.
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

// Tidy ends the work for gangs that do not wait any more and for pods that have a node or are gone, and gives up where
// no pod has been waited for in a while. Gangs and pods are tried again that wait for pods that something holds.
func (e *Evictor) Tidy(now time.Time, waits func(gang.ID) bool) {
	var again []*request
	e.mu.Lock()
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
			again = append(again, w.request)
		}
	}
	e.mu.Unlock()
	for _, r := range again {
		e.again(r)
	}
}

// remaining counts the pods that are still there.
func (e *Evictor) remaining(pods []*v1.Pod) int {
	left := 0
	for _, pod := range pods {
		if e.Members.Pod(read.RefOf(pod)) != nil {
			left++
		}
	}
	return left
}

// await records that what the gang needs is kept for it while pods terminate that were not evicted for it. If there
// are none, it is about to start, and what is kept stays so for a while.
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

// waitingFor says how many pods are awaited.
func waitingFor(pods int) string {
	return fmt.Sprintf("waiting for %d %s to terminate", pods, plural.Choose(pods, "pod", "pods"))
}

// awaited returns the node for which pods are evicted for a single pod, as long as some of them are there, or were when
// the cycle began, and what to say about it.
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

// evict evicts the victims of the proposal in the background, a few at a time. A single pod goes to the node after
// that.
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
