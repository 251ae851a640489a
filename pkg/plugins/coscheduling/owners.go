package coscheduling

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/gang/status"
)

// followEnded lets the pods with the label be watched that have ended: they count towards the minimum of their gang.
// The empty label stands for all pods, which are kept only if they are members.
func (f *feed) followEnded(label string) {
	f.endsMu.Lock()
	defer f.endsMu.Unlock()
	if f.ends[label] {
		return
	}
	f.ends[label] = true
	finished := status.NewEndedInformer(f.client, label)
	f.c.members.AddFinished(finished.GetStore())
	err := finished.SetTransform(f.withoutOthers)
	if _, handleErr := finished.AddEventHandler(f.finished()); handleErr != nil {
		err = handleErr
	}
	if err != nil {
		klog.FromContext(f.ctx).Error(err, "Members that have ended are not counted", "label", label)
		return
	}
	go finished.RunWithContext(f.ctx)
}

// withoutOthers keeps of a pod that is in no gang nothing but its name.
func (f *feed) withoutOthers(obj any) (any, error) {
	pod, ok := obj.(*v1.Pod)
	if !ok || f.c.members.Has(pod) {
		return obj, nil
	}
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID,
		ResourceVersion: pod.ResourceVersion}}, nil
}

// applyOwner records what the object says about a gang of its pods. It is recorded again if the ledger has forgotten it
// with the gang's last pod.
func (f *feed) applyOwner(ctx context.Context, owner read.Owner, s read.OwnerState) {
	c, id, now := f.c, owner.Gang(), time.Now()
	for _, ref := range c.ledger.Members(id) {
		if pod := c.members.Any(ref); pod != nil && c.told.owners.Outlived(owner, pod) {
			f.disown(ref.UID)
		}
	}
	spec, why := f.ownerSpec(id, s)
	if s.Says != nil {
		// Which part of the group a member is of depends on what the group says.
		f.seeMembers(id)
	}
	c.ledger.Note(id, why)
	if why != "" || s.Minimum == 0 {
		c.effects.Apply(ctx, c.ledger.Undefine(id, gang.Owner, now))
	} else {
		c.effects.Apply(ctx, c.ledger.Define(id, gang.Owner, spec, now))
		if s.Says != nil {
			f.wakeJoining(ctx, id)
		}
	}
	// A PodGroup that was kept until now may have to go.
	c.told.status.Enqueue(id)
}

// refile looks at the pods of a native PodGroup again that may be in another gang now, because its tree is another one
// or only now it is known to have no minimum.
func (f *feed) refile(from gang.ID, podGroup string) {
	if from.Name == "" {
		for _, pod := range f.c.members.Pods() {
			if pod.Namespace == from.Namespace && read.NativeName(pod) == podGroup {
				f.refilePod(pod)
			}
		}
	}
	for _, ref := range f.c.ledger.Members(from) {
		switch pod := f.c.members.Any(ref); {
		case pod == nil || read.NativeName(pod) != podGroup:
		case f.c.members.Pod(ref) == nil:
			f.seeMember(pod)
		default:
			f.refilePod(pod)
		}
	}
}

// refilePod tells of a pod that is in another gang, which the account of free capacity notes of those with a node.
func (f *feed) refilePod(pod *v1.Pod) {
	if pod.Spec.NodeName != "" {
		f.accountPod(pod)
	} else {
		f.seePod(pod)
	}
}

// wakeJoining has the members tried again that wait to join a gang which has started: their group may be known now.
func (f *feed) wakeJoining(ctx context.Context, id gang.ID) {
	c := f.c
	var e gang.Effects
	for _, pod := range c.members.PodsOf(id) {
		if pod.Spec.NodeName == "" && c.ledger.Cycles.Standing(gang.UID(pod.UID)).Alone {
			e.Activate = append(e.Activate, read.RefOf(pod))
		}
	}
	c.effects.Apply(ctx, e)
}

// ownerSpec returns what the object asks for, or why that cannot be.
func (f *feed) ownerSpec(id gang.ID, s read.OwnerState) (gang.Spec, string) {
	pg := s.PodGroup(id)
	if s.Why != "" || pg == nil {
		return gang.Spec{Minimum: gang.Minimum{Total: s.Minimum}, UID: gang.UID(s.UID), Timeout: f.c.settings.timeout}, s.Why
	}
	spec, err := read.Spec(pg, f.c.settings.timeout)
	if err != nil {
		return gang.Spec{}, err.Error()
	}
	return spec, ""
}

// disown forgets a member that is left over from an earlier run. Nothing replaces it, so its node is not kept for
// another.
func (f *feed) disown(uid gang.UID) {
	effects := f.c.ledger.Forget(uid, time.Now())
	effects.Lost = nil
	f.c.effects.Apply(f.ctx, effects)
}
