package coscheduling

import (
	"math"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/podview"
)

// refresh brings what is known of waiting gangs in line with the ledger, and returns those that nothing has kept from starting
// yet.
func (w *waker) refresh(now time.Time) []*waitingGang {
	w.mu.Lock()
	dirty := w.dirty
	w.dirty = map[gang.ID]bool{}
	w.mu.Unlock()
	w.lookAt = time.Time{}
	var fresh []*waitingGang
	for id := range dirty {
		known := w.waiting[id]
		if known != nil && now.Before(known.restUntil) {
			w.later(id, known.restUntil)
			if at, paused := w.plans.goesOn(id); paused {
				w.rounds.Wait(id, known.Key, at, now)
				w.rounds.Touch(id, now)
			}
			continue
		}
		waits, ok := w.ledger.Waiting(id)
		if !ok {
			v, exists := w.ledger.View(id)
			if known != nil && (!exists || v.Started || !v.Quorum()) {
				w.drop(known, exists && v.Started, now)
			}
			if !exists || v.Started || !v.Quorum() {
				w.plans.drop(id)
			}
			if !exists {
				w.owners.drop(id)
				w.words.forget(id)
			}
			continue
		}
		g := w.describe(waits)
		g.restUntil = now.Add(time.Duration(max(len(g.Classes)-manyClasses, 0)) * describeRest)
		if known != nil {
			w.unindex(known)
			g.ruledOut, g.listed, g.worded = known.ruledOut, known.listed, known.worded
		}
		w.waiting[id] = g
		for _, s := range g.shapes {
			if w.byShape[s.shape] == nil {
				w.byShape[s.shape] = map[gang.ID]bool{}
			}
			w.byShape[s.shape][id] = true
		}
		switch {
		case known != nil && known.pause.until.Equal(g.RetryAt):
			g.pause = known.pause
		case g.RetryAt.After(now):
			g.pause = pause{since: now, until: g.RetryAt, misjudged: w.roomy(g)}
		}
		if g.pause.relieved {
			g.RetryAt = now
		}
		if g.Fresh && !g.RetryAt.After(now) {
			fresh = append(fresh, g)
			continue
		}
		w.rounds.Wait(id, g.Key, g.RetryAt, now)
		if g.Fresh || g.Touched {
			w.rounds.Touch(id, now)
		}
	}
	if len(dirty) > 0 {
		w.chooseArrivals()
	}
	return fresh
}

// chooseArrivals finds out whether a gang waits to which it matters that pods come to nodes.
func (w *waker) chooseArrivals() {
	selective := false
	for _, g := range w.waiting {
		selective = selective || !g.near.empty()
	}
	w.mu.Lock()
	w.selective = selective
	w.mu.Unlock()
}

// relieve ends the pause of the gang that comes first of those that fit into what came free. Pauses are there for gangs that are tried in
// vain again and again, not for others to overtake one whose room has come. A gang that fitted by the account when it was last tried, in
// vain, is relieved only after the shortest pause: what keeps it from starting may be unknown to the account.
func (w *waker) relieve(gained []shapeKey, now time.Time) {
	var paused []*waitingGang
	for _, shape := range gained {
		for id := range w.byShape[shape] {
			g := w.waiting[id]
			if g.RetryAt.After(now) && (!g.pause.misjudged || now.Sub(g.pause.since) >= w.settings.backoff.Initial) {
				paused = append(paused, g)
			}
		}
	}
	slices.SortFunc(paused, firstByKey)
	for _, g := range paused[:min(len(paused), retryAtOnce)] {
		if w.roomy(g) {
			g.pause.relieved, g.RetryAt = true, now
			w.rounds.Wait(g.ID, g.Key, now, now)
			return
		}
	}
}

// later has the gang looked at again at that time.
func (w *waker) later(id gang.ID, at time.Time) {
	w.mu.Lock()
	w.dirty[id] = true
	w.mu.Unlock()
	if w.lookAt.IsZero() || at.Before(w.lookAt) {
		w.lookAt = at
	}
}

// describe finds out what the gang needs.
func (w *waker) describe(waits gang.Waiting) *waitingGang {
	g := &waitingGang{Waiting: waits, needs: needsAnything}
	if w.headroom.anyBelow(waits.Key.Priority) {
		g.needs |= needsEvictions
	}
	for _, c := range waits.Classes {
		pod := w.pods.pod(c.Example)
		g.pods = append(g.pods, pod)
		if pod == nil {
			continue
		}
		g.shapes = append(g.shapes, shapeNeed{shape: w.headroom.acquire(pod), count: c.Count})
		g.needs |= w.needsOf(pod)
		g.near.add(pod)
		levels, err := w.topology(waits.ID, pod)
		if err != nil {
			g.misstated = gang.Told(err.Error())
		}
		g.required = levels.Required
	}
	return g
}

func (w *waker) needsOf(pod *v1.Pod) needs {
	var n needs
	profile := w.profiles.of(pod)
	if hasVolumes(pod) {
		n |= needsVolumes
	}
	if profile != nil && claimsDevices(profile, pod) {
		n |= needsDevices
	}
	if profile != nil && (orderMatters(profile, pod) || podview.HasHostPorts(pod)) {
		n |= needsPods
	}
	return n
}

func (w *waker) unindex(g *waitingGang) {
	for _, s := range g.shapes {
		if delete(w.byShape[s.shape], g.ID); len(w.byShape[s.shape]) == 0 {
			delete(w.byShape, s.shape)
		}
		w.headroom.release(s.shape)
	}
}

func (w *waker) drop(g *waitingGang, started bool, now time.Time) {
	w.unindex(g)
	w.promises.forgetGang(g.ID)
	delete(w.waiting, g.ID)
	w.rounds.Drop(g.ID)
	if id, _ := w.reservations.turns.Current(); id == g.ID {
		if w.promises.harmed.Swap(false) {
			w.reservations.turns.Harm()
		}
		w.unreserve(id)
	}
	w.reservations.turns.Forget(g.ID, started, now)
}

// highest returns the highest priority of the gangs that wait, but for those that are ordered by when they are due.
func (w *waker) highest() int64 {
	most := int64(math.MinInt64)
	for _, g := range w.waiting {
		if !g.Key.Ages {
			most = max(most, int64(g.Key.Priority))
		}
	}
	return most
}

// comeBefore reports whether a gang waits that is more important than the pod, which has waited for room. What wakes such a pod wakes it at
// once; gangs are looked at some milliseconds later, and would have it evicted again. A pod that fails after it was filtered loses its
// nomination, so one for which others were evicted is let through: what replaces those would come before it, without end.
func (w *waker) comeBefore(pod *v1.Pod) bool {
	if int64(corev1helpers.PodPriority(pod)) >= w.most.Load() || pod.Status.NominatedNodeName != "" || w.members.has(pod) || podview.BelongsToNode(pod) {
		return false
	}
	_, scheduled := podutil.GetPodCondition(&pod.Status, v1.PodScheduled)
	return scheduled != nil && scheduled.Status == v1.ConditionFalse
}
