package gang

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// world is a naive model of the API and the scheduler around a ledger: what is true of each pod, and which pods wait in
// Permit. The properties are checked against it after every step.
type world struct {
	l   *Ledger
	now time.Time
	min int
	// truth holds every pod's state; waiting those that hold a seat and wait; going those that were let go and are not
	// bound yet; queued those that are in the queue.
	truth   map[UID]Member
	waiting map[UID]string
	going   map[UID]string
	queued  map[UID]bool
	next    int
	defined bool
}

func (w *world) apply(t *rapid.T, e Effects) {
	for _, r := range e.Activate {
		if ok, _ := w.l.Admit(r.UID); ok {
			w.queued[r.UID] = true
		}
	}
	for _, r := range e.Allow {
		node, waits := w.waiting[r.UID]
		if !waits {
			t.Fatalf("%s is let go and does not wait", r.UID)
		}
		delete(w.waiting, r.UID)
		w.going[r.UID] = node
	}
	for _, r := range e.Reject {
		if _, waits := w.waiting[r.UID]; !waits {
			t.Fatalf("%s is sent back and does not wait", r.UID)
		}
		delete(w.waiting, r.UID)
		w.apply(t, w.l.Unreserve(r.UID, w.now))
		w.queued[r.UID] = true
	}
}

func (w *world) settled() int {
	n := 0
	for _, m := range w.truth {
		if m.State == Bound || m.State == Succeeded {
			n++
		}
	}
	return n
}

func (w *world) pick(t *rapid.T, from map[UID]bool) (UID, bool) {
	var all []UID
	for i := range w.next {
		if from[uid(i)] {
			all = append(all, uid(i))
		}
	}
	if len(all) == 0 {
		return "", false
	}
	return rapid.SampledFrom(all).Draw(t, "pod"), true
}

// cycle runs the scheduling cycle of a queued pod; fits says how many seats the cluster has.
func (w *world) cycle(t *rapid.T, pod UID, fits int) {
	delete(w.queued, pod)
	turn := w.l.Turn(pod)
	node := "n-" + string(pod)
	switch turn.Kind {
	case Hold:
		return
	case Lead:
		seats := map[UID]string{}
		for _, m := range turn.Members {
			if len(seats) < fits {
				seats[m.UID] = "n-" + string(m.UID)
			}
		}
		if len(seats) < turn.Need || seats[pod] == "" {
			w.apply(t, w.l.Block(pod, "does not fit", testBackoff, w.now))
			return
		}
		e, ok := w.l.Propose(pod, seats, w.now)
		w.apply(t, e)
		if !ok {
			t.Fatalf("a plan that serves was refused: need %d, %d seats", turn.Need, len(seats))
		}
	}
	if _, ok := w.l.Reserve(pod, node, w.now); !ok {
		t.Fatalf("%s may go (%v) and cannot reserve", pod, turn.Kind)
	}
	e, wait, ok := w.l.Permit(pod, w.now)
	if !ok {
		t.Fatalf("%s lost its seat within its own cycle", pod)
	}
	if wait > 0 {
		w.waiting[pod] = node
	} else {
		w.going[pod] = node
	}
	w.apply(t, e)
}

func (w *world) observe(t *rapid.T, m Member) {
	w.truth[m.UID] = m
	w.apply(t, w.l.Observe(g1, m, w.now))
}

func (w *world) keys(m map[UID]string) map[UID]bool {
	out := map[UID]bool{}
	for k := range m {
		out[k] = true
	}
	return out
}

