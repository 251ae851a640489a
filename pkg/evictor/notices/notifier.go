package notices

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/pkg/scheduler/util"

	"berth.dev/berth/pkg/eviction"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gangview"
	"berth.dev/berth/pkg/members"
	"berth.dev/berth/pkg/profiles"
	"berth.dev/berth/pkg/workview"
)

// RewriteEvery is how often a notice is written that does not show in the pod.
const RewriteEvery = 10 * time.Second

// Notifier gives pods notice of their eviction and takes it back, beside the scheduling cycles.
type Notifier struct {
	Profiles *profiles.Set
	Members  *members.Directory
	Loss     *workview.Loss
	// Leads reports whether this process schedules: only then does it write.
	Leads func() bool
	notices
	requests
}

// notices own which pods have notice of their eviction. That is read from the pods alone, so that a scheduler that
// takes over goes on with what an earlier one told.
type notices struct {
	mu    sync.Mutex
	given map[gang.UID]*Told
}

// Told is the notice of one pod.
type Told struct {
	workview.Notice
	ref gang.Ref
	// Ours is set once this process has looked for pods to evict for the same gang or pod. Before, the notice is that of
	// an earlier scheduler, and the gang may yet come back.
	Ours bool
	// takenBack is when it was last taken back.
	takenBack time.Time
}

// See takes a pod as it is now.
func (n *Notifier) See(pod *v1.Pod) {
	n.notices.see(pod)
	n.requests.see(pod)
}

func (n *notices) see(pod *v1.Pod) {
	told, has := workview.NoticeOf(pod)
	n.mu.Lock()
	defer n.mu.Unlock()
	uid := gang.UID(pod.UID)
	known := n.given[uid]
	switch {
	case !has || pod.DeletionTimestamp != nil:
		delete(n.given, uid)
	case known == nil:
		if n.given == nil {
			n.given = map[gang.UID]*Told{}
		}
		n.given[uid] = &Told{Notice: told, ref: gangview.RefOf(pod)}
	default:
		known.Notice = told
	}
}

// Forget drops a pod that has ended or is gone.
func (n *notices) Forget(pod *v1.Pod) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.given, gang.UID(pod.UID))
}

// Any reports whether any pod has notice.
func (n *notices) Any() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.given) > 0
}

// asking returns those of the pods that want notice. Most pods want none, and what they lose need not be read then. One
// that terminates has nothing left to save: its responders may have evicted it early.
func (n *Notifier) asking(pods []*v1.Pod) []*v1.Pod {
	var asking []*v1.Pod
	for _, pod := range pods {
		if pod.DeletionTimestamp == nil && workview.AsksForNotice(pod, n.Members.Object(n.Members.ID(pod))) {
			asking = append(asking, pod)
		}
	}
	return asking
}

// refs are the pods that have notice.
func (n *notices) refs() []gang.Ref {
	n.mu.Lock()
	defer n.mu.Unlock()
	refs := make([]gang.Ref, 0, len(n.given))
	for _, told := range n.given {
		refs = append(refs, told.ref)
	}
	return refs
}

// IsFor reports whether the pod has notice for the sake of the gang or pod of that name. It was told that it goes, so
// it is the first to go.
func (n *notices) IsFor(name string, uid gang.UID) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	told := n.given[uid]
	return told != nil && told.By == name
}

// End returns when the victims have had their notice, not before now. Those to whom it was told at a time, if at all,
// may not show it yet.
func (n *Notifier) End(name string, victims []*v1.Pod, told, now time.Time) time.Time {
	most, asking := n.Loss.Limits, n.asking(victims)
	if most.Notice == 0 || len(asking) == 0 {
		return now
	}
	moment := n.Loss.At(now)
	all := make([]eviction.Notice, len(asking))
	for i, pod := range asking {
		given := told
		if shown := n.shown(gang.UID(pod.UID)); !shown.IsZero() {
			given = shown
		}
		all[i] = moment.Work(pod).NoticeOf(given, now, most)
	}
	return eviction.NoticesEnd(all, n.first(name, told), now, most.Notice)
}

// shown is when the pod was told by what it shows, the zero time if it shows nothing.
func (n *notices) shown(uid gang.UID) time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	if told := n.given[uid]; told != nil {
		return told.Given
	}
	return time.Time{}
}

// first is when the first pod was told for the sake of the name, by what pods show or at that time.
func (n *notices) first(name string, at time.Time) time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, told := range n.given {
		if told.By == name && (at.IsZero() || told.Given.Before(at)) {
			at = told.Given
		}
	}
	return at
}

// Tell gives notice to those of the victims that want it and do not show it, and to those of their gang, which go with
// them.
func (n *Notifier) Tell(name string, victims []*v1.Pod, now time.Time) {
	moment, longest := n.Loss.At(now), map[gang.ID]time.Duration{}
	lengths := map[gang.UID]time.Duration{}
	for _, pod := range n.asking(victims) {
		length := moment.Work(pod).NoticeOf(now, now, n.Loss.Limits).Length
		lengths[gang.UID(pod.UID)] = length
		if of := n.groupOf(pod); of != (gang.ID{}) {
			longest[of] = max(longest[of], length)
		}
	}
	var pods []*v1.Pod
	for _, pod := range victims {
		uid := gang.UID(pod.UID)
		if length, goesAlong := longest[n.groupOf(pod)]; goesAlong && lengths[uid] == 0 && pod.DeletionTimestamp == nil {
			lengths[uid] = length
		}
		if _, told := lengths[uid]; told && (n.shown(uid).IsZero() || !isTarget(pod)) {
			pods = append(pods, pod)
		}
	}
	n.Write(pods, "Giving a pod notice of its eviction failed", func(ctx context.Context, pod *v1.Pod) error {
		return n.give(ctx, name, pod, lengths[gang.UID(pod.UID)])
	})
}

