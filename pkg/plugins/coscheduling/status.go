package coscheduling

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apitypes "k8s.io/apimachinery/pkg/types"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/informers"
	"berth.dev/berth/pkg/plural"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/profiles"
	"berth.dev/berth/pkg/retry"
)

const (
	// statusEvery is how often what changed is written: changes come in bursts. For the odd nanoseconds see
	// settlePause.
	statusEvery = 200*time.Millisecond - 37_013*time.Nanosecond
	// statusPause is the least time between two writes about one gang.
	statusPause = time.Second
	// statusDelay lets further changes come, so that one write tells what several would have; statusPatience lets a
	// gang that is on its way arrive.
	statusDelay    = time.Second
	statusPatience = 3 * time.Second
	// rewordPause is the least time between two rewordings of why a gang or its members are pending: the numbers in it
	// change with every pod that comes or goes.
	rewordPause = 3 * time.Second
	// The words of so many PodGroups and members change a second, and of so many at once after a quiet time: where many gangs wait,
	// every pod that comes or goes changes what all of them are told. The PodGroups of a thousand gangs follow one change at once.
	groupWordsASecond, groupWordsAtOnce   = 100, 1000
	memberWordsASecond, memberWordsAtOnce = 200, 200
	// tallyEvery is how often gangs are counted for the metrics.
	tallyEvery = 5 * time.Second
	// leadingEvery is how often a scheduler that has had nothing to schedule looks whether it leads.
	leadingEvery = 2 * time.Second
	// electionGrace is how long after its informers have synced a scheduler without a leader election counts as one that leads if
	// it has had no cycle.
	electionGrace = 10 * time.Second
	// incompletePause is how long members may wait for siblings to be created before they are told: most gangs are
	// created in one go.
	incompletePause = 3 * time.Second
	// waitingForGang is the reason in PodScheduled of members that wait for siblings to be created. It is not
	// Unschedulable, at which autoscalers would add nodes for a gang that cannot use them yet.
	waitingForGang = "WaitingForGang"
)

// statusWriter writes to the API what the ledger says: the status of PodGroups, PodGroups for gangs by labels alone,
// and in the members that are held back why they are pending. It runs beside the scheduling cycles and only in the
// scheduler that leads.
type statusWriter struct {
	ledger   *gang.Ledger
	groups   *podGroups
	client   clientset.Interface
	recorder events.EventRecorderLogger
	pods     *memberPods
	profiles *profiles.Set
	synced   func() bool
	// unheard reports whether the owner of the gang's members may say its minimum and has not been read.
	unheard func(gang.ID) bool
	// reserved returns what is said of the reservation of a gang, and its nodes; empty for none.
	reserved func(gang.ID) (words string, nodes []string)
	// blocked is told what is said of a gang that was planned in vain, nil for nobody.
	blocked atomic.Pointer[func(plugin string, leader *v1.Pod, why string)]
	// leading is set by the first scheduling cycle, which only the leader has, or by the leader election's own gauge.
	leading atomic.Bool

	mu    sync.Mutex
	dirty map[gang.ID]time.Time
	// wrote and reworded are when the gang's PodGroup and its members were last written.
	wrote, reworded map[gang.ID]time.Time
	// owed holds the gangs whose PodGroup has had new words that the members still lack.
	owed map[gang.ID]bool
	// twice are the pods that are in two groups.
	twice twice
	// odd holds what was said last about the members of a gang, by reason.
	odd map[gang.ID]map[string]string
	// mixed says of gangs that are on several GPU models on which.
	mixed map[gang.ID]string
	// waits holds for what each gang was said to wait.
	waits map[gang.ID]map[string]bool
	// refusals holds what keeps stand-ins from being made; troubles the namespaces to which writes fail.
	refusals standInRefusals
	troubles namespaceTroubles
	// writing holds since when gangs are being written, busy counts them by namespace.
	writing map[gang.ID]time.Time
	busy    map[string]int
	// queue holds the gangs that are due and wait for one of the writers, starts is how many may begin before the next look.
	queue  []gang.ID
	starts int
	// groupWords and memberWords limit the writes that change nothing but words.
	groupWords, memberWords flowcontrol.RateLimiter
}

func newStatusWriter() *statusWriter {
	return &statusWriter{reserved: func(gang.ID) (string, []string) { return "", nil }, unheard: func(gang.ID) bool { return false }, dirty: map[gang.ID]time.Time{}, wrote: map[gang.ID]time.Time{}, reworded: map[gang.ID]time.Time{}, owed: map[gang.ID]bool{}, odd: map[gang.ID]map[string]string{},
		writing: map[gang.ID]time.Time{}, busy: map[string]int{}, waits: map[gang.ID]map[string]bool{}, mixed: map[gang.ID]string{},
		groupWords:  flowcontrol.NewTokenBucketRateLimiter(groupWordsASecond, groupWordsAtOnce),
		memberWords: flowcontrol.NewTokenBucketRateLimiter(memberWordsASecond, memberWordsAtOnce)}
}

