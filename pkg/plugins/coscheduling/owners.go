package coscheduling

import (
	"context"
	"time"

	"k8s.io/klog/v2"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gangview"
	"berth.dev/berth/pkg/podgroup"
)

// followOwner lets the object be read whose controller creates the pods of a gang, and the pods of its kind be watched
// that have ended: they count towards the minimum. What holds for the gang is recorded again if the ledger has
// forgotten it with its last pod.
func (f *feed) followOwner(owner gangview.Owner, again bool) {
	f.c.owners.Follow(f.ctx, owner, again)
	kind, known := gangview.OwnerKindOf(owner.Kind)
	if !known || kind.EndedLabel == "" {
		return
	}
	f.endsMu.Lock()
	defer f.endsMu.Unlock()
	if f.ends[kind.EndedLabel] {
		return
	}
	f.ends[kind.EndedLabel] = true
	finished := podgroup.NewEndedInformer(f.client, kind.EndedLabel, 0)
	f.c.pods.addFinished(finished.GetStore())
	if _, err := finished.AddEventHandler(f.finished()); err != nil {
		klog.FromContext(f.ctx).Error(err, "Members that have ended are not counted", "kind", owner.Kind)
		return
	}
	go finished.RunWithContext(f.ctx)
}

// applyOwner records what the object says about a gang of its pods.
func (c *coordinator) applyOwner(ctx context.Context, owner gangview.Owner, s gangview.OwnerState) {
	id, now := owner.Gang(), time.Now()
	for _, ref := range c.ledger.Members(id) {
		if pod := c.pods.any(ref); pod != nil && c.owners.Outlived(owner, pod) {
			c.disown(ctx, ref.UID)
		}
	}
	c.ledger.Note(id, s.Why)
	if s.Why != "" || s.Minimum == 0 {
		c.effects.apply(ctx, c.ledger.Undefine(id, gang.Owner, now))
	} else {
		spec := gang.Spec{Minimum: gang.Minimum{Total: s.Minimum}, UID: gang.UID(s.UID), Timeout: c.settings.timeout}
		c.effects.apply(ctx, c.ledger.Define(id, gang.Owner, spec, now))
	}
	// A PodGroup that was kept until now may have to go.
	c.status.Enqueue(id)
}

// disown forgets a member that is left over from an earlier run. Nothing replaces it, so its node is not kept for
// another.
func (c *coordinator) disown(ctx context.Context, uid gang.UID) {
	effects := c.ledger.Forget(uid, time.Now())
	effects.Lost = nil
	c.effects.apply(ctx, effects)
}
