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

	"berth.dev/berth/pkg/eviction"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/plugins/coscheduling"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/workview"
)

// The kinds of units.
const (
	KindPod      = "pod"
	KindPodGroup = "podgroup"
)

// unit is what starts or moves together: a pod, or a gang.
type unit struct {
	Kind, Namespace, Name string
	Priority              int32
	Created               time.Time
	// Pods of the unit that wait, or that run.
	Pods []*v1.Pod
	// Needs is how many of the waiting pods have to start.
	Needs int
	// Levels are the node labels whose values the pods of a waiting gang must share.
	Levels []string
	// Held says why the scheduler does not even try a waiting unit, Fixed why a running one cannot be moved.
	Held, Fixed string
	// Why is what the scheduler said of a waiting unit.
	Why string
	worth
}

// worth is what the move of a running unit costs, and what each of its pods loses.
type worth struct {
	cost eviction.Cost
	lost []int64
}

func (u *unit) String() string { return u.Kind + " " + u.Namespace + "/" + u.Name }

func (u *unit) names() []key {
	var names []key
	for _, pod := range u.Pods {
		names = append(names, keyOf(pod))
	}
	return names
}

// Target is a unit by kind and name.
type Target struct{ Kind, Namespace, Name string }

// ParseTarget reads pod/NAME or podgroup/NAME.
func ParseTarget(text, namespace string) (Target, error) {
	kind, name, joined := strings.Cut(text, "/")
	if !joined || name == "" || strings.Contains(name, "/") || kind != KindPod && kind != KindPodGroup {
		return Target{}, fmt.Errorf("%q must be %s/NAME or %s/NAME", text, KindPod, KindPodGroup)
	}
	return Target{Kind: kind, Namespace: namespace, Name: name}, nil
}

// is says whether the target is the unit or a pod of it.
func (t Target) is(u *unit) bool {
	if t.Namespace != u.Namespace {
		return false
	}
	return t.Kind == u.Kind && t.Name == u.Name || t.Kind == KindPod &&
		slices.ContainsFunc(u.Pods, func(p *v1.Pod) bool { return p.Name == t.Name })
}

// choose returns the unit that is asked about, or all.
func (t Target) choose(waiting []*unit) ([]*unit, error) {
	if t == (Target{}) {
		return waiting, nil
	}
	for _, u := range waiting {
		if t.is(u) {
			return []*unit{u}, nil
		}
	}
	return nil, fmt.Errorf(
		"no %s %s waits for a node in namespace %s; the scheduler starts it without help, or it does not exist", t.Kind,
		t.Name, t.Namespace)
}

// noGang is the gang of pods in none.
var noGang gang.ID

// membership is the gang of a pod and how many of its members have to start together, 0 if that is not known.
type membership struct {
	id      gang.ID
	minimum int
	// levels are the node labels whose values all members must share.
	levels []string
	// with names the members that can only be evicted with it, empty for none.
	with string
}

// planners are the plugins that know gangs, by profile.
func (w *world) planners() map[string]*coscheduling.Plugin {
	byProfile := map[string]*coscheduling.Plugin{}
	for name, fw := range w.profiles {
		for _, p := range fw.PreEnqueuePlugins() {
			if plugin, ok := p.(*coscheduling.Plugin); ok {
				byProfile[name] = plugin
			}
		}
	}
	return byProfile
}

// losses are what evictions lose now, nil if no profile counts that.
func (w *world) losses() *workview.Moment {
	for _, plugin := range w.planners() {
		return plugin.Loss().At(time.Now()) // all profiles have the same
	}
	return nil
}

// gangs returns a function that knows the gangs of pods as the profile of each pod does.
func (w *world) gangs() func(*v1.Pod) membership {
	byProfile := w.planners()
	return func(pod *v1.Pod) membership {
		plugin := byProfile[pod.Spec.SchedulerName]
		if plugin == nil {
			return membership{}
		}
		id, minimum := plugin.Gang(pod)
		return membership{id, minimum, plugin.Topology(pod).Required, plugin.Together(pod)}
	}
}

