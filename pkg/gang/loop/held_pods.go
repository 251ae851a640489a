package loop

import (
	"context"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	apitypes "k8s.io/apimachinery/pkg/types"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	internalqueue "k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	schedulermetrics "k8s.io/kubernetes/pkg/scheduler/metrics"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/waiting"
)

// HeldPods is the scheduling queue without the members that their gangs hold back. kube-scheduler's queue looks at each
// pod that a plugin holds back, under its lock, for each pod that is bound or ends and for each node that comes. A gang
// needs none of that: it is tried when the loop says so. With 4,096 members on 5,000 nodes, this was three tenths of
// what it costs to start them.
//
// The queue's metrics count them as gated pods. A member enters the queue when it is activated, and stays in it.
type HeldPods struct {
	internalqueue.SchedulingQueue
	// holder returns the gang that holds the pod back, the zero ID if none does. A pod that is not here may be in its
	// cycle, which goes on.
	holder func(pod *v1.Pod, here bool) gang.ID
	// backlog are pods that are tried alone, are in the queue, and that its events must not wake.
	backlog *waiting.Backlog
	// inbox is told of gangs whose members are asked for while these are held back.
	inbox *waiting.Inbox

	// entering is locked while pods are put here or leave, so that what happens to a pod reaches the queue in order. It is
	// locked before mu and the queue's lock.
	entering sync.Mutex
	mu       sync.Mutex
	pods     map[apitypes.UID]*v1.Pod
	// late are events that may help pods for which others could be evicted. What an event frees is for those first that
	// come before them, and only Next knows who does.
	late []happened
}

// NewHeldPods returns a queue that holds no pod yet. holder returns the gang that holds a pod back, the zero ID if none
// does; it is told whether the pod is here or may be in its cycle. Events do not wake the pods of the backlog.
func NewHeldPods(holder func(pod *v1.Pod, here bool) gang.ID, backlog *waiting.Backlog,
	inbox *waiting.Inbox) *HeldPods {
	return &HeldPods{holder: holder, backlog: backlog, inbox: inbox, pods: map[apitypes.UID]*v1.Pod{}}
}

// holds reports whether a gang holds back a pod that is here or comes here.
func (h *HeldPods) holds(pod *v1.Pod) bool { return h.holder(pod, true) != gang.ID{} }

// Listen takes the queue that this one stands before, and returns it with this one before it.
func (h *HeldPods) Listen(queue internalqueue.SchedulingQueue) internalqueue.SchedulingQueue {
	h.SchedulingQueue = queue
	return h
}

// See takes a change of a pod as an informer tells it. It wakes pods for which there is room on a node because a pod
// that was nominated for it has gone to another. kube-scheduler wakes them when such a pod is deleted or nominated
// elsewhere, and not when it is bound elsewhere (kubernetes/kubernetes#134859): they would wait for minutes.
func (h *HeldPods) See(old, pod *v1.Pod) {
	if h.SchedulingQueue == nil || !boundElsewhere(old, pod) {
		return
	}
	// Pods of higher priority were not turned away for it.
	priority := corev1helpers.PodPriority(old)
	concerned := func(other *v1.Pod) bool { return corev1helpers.PodPriority(other) <= priority }
	h.MoveAllToActiveOrBackoffQueue(klog.Background(), framework.EventAssignedPodDelete, old, nil, concerned)
}

// boundElsewhere reports whether the pod has got another node than the one for which it was nominated.
func boundElsewhere(old, pod *v1.Pod) bool {
	nominated := old.Status.NominatedNodeName
	return old.UID == pod.UID && old.Spec.NodeName == "" && pod.Spec.NodeName != "" && nominated != "" &&
		nominated != pod.Spec.NodeName
}

// Pod returns the pod if it is held here. PreEnqueue asks for it under the queue's lock.
func (h *HeldPods) Pod(uid apitypes.UID) *v1.Pod {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.pods[uid]
}

func (h *HeldPods) put(pod *v1.Pod) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.pods[pod.UID] == nil {
		schedulermetrics.GatedPods().Inc()
	}
	h.pods[pod.UID] = pod
}

func (h *HeldPods) take(uid apitypes.UID) *v1.Pod {
	h.mu.Lock()
	defer h.mu.Unlock()
	pod := h.pods[uid]
	if pod != nil {
		schedulermetrics.GatedPods().Dec()
	}
	delete(h.pods, uid)
	return pod
}

// all returns the pods that are held here.
func (h *HeldPods) all() []*v1.Pod {
	h.mu.Lock()
	defer h.mu.Unlock()
	pods := make([]*v1.Pod, 0, len(h.pods))
	for _, pod := range h.pods {
		pods = append(pods, pod)
	}
	return pods
}

// Add takes in a pod that is new.
func (h *HeldPods) Add(ctx context.Context, pod *v1.Pod) {
	h.entering.Lock()
	defer h.entering.Unlock()
	// The queue keeps nominations.
	if pod.Status.NominatedNodeName == "" && h.holds(pod) {
		h.put(pod)
		return
	}
	h.SchedulingQueue.Add(ctx, pod)
}

// Update takes in a change of a pod. Where the end of one was missed, the next of its name comes as a change of it.
func (h *HeldPods) Update(ctx context.Context, old, pod *v1.Pod) {
	h.entering.Lock()
	defer h.entering.Unlock()
	switch {
	case h.take(old.UID) == nil:
		h.SchedulingQueue.Update(ctx, old, pod)
	case pod.Status.NominatedNodeName == "" && h.holds(pod):
		h.put(pod)
	default:
		h.SchedulingQueue.Add(ctx, pod)
	}
}

