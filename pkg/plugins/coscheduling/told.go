package coscheduling

import (
	"sync"

	apitypes "k8s.io/apimachinery/pkg/types"
)

// told remembers pods that were told something, as long as they exist.
type told struct{ pods sync.Map }

// has reports whether the pod was told already, and counts it as told from now on.
func (t *told) has(uid apitypes.UID) bool {
	_, before := t.pods.LoadOrStore(uid, true)
	return before
}

func (t *told) forget(uid apitypes.UID) { t.pods.Delete(uid) }
