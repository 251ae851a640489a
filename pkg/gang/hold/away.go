package hold

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	apitypes "k8s.io/apimachinery/pkg/types"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/waiting"
)

// TurnedAway owns who was kept off capacity that is kept for gangs, to try them again when a hold ends.
type TurnedAway struct {
	// Inbox is told of pods and gangs that were turned away for a hold that has ended.
	Inbox *waiting.Inbox
	// Backlog wakes the pods that it holds itself, once they may use what is kept.
	Backlog *waiting.Backlog

	// pods holds the pods to wake, by UID; arrivals numbers them. gangs holds the gangs whose members were turned away.
	pods     sync.Map
	arrivals atomic.Int64
	gangs    sync.Map
}

// turnedAway is a pod that was kept off capacity that is kept for a gang.
type turnedAway struct {
	ref gang.Ref
	at  int64
}

const (
	// WakeSome is how many of the pods that were turned away are tried when a pod has ended or a reservation has let go
	// of a node: more than can use what is free then, and few enough that a long queue is not tried for each of them.
	WakeSome = 16
	// WakeAll tries them all.
	WakeAll = math.MaxInt
)

func (t *TurnedAway) pod(ref gang.Ref) {
	if _, known := t.pods.Load(ref.UID); !known {
		t.pods.LoadOrStore(ref.UID, turnedAway{ref: ref, at: t.arrivals.Add(1)})
	}
}

func (t *TurnedAway) gang(id gang.ID) { t.gangs.Store(id, true) }

// Retry wakes the pods that were turned away, at most that number and those first that have not been tried for the
// longest time.
func (t *TurnedAway) Retry(most int) {
	var waiting []turnedAway
	t.pods.Range(func(uid, pod any) bool {
		if t.Backlog != nil && t.Backlog.Holds(apitypes.UID(uid.(gang.UID))) {
			t.pods.Delete(uid)
		} else {
			waiting = append(waiting, pod.(turnedAway))
		}
		return true
	})
	if len(waiting) > most {
		slices.SortFunc(waiting, func(a, b turnedAway) int { return cmp.Compare(a.at, b.at) })
		waiting = waiting[:most]
	}
	refs := make([]gang.Ref, len(waiting))
	for i, pod := range waiting {
		t.pods.Delete(pod.ref.UID)
		refs[i] = pod.ref
	}
	if len(refs) > 0 {
		t.Inbox.Activate(refs)
	}
}

// Forget drops a pod that is gone: it would stay until something is let go, and any user can make such pods.
func (t *TurnedAway) Forget(uid gang.UID) { t.pods.Delete(uid) }

// ForgetGang drops a gang that does not wait any more.
func (t *TurnedAway) ForgetGang(id gang.ID) { t.gangs.Delete(id) }

func (t *TurnedAway) retryGangs() {
	t.gangs.Range(func(id, _ any) bool {
		t.gangs.Delete(id)
		t.Inbox.Happened(waiting.Happening{Only: id.(gang.ID)})
		return true
	})
}
