package evictor

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
	"berth.dev/berth/pkg/eviction"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gangview"
	"berth.dev/berth/pkg/members"
	"berth.dev/berth/pkg/plural"
	"berth.dev/berth/pkg/process"
	"berth.dev/berth/pkg/reservation"
	"berth.dev/berth/pkg/workview"
)

// Evictor owns what is known of pods to be evicted for gangs, or for single pods that only a gang can make way for. The
// search runs beside the scheduling cycles, on a copy of the account of the cluster; a cycle only checks with the
// profile's filters what was found, on the few nodes that it concerns.
type Evictor struct {
	Profiles *process.Profiles
	Members  *members.Directory
	Capacity *capacity.Index
	Ledger   *gang.Ledger
	Holds    *reservation.Holds
	Sources  Sources
	// Resume and Wake have a gang or pods tried again because a search or an eviction has ended.
	Resume func(gang.ID)
	Wake   func([]gang.Ref)
	// Preempting are pods for which the scheduler's own preemption evicts others.
	Preempting Preempting
	flight     flight

	mu   sync.Mutex
	work map[string]*attempt
}

// Sources know what an eviction has to respect besides gangs.
type Sources struct {
	Native members.NativeGroups
	// Together names the members of the pod's gang that can only be evicted with it, empty for none; whole is set if
	// these are all.
	Together func(*v1.Pod) (with string, whole bool)
	Budgets  policylisters.PodDisruptionBudgetLister
	// Loss knows what evictions lose.
	Loss *workview.Loss
}

// landPause is how long after their gang's last binding those are tried again that may evict it.
const landPause = 100 * time.Millisecond

// lookForFlight notes whether gangs of lower priority are on their way, and has the request tried again when they have
// landed. Those that it needs may land between the search for pods to evict and the cycle that reads its result.
func (e *Evictor) lookForFlight(r *request) {
	if r.inFlight = e.Ledger.Evictions.Beginning(r.priority); r.inFlight {
		e.flight.add(r.beneficiary)
	}
}

// Landed has those tried again that may evict a gang whose members have been bound.
func (e *Evictor) Landed() {
	requests := e.flight.take()
	if len(requests) == 0 {
		return
	}
	// The account from which victims are chosen may hear of the last member after the ledger.
	time.AfterFunc(landPause, func() {
		for _, name := range slices.Sorted(maps.Keys(requests)) {
			e.again(requests[name])
		}
	})
}

// again has the gang or the pod tried again.
func (e *Evictor) again(r beneficiary) {
	if r.only != nil {
		e.Wake([]gang.Ref{gangview.RefOf(r.only)})
	} else {
		e.Resume(r.id)
	}
}

// attempt is the eviction for one gang or pod.
type attempt struct {
	eviction.Attempt
	request *request
	// found is the result of the search.
	found *proposal
	// said is what filters said of classes and nodes when proposals were checked.
	said findings
	// awaited are the pods that have to go: those that are being evicted for it, and others that terminate where it
	// will be placed.
	awaited []reservation.AwaitedPod
	// node is where a single pod goes when they are gone.
	node string
}

// begin starts afresh for a request. The lock is held.
func (e *Evictor) begin(r *request, now time.Time) *attempt {
	if e.work == nil {
		e.work = map[string]*attempt{}
	}
	w := &attempt{Attempt: eviction.NewAttempt(now), request: r, said: findings{}}
	e.work[r.name] = w
	return w
}

