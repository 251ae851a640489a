package coscheduling

import (
	"context"
	"errors"
	"time"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	internalqueue "k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/waiting"
	"berth.dev/berth/pkg/podview"
)

// FailureHandler is what a scheduler calls with a pod that it could not place. It is scheduler.FailureHandlerFn,
// without all that is linked with a scheduler.
type FailureHandler = func(ctx context.Context, profile framework.Framework, pod *framework.QueuedPodInfo,
	status *fwk.Status, nominating *fwk.NominatingInfo, start time.Time)

// Listen returns the queue and the handler of failures that have to take the place of the scheduler's before it runs.
// The queue is without the members that their gangs hold back. The handler lets the plugin hear what other plugins say
// when they turn a member away from the node that its plan gave it, which no extension point tells. The plugin also
// wakes pods in the queue that no event wakes. Without all that, a gang's reason says that nodes turned members away
// and not why, such pods wait for minutes, and each event costs more the more members wait.
func Listen(profiles map[string]framework.Framework, queue internalqueue.SchedulingQueue,
	handle FailureHandler) (internalqueue.SchedulingQueue, FailureHandler) {
	for _, profile := range profiles {
		if p := Of(profile); p != nil {
			queue = p.shared.held.Listen(queue)
			break
		}
	}
	for _, profile := range profiles {
		profile.SetPodActivator(queue)
	}
	return queue, func(ctx context.Context, profile framework.Framework, pod *framework.QueuedPodInfo,
		status *fwk.Status, nominating *fwk.NominatingInfo, start time.Time) {
		p := Of(profile)
		if p != nil && p.shared.keepsNomination(pod.Pod, status) {
			nominating = nil
		}
		if p != nil {
			p.shared.wait(pod.Pod, status)
		}
		// The member is back in the queue before anybody is woken.
		handle(ctx, profile, pod, status, nominating, start)
		if p != nil {
			p.shared.hear(pod.Pod, status)
		}
	}
}

// Of returns the plugin of the profile, or nil if it has none or there is no profile.
func Of(profile framework.Framework) *Plugin {
	if profile == nil {
		return nil
	}
	for _, plugin := range profile.PreEnqueuePlugins() {
		if p, ok := plugin.(*Plugin); ok {
			return p
		}
	}
	return nil
}

// keepsNomination reports whether the pod stays nominated for its node. The scheduler ends that when a pod fails after
// it was filtered. If that is an error, such as that of a plugin that has yet to hear that a victim has gone, the pod
// is tried again soon; what replaces the victims would come before it, and be evicted in turn. Members of gangs that
// have not started have holds, and other plans next time.
func (c *coordinator) keepsNomination(pod *v1.Pod, status *fwk.Status) bool {
	if pod.Status.NominatedNodeName == "" || status.Code() != fwk.Error {
		return false
	}
	id := c.members.ID(pod)
	v, _ := c.ledger.View(id)
	return id == gang.ID{} || v.Started
}

// wait has the pod wait in the backlog if it is tried alone and no node has room for it. It is noted before the API
// server is told, which takes a while: what comes free meanwhile is for who comes first.
func (c *coordinator) wait(pod *v1.Pod, status *fwk.Status) {
	id := c.members.ID(pod)
	if (id == gang.ID{} || c.ledger.Cycles.Standing(gang.UID(pod.UID)).Alone) && lacksNode(pod, status) {
		key, member := c.ledger.Cycles.Key(gang.UID(pod.UID))
		if !member {
			key = c.settings.classes.singleKey(pod)
		}
		c.backlog.Failed(pod, key)
		c.loop.List.Priorities.Raise(key)
		c.loop.Inbox.Look()
	}
}

// hear takes note of what other plugins say against the member.
func (c *coordinator) hear(pod *v1.Pod, status *fwk.Status) {
	id := c.members.ID(pod)
	if id == (gang.ID{}) {
		return
	}
	if words := saidOfNode(status); words != "" && c.ledger.RecordRejection(id, words, time.Now()) {
		c.loop.Inbox.Happened(waiting.Happening{Only: id})
	}
}

// lacksNode reports whether the pod, one that is tried alone and may go to many nodes, was turned away by the nodes'
// filters, and no pods were evicted for it before. One that was turned away as such tells another reason, which would
// go stale.
func lacksNode(pod *v1.Pod, status *fwk.Status) bool {
	var fit *framework.FitError
	return errors.As(status.AsError(), &fit) && fit.Diagnosis.PreFilterMsg == "" && fit.NumAllNodes > 0 &&
		pod.Spec.SchedulingGroup == nil && pod.Status.NominatedNodeName == "" && !podview.BelongsToNode(pod)
}

// saidOfNode returns what another plugin says against the one node to which a pod was sent, or against the pod wherever
// it goes; nothing if several nodes were looked at.
func saidOfNode(status *fwk.Status) string {
	var fit *framework.FitError
	if !errors.As(status.AsError(), &fit) {
		return ""
	}
	said := fit.Diagnosis.NodeToStatus.AbsentNodesStatus()
	switch fit.Diagnosis.NodeToStatus.Len() {
	case 0:
	case 1:
		fit.Diagnosis.NodeToStatus.ForEachExplicitNode(func(_ string, s *fwk.Status) { said = s })
	default:
		return ""
	}
	if said.Plugin() == Name {
		return ""
	}
	return said.Message()
}