// mark notes that the gang may look different. It is called under the ledger's lock.
func (s *statusWriter) mark(id gang.ID) {
	s.mu.Lock()
	if _, known := s.dirty[id]; !known {
		s.dirty[id] = time.Now()
	}
	s.mu.Unlock()
}

// hurry notes that what is known of the gang has found a place to be written to.
func (s *statusWriter) hurry(id gang.ID) {
	s.mu.Lock()
	s.dirty[id] = time.Now().Add(-statusPatience)
	s.mu.Unlock()
}

func (s *statusWriter) run(ctx context.Context) {
	if !s.awaitLeading(ctx) {
		return
	}
	for _, id := range s.groups.all() {
		s.mark(id)
	}
	var tallied time.Time
	for {
		// By the clock, not by when this loop began: that is a matter of chance, and decides what one write tells.
		tick := time.NewTimer(time.Until(retry.LastMultiple(time.Now(), statusEvery).Add(statusEvery)))
		select {
		case <-ctx.Done():
			tick.Stop()
			return
		case now := <-tick.C:
			s.flush(ctx)
			if now.Sub(tallied) >= tallyEvery {
				tallied = now
				for state, n := range s.ledger.Tally() {
					gangsByState.WithLabelValues(state).Set(float64(n))
				}
			}
		}
	}
}

// awaitLeading returns when this process is the one that schedules.
func (s *statusWriter) awaitLeading(ctx context.Context) bool {
	tick := time.NewTicker(statusEvery)
	defer tick.Stop()
	var syncedAt, asked time.Time
	for {
		select {
		case <-ctx.Done():
			return false
		case now := <-tick.C:
			if !s.synced() {
				continue
			}
			if s.leading.Load() {
				return true
			}
			if syncedAt.IsZero() {
				syncedAt = now
			}
			if now.Sub(asked) < leadingEvery {
				continue
			}
			asked = now
			if elected, running := informers.Leads(); elected || (!running && now.Sub(syncedAt) > electionGrace) {
				return true
			}
		}
	}
}