// decide says what to do for the request: evict what is returned, once it is checked, or wait for the reason given. It
// may be that no pod has to be evicted: there is room by the account, so the check shows where filters know better.
func (e *Evictor) decide(ctx context.Context, r *request, now time.Time) (*proposal, string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	w := e.work[r.name]
	if w == nil {
		w = e.begin(r, now)
	}
	pause, left := time.Duration(0), remaining(e.Members, w.awaited)
	switch w.Ask(left, now) {
	case eviction.Wait:
		return nil, waitingFor(left)
	case eviction.WaitForSearch:
		return nil, "looking for pods to evict"
	case eviction.Restart:
		w = e.begin(r, now)
	case eviction.ChooseOthers:
		e.postpone(w)
	case eviction.UsePlan:
		p := w.found
		if !p.request.asks(r) {
			break // members may have come and gone meanwhile
		}
		w.Taken()
		switch {
		case p.Outcome != eviction.NoRoom:
			return p, ""
		case !p.request.inFlight || r.inFlight:
			e.giveUp(w)
			if w.Late(left) {
				return nil, waitingFor(left) + ", which should have gone. Evicting others does not help: " + p.Reason
			}
			return nil, "preemption does not help: " + p.Reason
		}
		pause = eviction.OutdatedPause
	}
	e.search(ctx, r, w, pause)
	return nil, "looking for pods to evict"
}

// search looks for victims in the background, after a pause. The lock is held.
func (e *Evictor) search(ctx context.Context, r *request, w *attempt, pause time.Duration) {
	w.Searching()
	said := maps.Clone(w.said)
	// The cycle's context ends with it.
	ctx = context.WithoutCancel(ctx)
	time.AfterFunc(pause, func() {
		start := time.Now()
		found := e.propose(r, said)
		evictionSearch.Observe(time.Since(start).Seconds())
		klog.FromContext(ctx).V(3).Info("Looked for pods to evict", "for", r.name, "victims", len(found.victims), "reason",
			found.Reason, "duration", time.Since(start))
		e.mu.Lock()
		w.found = found
		w.Planned(time.Now())
		e.mu.Unlock()
		e.again(r.beneficiary)
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
	pause, again := w.Rejected(said == nil)
	if !again || said != nil && len(said) == 0 {
		e.giveUp(w)
		return ""
	}
	e.search(ctx, r, w, pause)
	return "looking for other pods to evict"
}

// postpone has the hold count again once the pods have gone that are late, whenever that is: what replaces them
// would be there first, and be evicted in turn. Until then others may use what lies idle there. The lock is held.
func (e *Evictor) postpone(w *attempt) { e.Holds.Postpone(w.request.id, w.awaited) }

// giveUp ends an attempt, and what was kept while pods were awaited. While some of them are late it only begins
// again. The lock is held.
func (e *Evictor) giveUp(w *attempt) {
	if w.Late(remaining(e.Members, w.awaited)) {
		w.said = findings{}
		w.GivenUp()
		return
	}
	delete(e.work, w.request.name)
	e.Holds.Drop(w.request.id, func(o reservation.Hold) bool { return o.Kind == reservation.AfterEviction })
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
	for _, r := range e.sweep(now, waits) {
		e.again(r)
	}
}

// sweep does what Tidy says, and returns what is to be tried again.
func (e *Evictor) sweep(now time.Time, waits func(gang.ID) bool) (again []beneficiary) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(e.work)) {
		w := e.work[name]
		of := w.request.beneficiary
		if of.only != nil && e.Members.Settled(of.only) || of.only == nil && !waits(of.id) {
			delete(e.work, name)
			continue
		}
		switch w.Review(remaining(e.Members, w.awaited), now) {
		case eviction.GiveUp:
			e.giveUp(w)
		case eviction.ChooseOthers:
			e.postpone(w)
			again = append(again, of)
		}
	}
	return again
}

// remaining counts the pods that are still there.
func remaining(known *members.Directory, pods []reservation.AwaitedPod) int {
	left := 0
	for _, awaited := range pods {
		if known.Pod(awaited.Ref) != nil {
			left++
		}
	}
	return left
}

// leaves reports whether the pod is on its way out. When one that is late will have gone cannot be foreseen.
func leaves(pod *v1.Pod, now time.Time) bool {
	return pod.DeletionTimestamp != nil && now.Before(pod.DeletionTimestamp.Add(eviction.Grace))
}

