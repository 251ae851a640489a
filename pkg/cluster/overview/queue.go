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
func (b *Book) addGangs(c *Cluster, now time.Time) {
	for id, g := range b.gangs {
		shown := Gang{Namespace: id.Namespace, Name: id.Name}
		since := shown.describe(g)
		ended := shown.count(g, &since)
		if ended == len(g.members) && (ended > 0 || g.ended()) {
			continue
		}
		// One whose first members have succeeded waits if the others do.
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

// ended says whether the gang has ended by its PodGroup.
func (g *gangEntry) ended() bool {
	return g.group == nil || g.group.Status.Phase == schedulingv1alpha1.PodGroupFinished ||
		g.group.Status.Phase == schedulingv1alpha1.PodGroupFailed
}

// describe takes over what the gang's PodGroup says, and returns since when there is one.
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

// addQueue adds what has no node.
func (b *Book) addQueue(c *Cluster, now time.Time) {
	type unit struct {
		Waiting
		since time.Time
		gated bool
	}
	units := map[gang.ID]*unit{} // of gangs
	var all []*unit
	for _, p := range b.pods {
		pod := p.pod
		if pod.Spec.NodeName != "" || podview.Finished(pod) {
			continue
		}
		c.Totals.PendingPods++
		gated := len(pod.Spec.SchedulingGates) > 0
		if gated {
			c.Totals.GatedPods++
		}
		u := units[p.gang]
		if p.gang == (gang.ID{}) || u == nil {
			u = &unit{since: pod.CreationTimestamp.Time, gated: true,
				Waiting: Waiting{Namespace: pod.Namespace, Name: pod.Name, Pod: pod.Name,
					Priority: corev1helpers.PodPriority(pod), Scheduler: pod.Spec.SchedulerName}}
			if p.gang != (gang.ID{}) {
				units[p.gang] = u
				u.Namespace, u.Name, u.Gang = p.gang.Namespace, p.gang.Name, true
			}
			all = append(all, u)
		}
		u.Pods++
		u.MilliGPU += p.milli
		u.gated = u.gated && gated
		u.Priority = max(u.Priority, corev1helpers.PodPriority(pod))
		if pod.CreationTimestamp.Time.Before(u.since) {
			u.since = pod.CreationTimestamp.Time
		}
		// The first pod that has a reason speaks for its gang.
		reason := podReason(pod)
		if u.Pods == 1 || cmp.Or(compareBool(reason == "", u.Reason == ""), compareNames(pod.Name, u.Pod)) < 0 {
			u.Pod, u.Reason = pod.Name, reason
		}
		u.Nominated = cmp.Or(u.Nominated, pod.Status.NominatedNodeName)
	}
	slices.SortFunc(all, func(x, y *unit) int {
		return cmp.Or(cmp.Compare(x.Scheduler, y.Scheduler), compareBool(x.gated, y.gated),
			-cmp.Compare(x.Priority, y.Priority), x.since.Compare(y.since),
			cmp.Compare(x.Namespace, y.Namespace), compareNames(x.Name, y.Name), compareBool(x.Gang, y.Gang))
	})
	position := map[string]int{}
	for _, u := range all {
		if u.Gang {
			if g := b.gangs[gang.ID{Namespace: u.Namespace, Name: u.Name}]; g.group != nil {
				u.Reason = cmp.Or(reasonOf(g.group), u.Reason)
			}
		}
		if !u.gated {
			position[u.Scheduler]++
			u.Position = position[u.Scheduler]
		}
		u.WaitSeconds = max(0, now.Sub(u.since).Seconds())
		c.Queue = append(c.Queue, u.Waiting)
	}
}

// podReason is why the pod has no node, as the scheduler has said last.
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

// mostText is how many characters of a message are shown.
const mostText = 2000

// plainText is a message without what would steer a terminal: anybody who may write a status or an event can put that
// in.
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