// findUnits sorts the pods of the snapshot into units that wait and units that could move.
func (s *search) findUnits(w *world, gangOf func(*v1.Pod) membership) {
	waiting, running, bound := map[gang.ID]*unit{}, map[gang.ID]*unit{}, map[gang.ID]int{}
	minimum := map[gang.ID]int{}
	var alone []*unit
	for _, pod := range s.pods {
		if podview.Finished(pod) {
			continue
		}
		m := gangOf(pod)
		minimum[m.id] = m.minimum
		if pod.Spec.NodeName != "" {
			if u := gather(running, m.id, pod); u != nil {
				alone = append(alone, u)
			}
			bound[m.id]++
			continue
		}
		s.pendingPods++
		now := w.pod(keyOf(pod))
		switch {
		case pod.DeletionTimestamp != nil:
			continue
		case w.profiles[pod.Spec.SchedulerName] == nil:
			s.foreign++
			continue
		case now != nil && now.Spec.NodeName != "":
			bound[m.id]++
			continue
		}
		u := gather(waiting, m.id, pod)
		if u != nil {
			s.waiting = append(s.waiting, u)
		} else {
			u = waiting[m.id]
			u.Levels = m.levels
		}
		if now == nil {
			continue
		}
		if status := w.sched.HeldBack(now); status != nil && u.Kind == KindPod {
			u.Held = status.Message()
		}
		for _, c := range now.Status.Conditions {
			if c.Type == v1.PodScheduled && c.Message != "" && u.Why == "" {
				u.Why = c.Message
			}
		}
	}
	for id, u := range waiting {
		u.Needs = len(u.Pods)
		if m := minimum[id]; m > 0 {
			u.Needs = min(u.Needs, max(1, m-bound[id]))
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
		s.waiting = append(s.waiting, u)
	}
	slices.SortFunc(s.waiting, byImportance)
	s.findMovable(w, alone, running, minimum, gangOf)
}

// gather adds the pod to the unit of its gang, or returns a unit of its own.
func gather(gangs map[gang.ID]*unit, id gang.ID, pod *v1.Pod) *unit {
	priority := corev1helpers.PodPriority(pod)
	if id == (gang.ID{}) {
		return &unit{Kind: KindPod, Namespace: pod.Namespace, Name: pod.Name, Priority: priority,
			Created: pod.CreationTimestamp.Time, Pods: []*v1.Pod{pod}, Needs: 1}
	}
	u := gangs[id]
	if u == nil {
		u = &unit{Kind: KindPodGroup, Namespace: id.Namespace, Name: id.Name, Priority: priority,
			Created: pod.CreationTimestamp.Time}
		gangs[id] = u
	}
	u.Priority = max(u.Priority, priority)
	if pod.CreationTimestamp.Time.Before(u.Created) {
		u.Created = pod.CreationTimestamp.Time
	}
	u.Pods = append(u.Pods, pod)
	return nil
}

// findMovable keeps the running units by node. A gang moves as a whole, unless enough members run beyond the minimum
// for one to leave, or for those that are disrupted together only.
func (s *search) findMovable(w *world, alone []*unit, gangs map[gang.ID]*unit, minimum map[gang.ID]int,
	gangOf func(*v1.Pod) membership) {
	for id, u := range gangs {
		if m := minimum[id]; m > 0 && len(u.Pods) > m {
			alone = append(alone, partsOf(u, m, gangOf)...)
			continue
		}
		alone = append(alone, u)
	}
	budgets := s.budgets()
	loss := w.losses()
	for _, u := range alone {
		u.worth = worthOf(u, loss)
		u.Fixed = s.fixed(w, u, budgets)
		on := map[string]bool{}
		for _, pod := range u.Pods {
			if name := pod.Spec.NodeName; !on[name] {
				on[name] = true
				s.units[name] = append(s.units[name], u)
			}
		}
	}
	for _, units := range s.units {
		slices.SortFunc(units, func(a, b *unit) int {
			return cmp.Or(cmp.Compare(len(a.Pods), len(b.Pods)), a.cost.Compare(b.cost),
				b.Created.Compare(a.Created), cmp.Compare(a.String(), b.String()))
		})
	}
}

// partsOf are the units that may leave a gang with more members than its minimum; or the gang, if it cannot spare one
// of them.
func partsOf(gang *unit, minimum int, gangOf func(*v1.Pod) membership) []*unit {
	var parts []*unit
	together := map[string]*unit{}
	for _, pod := range gang.Pods {
		m := gangOf(pod)
		switch u := together[m.with]; {
		case m.with == "":
			parts = append(parts, gather(nil, noGang, pod))
		case u == nil:
			one := *gang
			one.Pods = []*v1.Pod{pod}
			together[m.with] = &one
			parts = append(parts, &one)
		default:
			u.Pods = append(u.Pods, pod)
		}
	}
	for _, u := range together {
		if len(gang.Pods)-len(u.Pods) < minimum {
			return []*unit{gang}
		}
	}
	return parts
}

// worthOf is what the unit is worth by what evictions lose, nil if no profile counts that.
func worthOf(u *unit, loss *workview.Moment) worth {
	of := worth{lost: make([]int64, len(u.Pods))}
	for i, pod := range u.Pods {
		v := eviction.Victim{Priority: corev1helpers.PodPriority(pod)}
		if loss != nil {
			v.Lost, v.Protected = loss.Lost(pod), loss.IsProtected(pod)
		}
		of.lost[i] = v.Lost
		of.cost.Add(&v)
	}
	return of
}

// budget is a PodDisruptionBudget with the pods that it covers.
type budget struct {
	namespace, name string
	selector        labels.Selector
	allowed         int
}

func (s *search) budgets() []budget {
	var budgets []budget
	for _, obj := range s.Objects {
		pdb, ok := obj.(*policyv1.PodDisruptionBudget)
		if !ok {
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(pdb.Spec.Selector)
		if err != nil {
			selector = labels.Everything() // what it covers is not known: nothing that it may cover is moved
		}
		b := budget{namespace: pdb.Namespace, name: pdb.Name, selector: selector, allowed: int(pdb.Status.DisruptionsAllowed)}
		if pdb.Status.ObservedGeneration < pdb.Generation {
			b.allowed = 0 // the API server waits for the controller, too
		}
		budgets = append(budgets, b)
	}
	return budgets
}

// fixed says why a running unit cannot be moved, empty if it can.
func (s *search) fixed(w *world, u *unit, budgets []budget) string {
	disrupted := map[string]int{}
	for _, pod := range u.Pods {
		switch owner := metav1.GetControllerOf(pod); {
		case podview.BelongsToNode(pod):
			return "it belongs to its node"
		case owner == nil:
			return "nothing would replace it: it has no controller"
		case pod.DeletionTimestamp != nil:
			return "it is already ending"
		case w.profiles[pod.Spec.SchedulerName] == nil:
			return "another scheduler places it"
		}
		if key := podview.Undisturbed(pod); key != "" {
			return "its annotation " + key + " asks not to evict it"
		}
		covered := 0
		for _, b := range budgets {
			if b.namespace != pod.Namespace || !b.selector.Matches(labels.Set(pod.Labels)) {
				continue
			}
			covered++
			if disrupted[b.name]++; disrupted[b.name] > b.allowed {
				return fmt.Sprintf("PodDisruptionBudget %s allows %d disruptions", b.name, b.allowed)
			}
		}
		if covered > 1 {
			return "several PodDisruptionBudgets cover it, which the eviction API refuses"
		}
	}
	return ""
}
