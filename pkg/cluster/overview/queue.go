package overview

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/podview"
)

// addGangs adds the gangs that have not ended.
func (s *snapshot) addGangs(c *Cluster, now time.Time) {
	for id, g := range s.gangs {
		shown := Gang{Namespace: id.Namespace, Name: id.Name}
		since := shown.describe(g)
		ended := shown.count(g, &since)
		if ended == len(g.members) && (ended > 0 || g.ended()) {
			continue
		}
		// A gang has not started while members wait, even if the first ones have succeeded.
		shown.Started = shown.Scheduled >= shown.MinMember && (shown.Nodes > 0 || shown.Scheduled == shown.Members)
		if !shown.Started {
			shown.WaitSeconds = max(0, now.Sub(since).Seconds())
			c.Totals.PendingGangs++
		} else if shown.Scheduled == shown.Members {
			shown.Reason, shown.Reserved = "", ""
		}
		c.Gangs = append(c.Gangs, shown)
	}
	slices.SortFunc(c.Gangs, func(x, y Gang) int {
		return cmp.Or(compareBool(x.Started, y.Started), -cmp.Compare(x.Priority, y.Priority),
			-cmp.Compare(x.WaitSeconds, y.WaitSeconds),
			cmp.Compare(x.Namespace, y.Namespace), compareNames(x.Name, y.Name))
	})
}

// ended reports whether the PodGroup, if there is one, says that the gang has ended.
func (g *gangEntry) ended() bool {
	return g.group == nil || g.group.Status.Phase == schedulingv1alpha1.PodGroupFinished ||
		g.group.Status.Phase == schedulingv1alpha1.PodGroupFailed
}

// describe reads the gang's PodGroup, and returns when it was created; the zero time without one.
func (shown *Gang) describe(g *gangEntry) (since time.Time) {
	shown.MinMember = 1
	if g.group == nil {
		return time.Time{}
	}
	shown.MinMember = max(1, int(g.group.Spec.MinMember))
	if spec, err := read.Spec(g.group, 0); err == nil {
		shown.MinMember = spec.Minimum.Total
		if spec.Minimum.Tree != nil {
			shown.Groups = plainText(spec.Minimum.Tree.String())
		}
	}
	shown.Phase, shown.Reason = string(g.group.Status.Phase), reasonOf(g.group)
	reserved := meta.FindStatusCondition(g.group.Status.Conditions, schedulingv1alpha1.PodGroupReserved)
	if reserved != nil && reserved.Status == metav1.ConditionTrue {
		shown.Reserved = plainText(reserved.Message)
	}
	shown.Late = plainText(read.Late(g.group))
	return g.group.CreationTimestamp.Time
}

// count counts the members, and returns how many have ended.
func (shown *Gang) count(g *gangEntry, since *time.Time) (ended int) {
	nodes := map[string]bool{}
	for _, m := range g.members {
		pod := m.pod
		shown.Members++
		shown.MilliGPU += m.milli
		shown.Priority = max(shown.Priority, corev1helpers.PodPriority(pod))
		shown.MinMember = max(shown.MinMember, m.minimum)
		switch pod.Status.Phase {
		case v1.PodSucceeded:
			shown.Scheduled++
			ended++
			continue
		case v1.PodFailed:
			shown.Members--
			ended++
			continue
		}
		if since.IsZero() || pod.CreationTimestamp.Time.Before(*since) {
			*since = pod.CreationTimestamp.Time
		}
		if pod.Spec.NodeName != "" {
			shown.Scheduled++
			nodes[pod.Spec.NodeName] = true
		}
		if pod.Status.Phase == v1.PodRunning {
			shown.Running++
		}
	}
	shown.Nodes = len(nodes)
	return ended
}

func reasonOf(pg *schedulingv1alpha1.PodGroup) string {
	for _, kind := range []string{schedulingv1alpha1.PodGroupScheduledCondition, schedulingv1alpha1.PodGroupQuorum} {
		if c := meta.FindStatusCondition(pg.Status.Conditions, kind); c != nil && c.Status != "True" && c.Message != "" {
			return plainText(c.Message)
		}
	}
	return ""
}

