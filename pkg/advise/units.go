package advise

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/preempt"
	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/plugins/coscheduling"
	"berth.dev/berth/pkg/podview"
)

// The kinds of units.
const (
	KindPod      = "pod"
	KindPodGroup = "podgroup"
)

// unit is pending work that starts together: a gang, or one of the equal pods of a workload.
type unit struct {
	// Of several pods, the name is that of the first in the queue.
	Unit
	Priority int32
	Created  time.Time
	// Pods of the unit that wait.
	Pods []*v1.Pod
	// Needs is how many of the waiting pods have to start.
	Needs int
	// Untried says why the scheduler does not try it, and Why is the scheduler's message about it.
	Untried, Why string
	of           membership
}

// membership is what the pods of a unit have in common: the gang, or else the workload and the class of pods.
type membership struct {
	gang                             gang.ID
	namespace, kind, workload, class string
	// untried is why the scheduler does not try a pod without a gang.
	untried string
}

// ParseTarget reads pod/NAME or podgroup/NAME.
func ParseTarget(text, namespace string) (Unit, error) {
	kind, name, joined := strings.Cut(text, "/")
	if !joined || name == "" || strings.Contains(name, "/") || kind != KindPod && kind != KindPodGroup {
		return Unit{}, fmt.Errorf("%q must be %s/NAME or %s/NAME", text, KindPod, KindPodGroup)
	}
	return Unit{Kind: kind, Namespace: namespace, Name: name}, nil
}

// choose returns the unit with the name of the target or with that pod, or all units without a target.
func choose(target Unit, waiting []*unit) ([]*unit, error) {
	if target == (Unit{}) {
		return waiting, nil
	}
	for _, u := range waiting {
		if target == u.Unit || target.Kind == KindPod && target.Namespace == u.Namespace &&
			slices.ContainsFunc(u.Pods, func(p *v1.Pod) bool { return p.Name == target.Name }) {
			return []*unit{u}, nil
		}
	}
	return nil, fmt.Errorf(
		"no %s %s waits for a node in namespace %s; the scheduler starts it without help, or it does not exist",
		target.Kind, target.Name, target.Namespace)
}

// runningPod is a pod on a node.
type runningPod struct {
	*v1.Pod
	gang gang.ID
	// minimum is how many of the gang's members have to run together, 0 if that is not known.
	minimum int
	// together is set if it can only be evicted with other members.
	together bool
	// lost is the work that its eviction loses, in thousandths of a GPU minute.
	lost int64
	// fixed is why it may not move, and stuck that no other node accepts it now.
	fixed string
	stuck bool
}

// losses computes what evictions lose now, nil without Coscheduling.
func (w *world) losses() *preempt.Moment {
	for _, profile := range w.AllNodes {
		if plugin := coscheduling.Of(profile); plugin != nil {
			return plugin.Loss().At(time.Now()) // all profiles have the same
		}
	}
	return nil
}

// findUnits divides the pods of the snapshot into pending units and running pods.
func (s *search) findUnits(w *world) {
	loss := w.losses()
	waiting, bound, minimum := map[membership]*unit{}, map[gang.ID]int{}, map[gang.ID]int{}
	for _, pod := range s.pods {
		if podview.Finished(pod) {
			continue
		}
		of := runningPod{Pod: pod}
		if plugin := coscheduling.Of(w.AllNodes[pod.Spec.SchedulerName]); plugin != nil {
			of.gang, of.minimum = plugin.Gang(pod)
			of.together = plugin.Together(pod) != ""
			minimum[of.gang] = of.minimum
		}
		now := w.pod(keyOf(pod))
		if pod.Spec.NodeName != "" {
			bound[of.gang]++
			if now != nil {
				s.addRunning(w, &of, loss)
			}
			continue
		}
		s.pendingPods++
		switch {
		case pod.DeletionTimestamp != nil: // it will not start
		case w.AllNodes[pod.Spec.SchedulerName] == nil:
			s.foreign++
		case now != nil && now.Spec.NodeName != "":
			bound[of.gang]++
		default:
			s.gather(waiting, membershipOf(w, pod, of.gang), pod).note(now)
		}
	}
	for of, u := range waiting {
		slices.SortFunc(u.Pods, byAge)
		if u.Kind == KindPod {
			u.Name, u.Created = u.Pods[0].Name, u.Pods[0].CreationTimestamp.Time
		} else {
			u.findNeeds(minimum[of.gang], bound[of.gang])
		}
	}
	slices.SortFunc(s.waiting, byImportance)
}

// addRunning adds a running pod.
func (s *search) addRunning(w *world, of *runningPod, loss *preempt.Moment) {
	if loss != nil {
		of.lost = loss.Lost(of.Pod)
	}
	of.fixed = s.fixed(w, of.Pod)
	s.running[keyOf(of.Pod)] = of
	s.onNode[of.Spec.NodeName] = append(s.onNode[of.Spec.NodeName], of)
	if of.gang != (gang.ID{}) {
		s.gangs[of.gang] = append(s.gangs[of.gang], of)
	}
}

