package evictor

import (
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"

	"berth.dev/berth/pkg/eviction"
	"berth.dev/berth/pkg/evictor/notices"
	"berth.dev/berth/pkg/evictor/waiting"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/plural"
	"berth.dev/berth/pkg/reservation"
)

// Notifier tells victims before they go, and what they are to go for.
type Notifier struct {
	notices.Notifier
	// calledOff are pods that were to be evicted and had notice, but need not go for that attempt any more. The evictor's
	// lock guards it.
	calledOff []reservation.AwaitedPod
}

// warning is the notice that victims of an attempt have.
type warning struct {
	// told is when they were told, and looked and written are when what they show was last looked at and written.
	told, looked, written time.Time
}

// notify gives the victims of the request their notice, if they want any, and returns what to say about it. It returns
// nothing once all of them have had it, and may be evicted. A single pod goes to the node then.
func (p *Profile) notify(r *request, victims []*v1.Pod, node string, now time.Time) string {
	e := p.evictor
	e.mu.Lock()
	defer e.mu.Unlock()
	w := e.work[r.name]
	if w != nil && w.HasNotified() && w.node == node && node != "" {
		return w.noticed()
	}
	ends := e.Notifier.End(r.name, victims, time.Time{}, now)
	if !ends.After(now) {
		return ""
	}
	w = e.begin(r, now)
	w.awaited, w.node = reservation.AwaitedPods(victims), node
	w.warning = &warning{told: now, looked: now, written: now}
	w.Notified(ends)
	e.Notifier.Tell(r.name, victims, now)
	return w.noticed()
}

// noticed says that victims have notice.
func (w *attempt) noticed() string {
	n := len(w.awaited)
	return fmt.Sprintf("%d %s of lower priority %s told to save %s work, until %s at the latest", n,
		plural.Choose(n, "pod", "pods"), plural.Choose(n, "is", "are"), plural.Choose(n, "its", "their"),
		w.Until.UTC().Format(time.RFC3339))
}

// waitingFor says how many pods are awaited.
func waitingFor(pods int) string {
	return fmt.Sprintf("waiting for %d %s to terminate", pods, plural.Choose(pods, "pod", "pods"))
}

// ended takes an attempt that has ended. What gangs have noted for the sake of the eviction is called off, unless the
// next attempt awaits the same pods. The evictor's lock is held.
func (n *Notifier) ended(w *attempt) {
	if w.warning != nil {
		n.calledOff = append(n.calledOff, w.awaited...)
	}
}

// review looks at the notice that the victims have: it ends early when they have saved their work. The evictor's lock
// is held.
func (n *Notifier) review(w *attempt, now time.Time) {
	if !w.HasNotified() || now.Sub(w.warning.looked) < waiting.LookEvery {
		return
	}
	w.warning.looked = now
	var victims []*v1.Pod
	for _, awaited := range w.awaited {
		if pod := n.Members.Pod(awaited.Ref); pod != nil {
			victims = append(victims, pod)
		}
	}
	w.Notified(n.End(w.request.name, victims, w.warning.told, now))
	if now.Sub(w.warning.written) >= notices.RewriteEvery {
		w.warning.written = now
		n.Tell(w.request.name, victims, now)
	}
}

// callOff takes back the notices that are not needed any more, and returns what gangs do then.
func (n *Notifier) callOff(e *Evictor, now time.Time, waits func(gang.ID) bool) []gang.Effects {
	if !n.Leads() {
		return nil
	}
	e.mu.Lock()
	if len(n.calledOff) == 0 && !n.Any() {
		e.mu.Unlock()
		return nil
	}
	awaited := e.Faults.moving().Union(e.Moves.moving(n.Members))
	for _, w := range e.work {
		for _, pod := range w.awaited {
			awaited.Insert(pod.UID)
		}
	}
	var effects []gang.Effects
	for _, pod := range n.calledOff {
		if !awaited.Has(pod.UID) {
			effects = append(effects, e.Ledger.Evictions.CallOff(pod.UID, now))
		}
	}
	n.calledOff = nil
	unneeded := n.Unneeded(func(uid gang.UID, told *notices.Told) bool {
		w := e.work[told.By]
		told.Ours = told.Ours || w != nil
		switch {
		case awaited.Has(uid):
			return true
		case w != nil:
			return !w.HasVictims() // it looks for pods to evict, and may choose this one again
		default:
			// An earlier scheduler gave it: the one that needs it has some time to ask again.
			most := n.Loss.Limits.Notice + eviction.Grace
			return !told.Ours && now.Before(told.Given.Add(most)) && n.stillWaits(told.By, waits)
		}
	}, now)
	e.mu.Unlock()
	n.TakeBack(unneeded)
	return effects
}

// stillWaits reports whether the gang or pod that requests name so waits for room.
func (n *Notifier) stillWaits(name string, waits func(gang.ID) bool) bool {
	if notices.IsRepair(name) {
		return true // what fails is seen again
	}
	kind, of, _ := strings.Cut(name, " ")
	namespace, object, _ := strings.Cut(of, "/")
	if kind == "gang" {
		return waits(gang.ID{Namespace: namespace, Name: object})
	}
	pod, err := n.Members.Lister.Pods(namespace).Get(object)
	return err == nil && pod.Spec.NodeName == ""
}

// notifyAlone gives notice to the pods that the scheduler's own preemption has chosen for a single pod, and returns
// what to say about it; nothing once they may go.
func (p *Profile) notifyAlone(on preemption.Candidate, by preemption.ExecutorPreemptor, now time.Time) string {
	e := p.evictor
	if e.Sources.Loss.Limits.Notice == 0 {
		return ""
	}
	var victims []*v1.Pod
	for _, pod := range on.Victims().Pods {
		if pod.DeletionTimestamp == nil {
			victims = append(victims, pod)
		}
	}
	for _, pod := range by.Pods() {
		r := &request{name: podName(pod), only: pod, of: e.Members.ID(pod), priority: by.Priority()}
		return p.notify(r, victims, on.Name(), now)
	}
	return ""
}
