package coscheduling

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gangview"
)

// followOwner lets the object be read whose controller creates the pods of a gang, and the pods of its kind be watched that have
// ended: they count towards the minimum.
func (f *feed) followOwner(owner gangview.Owner) {
	f.owners.follow(f.ctx, owner)
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
	finished := newFinishedInformer(f.client, kind.EndedLabel, 0)
	f.pods.addFinished(finished.GetStore())
	if _, err := finished.AddEventHandler(f.finished()); err != nil {
		klog.FromContext(f.ctx).Error(err, "Members that have ended are not counted", "kind", owner.Kind)
		return
	}
	go finished.RunWithContext(f.ctx)
}

// ownerSays records what the object says about a gang of its pods.
func (c *coordinator) ownerSays(ctx context.Context, owner gangview.Owner, s gangview.OwnerState) {
	id, now := owner.Gang(), time.Now()
	for _, ref := range c.ledger.Members(id) {
		if pod := c.pods.any(ref); pod != nil && c.owners.outlived(&owner, pod) {
			c.disown(ctx, ref.UID)
		}
	}
	c.ledger.Note(id, s.Why)
	if s.Why != "" || s.Minimum == 0 {
		c.carrier.carry(ctx, c.ledger.Undefine(id, gang.Owner, now))
	} else {
		spec := gang.Spec{Minimum: gang.Minimum{Total: s.Minimum}, UID: gang.UID(s.UID), Timeout: c.settings.timeout}
		c.carrier.carry(ctx, c.ledger.Define(id, gang.Owner, spec, now))
	}
	c.owners.act(id)
	// A PodGroup that was kept until now may have to go.
	c.status.mark(id)
	if s.Why != "" && s.UID != "" {
		about := &v1.ObjectReference{APIVersion: s.APIVersion, Kind: owner.Kind, Namespace: owner.Namespace, Name: owner.Name, UID: s.UID}
		c.recorder.WithLogger(klog.FromContext(ctx)).Eventf(about, nil, v1.EventTypeWarning, "GangCannotStart", "Scheduling", "%s", s.Why)
	}
}

// disown forgets a member that is left over from an earlier run. Nothing replaces it, so its node is not kept for another.
func (c *coordinator) disown(ctx context.Context, uid gang.UID) {
	effects := c.ledger.Forget(uid, time.Now())
	effects.Lost = nil
	c.carrier.carry(ctx, effects)
}