// groupOf is the gang of the pod, or its group that the core of the scheduler plans; the zero ID for none.
func (n *Notifier) groupOf(pod *v1.Pod) gang.ID {
	id, native := n.Members.ID(pod), gangview.NativeName(pod)
	if id == (gang.ID{}) && native != "" {
		return gang.ID{Namespace: pod.Namespace, Name: native}
	}
	return id
}

func (n *Notifier) give(ctx context.Context, name string, pod *v1.Pod, length time.Duration) error {
	status := pod.Status.DeepCopy()
	podutil.UpdatePodCondition(status, Disruption(pod, name, "to be "))
	podutil.UpdatePodCondition(status, &v1.PodCondition{
		Type: workview.EvictionNotice, Status: v1.ConditionTrue, Reason: "Preemption", Message: name})
	news := n.shown(gang.UID(pod.UID)).IsZero()
	if err := n.patch(ctx, pod, status); err != nil {
		return err
	}
	if news {
		n.record(ctx, pod, v1.EventTypeWarning, "EvictionNotice", "Preempting",
			"To be evicted for %s in %s, or as soon as its work is saved", name, length)
	}
	return nil
}

// TakeBack takes back the notice of pods that need not go any more.
func (n *Notifier) TakeBack(refs []gang.Ref) {
	var pods []*v1.Pod
	for _, ref := range refs {
		if pod := n.Members.Pod(ref); pod != nil {
			pods = append(pods, pod)
		}
	}
	n.Write(pods, "Taking back the notice of a pod failed", func(ctx context.Context, pod *v1.Pod) error {
		told, has := workview.NoticeOf(pod)
		if !has {
			return nil
		}
		status := pod.Status.DeepCopy()
		if isTarget(pod) {
			podutil.UpdatePodCondition(status, &v1.PodCondition{Type: v1.DisruptionTarget, Status: v1.ConditionFalse,
				Reason: "NotNeeded", Message: needless(told.By)})
		}
		podutil.UpdatePodCondition(status, &v1.PodCondition{Type: workview.EvictionNotice, Status: v1.ConditionFalse,
			Reason: "NotNeeded", Message: told.By})
		if err := n.patch(ctx, pod, status); err != nil {
			return err
		}
		n.record(ctx, pod, v1.EventTypeNormal, "EvictionNoticeWithdrawn", "Preempting",
			"Not evicted: %s", needless(told.By))
		return nil
	})
}

func (n *Notifier) patch(ctx context.Context, pod *v1.Pod, status *v1.PodStatus) error {
	err := util.PatchPodStatus(ctx, n.Profiles.Any().ClientSet(), pod.Name, pod.Namespace, &pod.Status, status)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("writing conditions of pod %s: %w", klog.KObj(pod), err)
	}
	return nil
}

func (n *Notifier) record(ctx context.Context, pod *v1.Pod, kind, reason, action, note string, args ...any) {
	recorder := n.Profiles.Any().EventRecorder().WithLogger(klog.FromContext(ctx))
	recorder.Eventf(pod, nil, kind, reason, action, note, args...)
}

// evictionRequests bounds the requests in flight for one gang.
const evictionRequests = 8

// evictionRetries are the pauses between the attempts to evict a pod.
var evictionRetries = wait.Backoff{Duration: 100 * time.Millisecond, Factor: 3, Steps: 6}

// Write does something for each pod, a few at a time, beside the cycles.
func (n *Notifier) Write(pods []*v1.Pod, failed string, do func(context.Context, *v1.Pod) error) {
	if len(pods) == 0 {
		return
	}
	go ForEach(context.Background(), pods, failed, do)
}

// ForEach does something for each of the pods, a few at a time, and repeats it where it fails.
func ForEach(ctx context.Context, pods []*v1.Pod, failed string, do func(context.Context, *v1.Pod) error) {
	slots := make(chan struct{}, evictionRequests)
	var wg sync.WaitGroup
	for _, pod := range pods {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			var last error
			err := wait.ExponentialBackoffWithContext(ctx, evictionRetries, func(ctx context.Context) (bool, error) {
				last = do(ctx, pod)
				return last == nil, nil
			})
			if err != nil {
				klog.FromContext(ctx).Error(last, failed, "pod", klog.KObj(pod))
			}
		})
	}
	wg.Wait()
}

// Unneeded returns the pods with a notice that need not go any more, and notes that it is taken back.
func (n *notices) Unneeded(needed func(gang.UID, *Told) bool, now time.Time) []gang.Ref {
	n.mu.Lock()
	defer n.mu.Unlock()
	var pods []gang.Ref
	for uid, told := range n.given {
		if needed(uid, told) || now.Sub(told.takenBack) < RewriteEvery {
			continue
		}
		told.takenBack = now
		pods = append(pods, told.ref)
	}
	slices.SortFunc(pods, func(a, b gang.Ref) int { return cmp.Compare(a.UID, b.UID) })
	return pods
}