func membershipOf(w *world, pod *v1.Pod, id gang.ID) membership {
	if id != (gang.ID{}) {
		return membership{gang: id}
	}
	of := membership{namespace: pod.Namespace, class: read.Member(pod, read.Membership{}, nil, true).Class}
	if of.kind, of.workload = podview.WorkloadOf(pod); metav1.GetControllerOf(pod) == nil {
		of.kind, of.workload = "", ""
	}
	if status := w.PreEnqueue(pod); status != nil {
		of.untried = status.Message()
	}
	if of.class == "" && of.workload == "" {
		of.class = string(pod.UID) // it is unknown which other pods are equal
	}
	return of
}

// byAge orders the pods of a unit as the queue does.
func byAge(a, b *v1.Pod) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}

// gather adds a pending pod to its unit and returns the unit.
func (s *search) gather(units map[membership]*unit, of membership, pod *v1.Pod) *unit {
	u := units[of]
	if u == nil {
		u = &unit{Unit: Unit{Kind: KindPod, Namespace: pod.Namespace}, Created: pod.CreationTimestamp.Time, Needs: 1,
			Untried: of.untried, Priority: corev1helpers.PodPriority(pod), of: of}
		if id := of.gang; id != (gang.ID{}) {
			u.Unit = Unit{KindPodGroup, id.Namespace, id.Name}
		}
		units[of] = u
		s.waiting = append(s.waiting, u)
	}
	u.Priority = max(u.Priority, corev1helpers.PodPriority(pod))
	if pod.CreationTimestamp.Time.Before(u.Created) {
		u.Created = pod.CreationTimestamp.Time
	}
	u.Pods = append(u.Pods, pod)
	return u
}

// alike names the equal pods for which the unit stands, empty if there is only one.
func (u *unit) alike() string {
	if u.Kind != KindPod || len(u.Pods) == 1 {
		return ""
	}
	if u.of.workload == "" {
		return fmt.Sprintf("one of these %d equal pods ", len(u.Pods))
	}
	return fmt.Sprintf("one of these %d pods of %s %s ", len(u.Pods), u.of.kind, u.of.workload)
}

// note keeps the scheduler's message about a pod of the unit.
func (u *unit) note(now *v1.Pod) {
	if now == nil {
		return
	}
	for _, c := range now.Status.Conditions {
		if c.Type == v1.PodScheduled && c.Message != "" && u.Why == "" {
			u.Why = c.Message
		}
	}
}

// findNeeds sets how many of the pending members of a gang have to start.
func (u *unit) findNeeds(minimum, bound int) {
	u.Needs = len(u.Pods)
	if minimum > 0 {
		u.Needs = min(u.Needs, max(1, minimum-bound))
	}
	gated := 0
	for _, pod := range u.Pods {
		if len(pod.Spec.SchedulingGates) > 0 {
			gated++
		}
	}
	if len(u.Pods)-gated < u.Needs {
		u.Untried = "members have scheduling gates"
	}
}

// budget is a PodDisruptionBudget with the pods that it covers.
type budget struct {
	namespace, name string
	selector        labels.Selector
	allowed         int
}

func readBudget(pdb *policyv1.PodDisruptionBudget) budget {
	selector, err := metav1.LabelSelectorAsSelector(pdb.Spec.Selector)
	if err != nil {
		selector = labels.Everything() // it is unknown which pods it covers, so it covers all
	}
	b := budget{namespace: pdb.Namespace, name: pdb.Name, selector: selector, allowed: int(pdb.Status.DisruptionsAllowed)}
	if pdb.Status.ObservedGeneration < pdb.Generation {
		b.allowed = 0 // like the API server, wait for the controller
	}
	return b
}

func (b *budget) covers(pod *v1.Pod) bool {
	return b.namespace == pod.Namespace && b.selector.Matches(labels.Set(pod.Labels))
}

// overBudget are the pods that budgets do not allow to move together with the others.
func (s *search) overBudget(pods []*runningPod) (over []*runningPod) {
	for i := range s.budgets {
		b, moved := &s.budgets[i], 0
		for _, pod := range pods {
			if b.covers(pod.Pod) {
				if moved++; moved > b.allowed {
					over = append(over, pod)
				}
			}
		}
	}
	return over
}

// fixed says why a running pod may not move, empty if it may.
func (s *search) fixed(w *world, pod *v1.Pod) string {
	switch {
	case podview.BelongsToNode(pod):
		return "it belongs to its node"
	case metav1.GetControllerOf(pod) == nil:
		return "nothing would replace it: it has no controller"
	case pod.DeletionTimestamp != nil:
		return "it is already ending"
	case w.AllNodes[pod.Spec.SchedulerName] == nil:
		return "another scheduler places it"
	}
	if key := podview.Undisturbed(pod); key != "" {
		return "its annotation " + key + " asks not to evict it"
	}
	covered := 0
	for i := range s.budgets {
		if b := &s.budgets[i]; b.covers(pod) {
			if covered++; b.allowed < 1 {
				return fmt.Sprintf("PodDisruptionBudget %s allows %d disruptions", b.name, b.allowed)
			}
		}
	}
	if covered > 1 {
		return "several PodDisruptionBudgets cover it, which the eviction API refuses"
	}
	return ""
}
