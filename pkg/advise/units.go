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
	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/gang/work"
	"berth.dev/berth/pkg/plugins/coscheduling"
	"berth.dev/berth/pkg/podview"
)

// The kinds of units.
const (
	KindPod      = "pod"
	KindPodGroup = "podgroup"
)

// unit is what waits and starts together: a gang, or one of the pods of a workload that are placed alike.
type unit struct {
	// Of several pods, the name is that of the first in the queue.
	Unit
	Priority int32
	Created  time.Time
	// Pods of the unit that wait.
	Pods []*v1.Pod
	// Needs is how many of the waiting pods have to start.
	Needs int
	// Held says why the scheduler does not even try it, and Why what the scheduler said of it.
	Held, Why string
	of        membership
}

// membership is what the pods of a unit have in common: the gang, or else the workload and all that places them.
type membership struct {
	gang                             gang.ID
	namespace, kind, workload, class string
	// held is why the scheduler does not try a pod that is in no gang.
	held string
}

// ParseTarget reads pod/NAME or podgroup/NAME.
func ParseTarget(text, namespace string) (Unit, error) {
	kind, name, joined := strings.Cut(text, "/")
	if !joined || name == "" || strings.Contains(name, "/") || kind != KindPod && kind != KindPodGroup {
		return Unit{}, fmt.Errorf("%q must be %s/NAME or %s/NAME", text, KindPod, KindPodGroup)
	}
	return Unit{Kind: kind, Namespace: namespace, Name: name}, nil
}

// choose returns what is asked about of that which waits: the unit of that name or the one that has the pod, or all.
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
	// lost is what its eviction loses, in thousandths of a GPU minute.
	lost int64
	// fixed says why it never moves, and stuck that no other node accepts it now.
	fixed string
	stuck bool
}

// losses are what evictions lose now, nil if no profile counts that.
func (w *world) losses() *work.Moment {
	for _, profile := range w.AllNodes {
		if plugin := coscheduling.Of(profile); plugin != nil {
			return plugin.Loss().At(time.Now()) // all profiles have the same
		}
	}
	return nil
}

// findUnits sorts the pods of the snapshot into units that wait and pods that run.
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
		case pod.DeletionTimestamp != nil: // nothing is to be done for it
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

// addRunning notes a pod that runs.
func (s *search) addRunning(w *world, of *runningPod, loss *work.Moment) {
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
	if status := w.HeldBack(pod); status != nil {
		of.held = status.Message()
	}
	if of.class == "" && of.workload == "" {
		of.class = string(pod.UID) // it is not known which others are equal
	}
	return of
}

// byAge orders the pods of a unit as the queue does.
func byAge(a, b *v1.Pod) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}

// gather adds a pod that waits to its unit and returns the unit.
func (s *search) gather(units map[membership]*unit, of membership, pod *v1.Pod) *unit {
	u := units[of]
	if u == nil {
		u = &unit{Unit: Unit{Kind: KindPod, Namespace: pod.Namespace}, Created: pod.CreationTimestamp.Time, Needs: 1,
			Held: of.held, Priority: corev1helpers.PodPriority(pod), of: of}
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

// alike says which pods the unit stands for if it is one of several, empty otherwise.
func (u *unit) alike() string {
	if u.Kind != KindPod || len(u.Pods) == 1 {
		return ""
	}
	if u.of.workload == "" {
		return fmt.Sprintf("one of these %d equal pods ", len(u.Pods))
	}
	return fmt.Sprintf("one of these %d pods of %s %s ", len(u.Pods), u.of.kind, u.of.workload)
}

// note keeps what the scheduler says of a pod of the unit.
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

// findNeeds says how many of the members of a gang have to start that wait.
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
		u.Held = "members have scheduling gates"
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
		selector = labels.Everything() // what it covers is not known: nothing that it may cover is moved
	}
	b := budget{namespace: pdb.Namespace, name: pdb.Name, selector: selector, allowed: int(pdb.Status.DisruptionsAllowed)}
	if pdb.Status.ObservedGeneration < pdb.Generation {
		b.allowed = 0 // the API server waits for the controller, too
	}
	return b
}

func (b *budget) covers(pod *v1.Pod) bool {
	return b.namespace == pod.Namespace && b.selector.Matches(labels.Set(pod.Labels))
}

// overBudget are those of the pods that budgets do not allow to move with the others.
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

// fixed says why a running pod never moves, empty if it can.
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