// step does one random thing.
func (w *world) step(t *rapid.T) {
	w.now = w.now.Add(time.Duration(rapid.IntRange(0, 5000).Draw(t, "ms")) * time.Millisecond)
	alive := map[UID]bool{}
	for u := range w.truth {
		alive[u] = true
	}
	switch rapid.IntRange(0, 10).Draw(t, "step") {
	case 0, 1:
		w.next++
		w.observe(t, pending(w.next-1))
	case 2:
		if u, ok := w.pick(t, alive); ok {
			delete(w.truth, u)
			delete(w.queued, u)
			delete(w.going, u)
			_, waited := w.waiting[u]
			delete(w.waiting, u)
			w.apply(t, w.l.Forget(u, w.now))
			if waited {
				w.apply(t, w.l.Unreserve(u, w.now))
			}
		}
	case 3, 4, 5:
		if u, ok := w.pick(t, w.queued); ok {
			w.cycle(t, u, rapid.IntRange(0, 8).Draw(t, "fits"))
		}
	case 6, 7:
		if u, ok := w.pick(t, w.keys(w.going)); ok {
			m := w.truth[u]
			m.State, m.Node = Bound, w.going[u]
			delete(w.going, u)
			w.observe(t, m)
		}
	case 8:
		if u, ok := w.pick(t, w.keys(w.going)); ok {
			delete(w.going, u)
			w.apply(t, w.l.Unreserve(u, w.now))
			if ok, _ := w.l.Admit(u); ok {
				w.queued[u] = true
			}
		}
	case 9:
		due, _ := w.l.Due(w.now, func(time.Time) bool { return true })
		for _, d := range due {
			w.apply(t, w.l.Retry(d.ID, w.now))
		}
		w.apply(t, w.l.Expire(testBackoff, w.now))
	case 10:
		w.min = rapid.IntRange(1, 6).Draw(t, "min")
		w.defined = true
		w.apply(t, w.l.Define(g1, Spec{MinMember: w.min, Created: t0, UID: "g1", Timeout: time.Minute}, w.now))
	}
}

func TestLedgerAgainstModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := &world{l: NewLedger(time.Minute, nil), now: t0, truth: map[UID]Member{}, waiting: map[UID]string{}, going: map[UID]string{}, queued: map[UID]bool{}}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			before := len(w.going)
			w.step(t)
			// Members are let go only in numbers that make the gang whole.
			if started := len(w.going) > before; started && w.defined && w.settled()+len(w.going) < w.min {
				t.Fatalf("%d members go and %d are placed, of a minimum of %d", len(w.going), w.settled(), w.min)
			}
			for u := range w.truth {
				if !w.defined && (w.waiting[u] != "" || w.going[u] != "") {
					t.Fatalf("%s holds a seat without a specification", u)
				}
			}
			v, known := w.l.View(g1)
			if known && v.Settled() != w.settled() {
				t.Fatalf("the ledger counts %d placed members, there are %d", v.Settled(), w.settled())
			}
			if known && v.Seated < len(w.waiting) {
				t.Fatalf("the ledger counts %d seats, %d members wait", v.Seated, len(w.waiting))
			}
		}
		w.drain(t)
	})
}

// drain lets time pass without further surprises: whatever can start has started then, and nobody waits for ever.
func (w *world) drain(t *rapid.T) {
	for range 200 {
		w.now = w.now.Add(time.Minute)
		for u := range w.keys(w.going) {
			m := w.truth[u]
			m.State, m.Node = Bound, w.going[u]
			delete(w.going, u)
			w.observe(t, m)
		}
		due, _ := w.l.Due(w.now, func(time.Time) bool { return true })
		for _, d := range due {
			w.apply(t, w.l.Retry(d.ID, w.now))
		}
		for u := range w.truth {
			if w.truth[u].State == Pending && w.waiting[u] == "" && !w.queued[u] {
				if ok, _ := w.l.Admit(u); ok {
					w.queued[u] = true
				}
			}
		}
		if u, ok := w.pick(t, w.queued); ok {
			w.cycle(t, u, 100)
		} else {
			w.apply(t, w.l.Expire(testBackoff, w.now))
		}
	}
	if len(w.waiting) > 0 {
		t.Fatalf("%d members wait for ever", len(w.waiting))
	}
	if w.defined && len(w.truth) >= w.min && w.settled() != len(w.truth) {
		t.Fatalf("%s: %d of %d members are placed at the end, with room for all", fmt.Sprint(w.truth), w.settled(), len(w.truth))
	}
	if (!w.defined || len(w.truth) < w.min) && len(w.queued) > 0 && w.settled() == 0 {
		t.Fatalf("%d members of an incomplete gang are in the queue", len(w.queued))
	}
}