// await records that what the gang needs is kept for it while pods terminate that were not evicted for it. If there
// are none, it is about to start, and what is kept stays so for a while.
func (e *Evictor) await(r *request, p *proposal) {
	e.mu.Lock()
	defer e.mu.Unlock()
	w := e.begin(r, time.Now())
	if !p.idle() {
		w.awaited = reservation.AwaitedPods(p.leaving)
		w.Awaiting(p.leftBy())
	}
}

// podName is the name of the requests of a single pod.
func podName(pod *v1.Pod) string { return "pod " + pod.Namespace + "/" + pod.Name }

// awaited returns the node for which pods are evicted for a single pod, as long as some of them are there, or were when
// the cycle began, and what to say about it.
func (e *Evictor) awaited(pod *v1.Pod, nodes fwk.NodeInfoLister, now time.Time) (node, why string) {
	if node, evicted := e.Preempting.Awaited(gang.UID(pod.UID), now); e.remain(evicted, nodes) {
		return node, leaving(node)
	}
	return e.attempted(pod, nodes, now)
}

// remain reports whether some of the pods are there, or were when the cycle began.
func (e *Evictor) remain(pods []reservation.AwaitedPod, nodes fwk.NodeInfoLister) bool {
	return remaining(e.Members, pods) > 0 || reservation.Remain(pods, nodes)
}

// waitingFor says how many pods are awaited.
func waitingFor(pods int) string {
	return fmt.Sprintf("waiting for %d %s to terminate", pods, plural.Choose(pods, "pod", "pods"))
}

func leaving(node string) string {
	return "waiting for the pods that are evicted on " + node + " to terminate"
}

// attempted is what awaited says, but for the pods that the scheduler's own preemption evicts.
func (e *Evictor) attempted(pod *v1.Pod, nodes fwk.NodeInfoLister, now time.Time) (node, why string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	w := e.work[podName(pod)]
	if w == nil || w.node == "" || w.request.only.UID != pod.UID || w.Overdue(now) {
		return "", ""
	}
	if e.remain(w.awaited, nodes) {
		return w.node, leaving(w.node)
	}
	return "", ""
}

// evict evicts the victims of the proposal in the background, a few at a time. A single pod goes to the node after
// that.
func (e *Evictor) evict(ctx context.Context, profile framework.Framework, r *request, p *proposal, node string) {
	logger := klog.FromContext(ctx)
	e.mu.Lock()
	w := e.begin(r, time.Now())
	w.awaited, w.node = reservation.AwaitedPods(p.going()), node
	w.Evicting()
	grace := int64(0)
	for _, pod := range p.victims {
		if s := pod.Spec.TerminationGracePeriodSeconds; s != nil {
			grace = max(grace, *s)
		}
	}
	e.mu.Unlock()
	gangsPreempted.Add(float64(len(p.Groups)))
	logger.V(2).Info("Evicting pods", "for", r.name, "victims", len(p.victims))
	ctx = context.WithoutCancel(ctx)
	go func() {
		moment := e.Sources.Loss.At(time.Now())
		// A partial eviction frees too little, so a request that fails is repeated.
		forEach(ctx, p.victims, func(ctx context.Context, pod *v1.Pod) error {
			return evictOne(ctx, profile, pod, r, moment)
		})
		e.mu.Lock()
		gone := time.Now().Add(time.Duration(grace) * time.Second)
		if left := p.leftBy(); left.After(gone) {
			gone = left
		}
		w.Awaiting(gone)
		e.mu.Unlock()
		e.again(r.beneficiary)
	}()
}

func evictOne(ctx context.Context, profile framework.Framework, pod *v1.Pod, r *request,
	moment *workview.Moment) error {
	gone, err := remove(ctx, profile, pod, r.name)
	if gone || err != nil {
		return err
	}
	podsPreempted.Inc()
	profile.EventRecorder().WithLogger(klog.FromContext(ctx)).Eventf(pod, nil, v1.EventTypeNormal, "Preempted",
		"Preempting", "Preempted by %s on node %s%s", r.name, pod.Spec.NodeName, losing(pod, moment))
	return nil
}