// write brings the PodGroup's status and the members' conditions in line with the ledger.
func (s *statusWriter) write(ctx context.Context, id gang.ID, now time.Time) error {
	v, known := s.ledger.View(id)
	if !known {
		s.mu.Lock()
		delete(s.wrote, id)
		delete(s.reworded, id)
		delete(s.owed, id)
		delete(s.odd, id)
		delete(s.mixed, id)
		s.mu.Unlock()
		s.refusals.forget(id)
	}
	s.mu.Lock()
	reword, owed := now.Sub(s.reworded[id]) >= rewordPause, s.owed[id]
	s.mu.Unlock()
	pg := s.groups.get(id)
	reworded, later := false, s.tellWait(ctx, id, v, pg, now)
	stands, err := s.keepStandIn(ctx, id, v, pg, now)
	if err != nil {
		return err
	}
	if stands {
		s.tellOdd(ctx, id, v, pg)
		var putOff bool
		if reworded, putOff, err = s.writeGroup(ctx, id, pg, v, now, reword); err != nil {
			return err
		}
		later = later || putOff
	}
	// Members come after the PodGroups of all: there are many more of them. What they are owed does not wait for the pause again.
	toMembers := (reword || owed) && !reworded
	owed, owes := owed || reworded, false
	if v.Reason != nil && !v.Started {
		if err := s.clearNominations(ctx, id); err != nil {
			return err
		}
	}
	for ref, held := range s.ledger.Held(id) {
		pod := s.pods.pod(ref)
		if pod == nil || pod.Spec.NodeName != "" {
			continue
		}
		reason, why := waitingForGang, held.String()
		if v.Minimum.Total > 0 && v.Quorum() {
			reason = v1.PodReasonUnschedulable
		}
		_, c := podutil.GetPodCondition(&pod.Status, v1.PodScheduled)
		switch {
		case c != nil && c.Status == v1.ConditionFalse && c.Reason == reason && c.Message == why:
			continue
		case reason == v1.PodReasonUnschedulable && v.Reason == nil:
			// On its way: planned in a moment or being given a node.
			continue
		case c != nil && c.Reason == reason && (!toMembers || !s.memberWords.TryAccept()):
			later, owes = true, true
			continue
		case c == nil && reason == waitingForGang && now.Sub(pod.CreationTimestamp.Time) < incompletePause:
			later = true
			continue
		}
		if err := s.writeCondition(ctx, pod, reason, why, now); err != nil {
			return err
		}
		if ref == v.Leader && reason == v1.PodReasonUnschedulable {
			// No cycle says it in its place.
			s.recorder.WithLogger(klog.FromContext(ctx)).Eventf(pod, nil, v1.EventTypeWarning, "FailedScheduling", "Scheduling", "%s", why)
			if tell := s.blocked.Load(); tell != nil {
				(*tell)(Name, pod, why)
			}
		}
		reworded = reworded || !owed
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if reworded {
		s.reworded[id] = now
	}
	if owed && owes {
		s.owed[id] = true
	} else {
		delete(s.owed, id)
	}
	if later {
		s.dirty[id] = now
		s.wrote[id] = now
	}
	return nil
}

// tellOdd says once on the PodGroup what is odd about its members: different priorities, or a scheduler that does not
// know gangs.
func (s *statusWriter) tellOdd(ctx context.Context, id gang.ID, v gang.View, pg *schedulingv1alpha1.PodGroup) {
	odd := map[string]string{}
	if len(v.Priorities) > 0 {
		odd["MixedPriorities"] = fmt.Sprintf("members have priorities %s; the gang counts as its least, %d",
			strings.Trim(fmt.Sprint(v.Priorities), "[]"), v.Priorities[0])
	}
	if pod := s.pods.pod(v.Any); pod != nil && v.Foreign > 0 && s.profiles.Of(pod) == nil {
		odd["ForeignScheduler"] = fmt.Sprintf("%d pending %s placed by another scheduler: pod %s names the scheduler %s, which is no profile of this one",
			v.Foreign, plural.Choose(v.Foreign, "member is", "members are"), pod.Name, pod.Spec.SchedulerName)
	}
	s.mu.Lock()
	if on := s.mixed[id]; on != "" && v.Met() {
		odd["MixedModels"] = on
	}
	said := s.odd[id]
	if len(odd) == 0 {
		delete(s.odd, id)
	} else {
		s.odd[id] = odd
	}
	s.mu.Unlock()
	about := referenceTo(pg)
	for reason, text := range odd {
		if said[reason] != text {
			s.recorder.WithLogger(klog.FromContext(ctx)).Eventf(about, nil, v1.EventTypeWarning, reason, "Scheduling", "%s", text)
		}
	}
}

// writeGroup writes the PodGroup's status, and reports whether nothing but words changed and whether they are put off.
func (s *statusWriter) writeGroup(ctx context.Context, id gang.ID, pg *schedulingv1alpha1.PodGroup, v gang.View, now time.Time,
	reword bool) (reworded, later bool, err error) {
	reserved, nodes := s.reserved(id)
	status := podGroupStatus(pg, v, reserved, now)
	status.ReservedNodes = nodes
	if status.OccupiedBy == "" {
		if pod := s.pods.pod(v.Any); pod != nil {
			if owner := podview.ControllerOf(pod); owner != nil {
				status.OccupiedBy = pod.Namespace + "/" + owner.Name
			}
		}
	}
	if equality.Semantic.DeepEqual(status, pg.Status) {
		return false, false, nil
	}
	reworded = equality.Semantic.DeepEqual(wordless(status), wordless(pg.Status))
	if reworded && (!reword || !s.groupWords.TryAccept()) {
		return false, true, nil
	}
	s.mu.Lock()
	s.wrote[id] = now
	s.mu.Unlock()
	change := map[string]any{"metadata": map[string]any{"uid": pg.UID}, "status": explicit(status)}
	return reworded, false, s.groups.patch(ctx, pg, change, "status")
}

// wordless is the status without the messages of its conditions.
func wordless(s schedulingv1alpha1.PodGroupStatus) schedulingv1alpha1.PodGroupStatus {
	s.Conditions = slices.Clone(s.Conditions)
	for i := range s.Conditions {
		s.Conditions[i].Message = ""
	}
	return s
}

// explicit is the status with its zeros, which a merge patch would otherwise leave at their old values.
func explicit(s schedulingv1alpha1.PodGroupStatus) map[string]any {
	m := map[string]any{"phase": s.Phase, "scheduled": s.Scheduled, "running": s.Running, "succeeded": s.Succeeded,
		"failed": s.Failed, "roles": s.Roles, "conditions": s.Conditions, "reservedNodes": s.ReservedNodes}
	if s.OccupiedBy != "" {
		m["occupiedBy"] = s.OccupiedBy
	}
	if !s.ScheduleStartTime.IsZero() {
		m["scheduleStartTime"] = s.ScheduleStartTime
	}
	return m
}

func (s *statusWriter) writeCondition(ctx context.Context, pod *v1.Pod, reason, message string, now time.Time) error {
	condition := v1.PodCondition{Type: v1.PodScheduled, Status: v1.ConditionFalse, Reason: reason, Message: message,
		LastTransitionTime: metav1.NewTime(now.Truncate(time.Second)), ObservedGeneration: pod.Generation}
	if _, c := podutil.GetPodCondition(&pod.Status, v1.PodScheduled); c != nil && c.Status == condition.Status {
		condition.LastTransitionTime = c.LastTransitionTime
	}
	return s.patchStatus(ctx, pod, map[string]any{"conditions": []v1.PodCondition{condition}})
}

// patchStatus changes the status of a pod that may have gone or been created again in the meantime.
func (s *statusWriter) patchStatus(ctx context.Context, pod *v1.Pod, change map[string]any) error {
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID}, "status": change})
	if err != nil {
		return fmt.Errorf("encoding the status of pod %s: %w", klog.KObj(pod), err)
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	_, err = s.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, apitypes.StrategicMergePatchType, data, metav1.PatchOptions{}, "status")
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("writing the status of pod %s: %w", klog.KObj(pod), err)
	}
	return nil
}
