package invariants

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/wellknown"
)

// The labels of a gang that has no PodGroup of its own.
const (
	NameLabel         = "pod-group.scheduling.sigs.k8s.io/name"
	MinAvailableLabel = "pod-group.scheduling.sigs.k8s.io/min-available"
)

// GangOf is the gang of a pod by its labels or its Job, empty if it is in none.
func GangOf(pod *v1.Pod) string {
	if gang := pod.Labels[schedulingv1alpha1.PodGroupLabel]; gang != "" {
		return gang
	}
	if gang := pod.Labels[NameLabel]; gang != "" {
		return gang
	}
	return jobOf(pod)
}

// group drops what is known of a gang that is made, changed or deleted: it need not have started as what it is now.
func (c *Checker) group(event watch.EventType, group *unstructured.Unstructured, before runtime.Object) {
	name := group.GetName()
	if gang := cmp.Or(c.jobs[name], name); c.begun[gang] && saysStarted(group) {
		c.told[gang] = true
	}
	if old, ok := before.(*unstructured.Unstructured); ok && event != watch.Deleted &&
		old.GetGeneration() == group.GetGeneration() && minMember(old) == minMember(group) {
		return
	}
	delete(c.partial, name)
	delete(c.broken, name)
	if event == watch.Modified {
		// Bindings may be under way that were decided on before.
		c.revised[name] = time.Now()
	}
	if event == watch.Deleted {
		delete(c.groups, name)
	} else {
		c.groups[name] = group
		c.follow(name)
	}
}

func saysStarted(group *unstructured.Unstructured) bool {
	var pg schedulingv1alpha1.PodGroup
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(group.Object, &pg)
	if err != nil {
		return false
	}
	degraded := meta.FindStatusCondition(pg.Status.Conditions, schedulingv1alpha1.PodGroupDegraded)
	return meta.IsStatusConditionTrue(pg.Status.Conditions, schedulingv1alpha1.PodGroupScheduledCondition) ||
		degraded != nil && (degraded.Status == metav1.ConditionTrue ||
			degraded.Reason == schedulingv1alpha1.PodGroupMinimumRaised)
}

func minMember(group *unstructured.Unstructured) int64 {
	n, _, _ := unstructured.NestedInt64(group.Object, "spec", "minMember")
	return n
}

// started keeps since when the gang of a member that was bound is bound in part.
func (c *Checker) started(gang string, pod *v1.Pod) {
	group := c.groups[gang]
	if group == nil {
		return
	}
	if c.enough(gang, group) || c.Patience > Patience && c.sharesOrClaims(gang) {
		delete(c.partial, gang)
		return
	}
	// A gang that has lost members gets others one by one, as long as one is left that runs.
	if len(c.running(gang)) == 1 && !c.mayBeUnderWay(gang, pod) {
		c.partial[gang] = time.Now()
	}
}

// mayBeUnderWay reports whether the binding of a member may have been decided on before its gang lost another, got
// another minimum, or could lose a place that it had.
func (c *Checker) mayBeUnderWay(gang string, pod *v1.Pod) bool {
	lost, isBereft := c.bereft[gang]
	revised, isRevised := c.revised[gang]
	return isRevised && time.Since(revised) < c.UnderWay || time.Since(c.closed) < c.UnderWay ||
		isBereft && time.Since(lost) < c.UnderWay && !c.made[pod.UID].After(lost)
}

// closes notes that a node has closed. A member whose binding fails then, whose gang has begun just now, need not find
// another place.
func (c *Checker) closes() {
	c.closed = time.Now()
	for gang, since := range c.partial {
		if time.Since(since) < c.UnderWay {
			delete(c.partial, gang)
		}
	}
}

// sharesOrClaims says whether members ask for devices that cannot be kept for one whose binding failed
// (docs/internals/gangs-theory.md).
func (c *Checker) sharesOrClaims(gang string) bool {
	numbered := false
	for _, node := range c.nodes {
		numbered = numbered || node.Labels[wellknown.GPUModeKey] == sharedMode
	}
	for _, pod := range c.pods {
		asked, err := c.keys.PodGPURequest(pod)
		if GangOf(pod) == gang && (err != nil || asked.Count > 0 && numbered || len(pod.Spec.ResourceClaims) > 0) {
			return true
		}
	}
	return false
}

// Minimum is how many members have to start together, in total and of each role.
type Minimum struct {
	Total int
	Roles map[string]int
}

// RoleOf is what members of a gang are told apart by: their group within it, or their role.
func RoleOf(pod *v1.Pod) string {
	return cmp.Or(pod.Labels[wellknown.GroupKey], pod.Labels[wellknown.RoleKey])
}

// MinimumOf is what the PodGroup says. The pods of a group within it count as those of a role.
func MinimumOf(group *unstructured.Unstructured) Minimum {
	m := Minimum{Total: int(minMember(group)), Roles: map[string]int{}}
	var within []struct {
		Name         string
		Copies, Pods int
	}
	if err := json.Unmarshal([]byte(group.GetAnnotations()[wellknown.GroupsKey]), &within); err == nil {
		for _, of := range within {
			m.Total += of.Copies * of.Pods
			for i := range of.Copies {
				m.Roles[fmt.Sprintf("%s-%d", of.Name, i)] = of.Pods
			}
		}
	}
	for role := range strings.SplitSeq(group.GetAnnotations()[wellknown.MinMembersByRoleKey], ",") {
		var least int
		name, number, _ := strings.Cut(role, "=")
		if _, err := fmt.Sscan(number, &least); err == nil {
			m.Roles[name] = least
		}
	}
	return m
}

