package hold

import (
	"sync"

	apitypes "k8s.io/apimachinery/pkg/types"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/waiting"
)

// TurnedAway owns who was kept off capacity that is kept to gangs, to try them again when a hold ends.
type TurnedAway struct {
	// Inbox is told of pods and gangs that were turned away for a hold that has ended.
	Inbox *waiting.Inbox
	// Backlog wakes the pods that it holds itself, once they may use what is kept.
	Backlog *waiting.Backlog

	// pods holds the pods to wake by UID, gangs the gangs whose members were turned away.
	pods  sync.Map
	gangs sync.Map
}

func (t *TurnedAway) pod(ref gang.Ref) { t.pods.LoadOrStore(ref.UID, ref) }

func (t *TurnedAway) gang(id gang.ID) { t.gangs.Store(id, true) }

// Retry wakes the pods that were turned away.
func (t *TurnedAway) Retry() {
	var refs []gang.Ref
	t.pods.Range(func(uid, pod any) bool {
		t.pods.Delete(uid)
		if ref := pod.(gang.Ref); t.Backlog == nil || !t.Backlog.Holds(apitypes.UID(ref.UID)) {
			refs = append(refs, ref)
		}
		return true
	})
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
