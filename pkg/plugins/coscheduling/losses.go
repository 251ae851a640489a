package coscheduling

import (
	"context"
	"math"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/eviction"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/podgroup"
	"berth.dev/berth/pkg/wellknown"
	"berth.dev/berth/pkg/workview"
)

// newLoss returns what says which work evictions lose.
func (c *coordinator) newLoss() *workview.Loss {
	return &workview.Loss{Limits: c.settings.limits, MilliGPUs: c.milliGPUsOf,
		Gang: func(pod *v1.Pod) (metav1.Object, []*v1.Pod) {
			id := c.members.ID(pod)
			if id == (gang.ID{}) {
				return nil, nil
			}
			var members []*v1.Pod
			for _, ref := range c.ledger.Members(id) {
				if member := c.members.Pod(ref); member != nil {
					members = append(members, member)
				}
			}
			return c.members.Object(id), members
		}}
}

// Loss says what the eviction of a pod loses.
func (p *Plugin) Loss() *workview.Loss { return p.shared.loss }

// addLosses says of all victims what their eviction loses. A checkpoint of a gang is one for all of its members.
func (b *problemBuilder) addLosses() {
	if b.loss.Limits.Unsaved == 0 {
		return
	}
	members, saved := map[gang.ID][]*v1.Pod{}, map[gang.ID][]time.Time{}
	for i, pod := range b.victims {
		id := b.problem.Victims[i].Group
		members[id] = append(members[id], pod)
	}
	delete(members, gang.ID{})
	for id, pods := range members {
		saved[id] = workview.Saved(b.members.Object(id), pods)
	}
	for i, pod := range b.victims {
		v := &b.problem.Victims[i]
		of, group := saved[v.Group], b.members.Object(v.Group)
		if v.Group == (gang.ID{}) {
			of = workview.Saved(nil, []*v1.Pod{pod})
		}
		w := b.loss.Within(pod, group, of)
		v.Lost, v.Protected = w.Lost(b.now, b.loss.Limits), w.IsProtected(b.now, b.loss.Limits)
	}
}

// losing says what the eviction of the pod loses, as the end of a sentence; nothing where that does not count.
func (e *evictor) losing(pod *v1.Pod, now time.Time) string {
	if e.loss.Limits.Unsaved == 0 {
		return ""
	}
	w := e.loss.Of(pod)
	return "; it loses " + w.Describe(now, e.loss.Limits)
}

// costOf is what the eviction of a pod costs.
func (c *coordinator) costOf(pod *v1.Pod, now time.Time) eviction.Cost {
	w := c.loss.Of(pod)
	var cost eviction.Cost
	cost.Add(&eviction.Victim{Priority: corev1helpers.PodPriority(pod), Lost: w.Lost(now, c.loss.Limits),
		Protected: w.IsProtected(now, c.loss.Limits)})
	return cost
}

// doubtPod tells a running pod that has told of a checkpoint which does not count.
func (f *feed) doubtPod(old, pod *v1.Pod) {
	if pod.Spec.NodeName == "" || !toldAnother(old, pod) || !f.c.leader.Leading() {
		return
	}
	if wrong := workview.Doubtful(pod, time.Now()); wrong != nil {
		f.recorder.Eventf(pod, nil, v1.EventTypeWarning, "CheckpointIgnored", "Reading", "%s: %s", wrong.Error(),
			wrong.Effect)
	}
}

// doubtGroup does the same for a PodGroup.
func (f *feed) doubtGroup(old, pg *schedulingv1alpha1.PodGroup) {
	if !toldAnother(old, pg) || !f.c.leader.Leading() {
		return
	}
	if wrong := workview.DoubtfulGroup(pg, time.Now()); wrong != nil {
		f.recorder.Eventf(podgroup.ReferenceTo(pg), nil, v1.EventTypeWarning, "CheckpointIgnored", "Reading", "%s: %s",
			wrong.Error(), wrong.Effect)
	}
}

func toldAnother(old, obj metav1.Object) bool {
	return old.GetAnnotations()[wellknown.LastCheckpointKey] != obj.GetAnnotations()[wellknown.LastCheckpointKey]
}

// moreImportant has the scheduler's own preemption spare pods that would lose more. Between groups of the core it
// decides as ever.
func (c *coordinator) moreImportant(otherwise func(a, b preemption.Victim) bool) func(a, b preemption.Victim) bool {
	return func(a, b preemption.Victim) bool {
		if c.loss.Limits.Unsaved > 0 && a.Priority() == b.Priority() && len(a.Pods()) == 1 && len(b.Pods()) == 1 &&
			a.Type() == b.Type() {
			now := time.Now()
			order := c.costOf(a.Pods()[0].GetPod(), now).Compare(c.costOf(b.Pods()[0].GetPod(), now))
			if order != 0 {
				return order > 0
			}
		}
		return otherwise(a, b)
	}
}

// latest is the later, the later the first of the pods has started.
func latest(pods []*v1.Pod) int64 {
	first := int64(math.MaxInt64)
	for _, pod := range pods {
		first = min(first, workview.Started(pod).UnixNano())
	}
	return first
}

// OrderedScoreFuncs has the scheduler's own preemption choose the node on which the least is lost. Budgets come first,
// as in the core: it may exceed them.
func (f *fewest) OrderedScoreFuncs(_ context.Context, victims map[string]*extenderv1.Victims) []func(string) int64 {
	c := f.plugin.shared
	if c.loss.Limits.Unsaved == 0 {
		return nil
	}
	now, costs, order := time.Now(), map[string]eviction.Cost{}, make([]eviction.Cost, 0, len(victims))
	for node, of := range victims {
		var cost eviction.Cost
		for _, pod := range of.Pods {
			cost.Join(c.costOf(pod, now))
		}
		costs[node] = cost
		order = append(order, cost)
	}
	slices.SortFunc(order, eviction.Cost.Compare)
	return []func(string) int64{
		func(node string) int64 { return -victims[node].NumPDBViolations },
		func(node string) int64 {
			place, _ := slices.BinarySearchFunc(order, costs[node], eviction.Cost.Compare)
			return -int64(place)
		},
		func(node string) int64 { return latest(victims[node].Pods) },
	}
}