// enough says whether as many members have a node and are not on their way out, in total and of each role, as have to
// start together.
func (c *Checker) enough(gang string, group *unstructured.Unstructured) bool {
	total, roles := 0, map[string]int{}
	for _, pod := range c.pods {
		runs := pod.Spec.NodeName != "" && pod.DeletionTimestamp == nil && pod.Status.Phase != v1.PodFailed
		if GangOf(pod) == gang && (runs || pod.Status.Phase == v1.PodSucceeded) {
			total++
			roles[RoleOf(pod)]++
		}
	}
	minimum := MinimumOf(group)
	for role, least := range minimum.Roles {
		if roles[role] < least {
			return false
		}
	}
	return total >= minimum.Total
}

// breach is since when a gang has less than its minimum because of an eviction.
type breach struct {
	since time.Time
	pod   string
	// left are the members that had a node when the eviction began: those that come later are a new start.
	left []types.UID
}

// member follows a member that was bound, changed or went.
func (c *Checker) member(gang string, event watch.EventType, pod, before *v1.Pod, bound bool) {
	if event == watch.Deleted && pod.DeletionTimestamp == nil || pod.DeletionTimestamp != nil && before != nil &&
		before.DeletionTimestamp == nil ||
		podview.Finished(pod) {
		c.left(gang, Evicted(pod))
	}
	switch {
	case bound:
		c.started(gang, pod)
	case event == watch.Deleted && Evicted(pod):
		if _, known := c.broken[gang]; !known && c.begun[gang] && c.groups[gang] != nil {
			c.broken[gang] = breach{time.Now(), pod.Name, c.boundBefore(gang, c.marked[pod.UID])}
		}
	case event == watch.Deleted || podview.Finished(pod):
		delete(c.broken, gang)
	}
	c.follow(gang)
}

// left notes that a gang has lost a member, which it has as soon as the member is on its way out. Bindings that are
// under way then cannot be called back; but a scheduler that evicts a member itself knows of them.
func (c *Checker) left(gang string, evicted bool) {
	delete(c.partial, gang)
	if !evicted {
		c.bereft[gang] = time.Now()
	}
}

// boundBefore returns the members of a gang that had a node at a time and are not on their way out.
func (c *Checker) boundBefore(gang string, at time.Time) []types.UID {
	var uids []types.UID
	for uid, pod := range c.running(gang) {
		if bound, seen := c.bound[pod.UID]; !seen || bound.Before(at) {
			uids = append(uids, uid)
		}
	}
	return uids
}

// running are the members of a gang that have a node, have not finished and are not on their way out.
func (c *Checker) running(gang string) map[types.UID]*v1.Pod {
	running := map[types.UID]*v1.Pod{}
	for _, pod := range c.pods {
		if GangOf(pod) == gang && pod.Spec.NodeName != "" && pod.DeletionTimestamp == nil && !podview.Finished(pod) {
			running[pod.UID] = pod
		}
	}
	return running
}

// Evicted reports whether the scheduler evicted the pod for another one.
func Evicted(pod *v1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(condition v1.PodCondition) bool {
		return condition.Type == v1.DisruptionTarget && condition.Status == v1.ConditionTrue &&
			condition.Reason == v1.PodReasonPreemptionByScheduler
	})
}

// follow keeps which gangs have begun: until none of their members runs, unless enough for their minimum have
// succeeded.
func (c *Checker) follow(gang string) {
	group, runs := c.groups[gang], len(c.running(gang)) > 0
	switch {
	case group != nil && c.enough(gang, group):
		c.begun[gang] = true
		delete(c.broken, gang)
	case !runs:
		delete(c.begun, gang)
		delete(c.told, gang)
	}
	if !runs {
		delete(c.broken, gang)
	}
}

// Started are the gangs that have had their minimum and run; true for those whose PodGroup has said so since.
func (c *Checker) Started() map[string]bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	started := map[string]bool{}
	for gang := range c.begun {
		started[gang] = c.told[gang]
	}
	return started
}

// Tick looks for gangs that have been bound in part for too long.
func (c *Checker) Tick() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for gang, since := range c.partial {
		if time.Since(since) > c.Patience {
			c.fault(StartedInPart, "gang %s has had fewer than %d members bound for %s", gang, minMember(c.groups[gang]),
				time.Since(since))
			delete(c.partial, gang)
		}
	}
	for gang, b := range c.broken {
		running := c.running(gang)
		switch {
		case !slices.ContainsFunc(b.left, func(uid types.UID) bool { return running[uid] != nil }):
			delete(c.broken, gang)
		case time.Since(b.since) > c.Patience:
			c.fault(EvictedInPart, "gang %s has had fewer than %d members bound for %s, since %s was evicted", gang,
				minMember(c.groups[gang]), time.Since(b.since), b.pod)
			delete(c.broken, gang)
		}
	}
}

// Excuse starts the patience with gangs again: no scheduler was there. The next one need not find room where a node has
// closed.
func (c *Checker) Excuse() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for gang, since := range c.partial {
		if c.closed.Before(since) {
			c.partial[gang] = time.Now()
		} else {
			delete(c.partial, gang)
		}
	}
	for gang, b := range c.broken {
		b.since = time.Now()
		c.broken[gang] = b
	}
}