// Delete forgets a pod.
func (h *HeldPods) Delete(logger klog.Logger, pod *v1.Pod) {
	h.entering.Lock()
	defer h.entering.Unlock()
	h.take(pod.UID)
	h.SchedulingQueue.Delete(logger, pod)
}

// AddUnschedulablePodIfNotPresent takes back a pod that was tried. kube-scheduler's queue lets another goroutine have
// the pod before it is done with it, and drops it then (https://github.com/kubernetes/kubernetes/issues/139186, in
// 1.37.2). A pod whose condition stays the same would not come back before its next change, so a dropped one is added
// again.
func (h *HeldPods) AddUnschedulablePodIfNotPresent(
	logger klog.Logger, tried *framework.QueuedPodInfo, cycle int64,
) error {
	h.entering.Lock()
	defer h.entering.Unlock()
	if err := h.SchedulingQueue.AddUnschedulablePodIfNotPresent(logger, tried, cycle); err != nil {
		return err
	}
	pod := tried.Pod
	if _, queued := h.GetPod(pod.Name, pod.Namespace, pod.Spec.SchedulingGroup); queued {
		return nil
	}
	isTried := func(other *v1.Pod) bool { return other.UID == pod.UID }
	if !slices.ContainsFunc(h.InFlightPods(), isTried) {
		h.SchedulingQueue.Add(klog.NewContext(context.Background(), logger), pod)
	}
	return nil
}

// MoveAllToActiveOrBackoffQueue wakes the pods that an event may help, but for those of the backlog. Of these, the ones
// for which others could be evicted are woken later, by wakeLate.
func (h *HeldPods) MoveAllToActiveOrBackoffQueue(logger klog.Logger, event fwk.ClusterEvent, old, current any,
	check internalqueue.PreEnqueueCheck) {
	now := happened{event, old, current, check}
	held, awake := h.backlog.Count()
	if held > 0 {
		now.check = func(pod *v1.Pod) bool {
			return !h.backlog.Holds(pod.UID) && !h.backlog.Awake(pod.UID) && (check == nil || check(pod))
		}
	}
	now.wake(logger, h.SchedulingQueue)
	if awake > 0 {
		h.mu.Lock()
		h.late = append(h.late, happened{event, old, current, check})
		h.mu.Unlock()
		h.inbox.Look()
	}
}

// wakeLate wakes the pods for which others could be evicted, by the events that there were before the backlog was last
// asked which pods to try.
func (h *HeldPods) wakeLate(logger klog.Logger, events []happened) {
	for _, e := range events {
		check := e.check
		e.check = func(pod *v1.Pod) bool { return h.backlog.Awake(pod.UID) && (check == nil || check(pod)) }
		e.wake(logger, h.SchedulingQueue)
	}
}

// takeLate returns the events that have not woken such pods yet.
func (h *HeldPods) takeLate() []happened {
	h.mu.Lock()
	defer h.mu.Unlock()
	late := h.late
	h.late = nil
	return late
}

// happened is an event as kube-scheduler's queue is told of it.
type happened struct {
	event        fwk.ClusterEvent
	old, current any
	check        internalqueue.PreEnqueueCheck
}

func (e *happened) wake(logger klog.Logger, queue internalqueue.SchedulingQueue) {
	queue.MoveAllToActiveOrBackoffQueue(logger, e.event, e.old, e.current, e.check)
}

// Activate lets the pods enter the queue. They enter it together, so that its order decides which is first: each is put
// into the queue as one that is held back, and all are let go in one step. A member that its gang holds back, here or,
// after it has led, in the queue, is not let in: who asked for it knows something that may help its gang, such as a
// license that is free now, so the gang is tried.
func (h *HeldPods) Activate(logger klog.Logger, pods map[string]*v1.Pod) {
	h.entering.Lock()
	defer h.entering.Unlock()
	ctx := klog.NewContext(context.Background(), logger)
	var enter []apitypes.UID
	for _, asked := range pods {
		pod := h.Pod(asked.UID)
		if id := h.holder(asked, pod != nil); id != (gang.ID{}) {
			h.inbox.Happened(waiting.Happening{Only: id})
		} else if pod != nil {
			h.SchedulingQueue.Add(ctx, pod)
			enter = append(enter, pod.UID)
		}
	}
	for _, uid := range enter {
		h.take(uid)
	}
	h.SchedulingQueue.Activate(logger, pods)
}

// Review activates those that are not held back any more, should that have been missed.
func (h *HeldPods) Review(logger klog.Logger) {
	pods := map[string]*v1.Pod{}
	for _, pod := range h.all() {
		if !h.holds(pod) {
			pods[pod.Namespace+"/"+pod.Name] = pod
		}
	}
	if len(pods) > 0 {
		h.Activate(logger, pods)
	}
}

// UnschedulablePods includes those that are held here.
func (h *HeldPods) UnschedulablePods() []*v1.Pod {
	return slices.Concat(h.SchedulingQueue.UnschedulablePods(), h.all())
}

// PendingPods includes those that are held here.
func (h *HeldPods) PendingPods() ([]*v1.Pod, string) {
	pods, summary := h.SchedulingQueue.PendingPods()
	return append(pods, h.all()...), summary
}