// queued is an entry of the queue while it is put together.
type queued struct {
	Waiting
	since time.Time
	gated bool
}

// addQueue adds the pods and gangs without a node.
func (s *snapshot) addQueue(c *Cluster, now time.Time) {
	gangs := map[gang.ID]*queued{}
	var all []*queued
	for _, p := range s.pods {
		if p.pod.Spec.NodeName != "" || podview.Finished(p.pod) {
			continue
		}
		c.Totals.PendingPods++
		if len(p.pod.Spec.SchedulingGates) > 0 {
			c.Totals.GatedPods++
		}
		q := gangs[p.gang]
		if q == nil {
			q = newQueued(p)
			all = append(all, q)
			if q.Gang {
				gangs[p.gang] = q
			}
		}
		q.add(p)
	}
	slices.SortFunc(all, func(x, y *queued) int {
		return cmp.Or(cmp.Compare(x.Scheduler, y.Scheduler), compareBool(x.gated, y.gated),
			-cmp.Compare(x.Priority, y.Priority), x.since.Compare(y.since),
			cmp.Compare(x.Namespace, y.Namespace), compareNames(x.Name, y.Name), compareBool(x.Gang, y.Gang))
	})
	position := map[string]int{}
	for _, q := range all {
		if q.Gang {
			if g := s.gangs[gang.ID{Namespace: q.Namespace, Name: q.Name}]; g.group != nil {
				q.Reason = cmp.Or(reasonOf(g.group), q.Reason)
			}
		}
		if !q.gated {
			position[q.Scheduler]++
			q.Position = position[q.Scheduler]
		}
		q.WaitSeconds = max(0, now.Sub(q.since).Seconds())
		c.Queue = append(c.Queue, q.Waiting)
	}
}

// newQueued is the entry of a pod, or of its gang, before any pod is counted.
func newQueued(p *podEntry) *queued {
	pod := p.pod
	q := &queued{since: pod.CreationTimestamp.Time, gated: true, Waiting: Waiting{Namespace: pod.Namespace,
		Name: pod.Name, Priority: corev1helpers.PodPriority(pod), Scheduler: pod.Spec.SchedulerName}}
	if p.gang != (gang.ID{}) {
		q.Namespace, q.Name, q.Gang = p.gang.Namespace, p.gang.Name, true
	}
	return q
}

// add counts a pod. The first pod by name that has a reason gives the reason of its gang.
func (q *queued) add(p *podEntry) {
	pod := p.pod
	q.Pods++
	q.MilliGPU += p.milli
	q.gated = q.gated && len(pod.Spec.SchedulingGates) > 0
	q.Priority = max(q.Priority, corev1helpers.PodPriority(pod))
	if pod.CreationTimestamp.Time.Before(q.since) {
		q.since = pod.CreationTimestamp.Time
	}
	reason := podReason(pod)
	if q.Pods == 1 || cmp.Or(compareBool(reason == "", q.Reason == ""), compareNames(pod.Name, q.Pod)) < 0 {
		q.Pod, q.Reason = pod.Name, reason
	}
	q.Nominated = cmp.Or(q.Nominated, pod.Status.NominatedNodeName)
}

// podReason is the scheduler's latest reason why the pod has no node.
func podReason(pod *v1.Pod) string {
	if gates := pod.Spec.SchedulingGates; len(gates) > 0 {
		names := make([]string, len(gates))
		for i := range gates {
			names[i] = gates[i].Name
		}
		return "held back by scheduling gates: " + strings.Join(names, ", ")
	}
	if _, c := podutil.GetPodCondition(&pod.Status, v1.PodScheduled); c != nil && c.Status == v1.ConditionFalse {
		return plainText(c.Message)
	}
	return ""
}

// mostText is the number of characters of a message that are shown.
const mostText = 2000

// plainText removes the control sequences of terminals from a message: every user who may write a status or an event
// can add them.
func plainText(message string) string {
	runes := []rune(strings.Join(strings.FieldsFunc(message,
		func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }), " "))
	if len(runes) > mostText {
		return string(runes[:mostText]) + "…"
	}
	return string(runes)
}

func compareBool(x, y bool) int {
	switch {
	case x == y:
		return 0
	case x:
		return 1
	}
	return -1
}
