package explain

import (
	"cmp"
	"context"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/plugins/coscheduling"
	"berth.dev/berth/pkg/plural"
)

var podGroupResource = schedulingv1alpha1.SchemeGroupVersion.WithResource("podgroups")

// Gang describes the gang of a pod.
type Gang struct {
	Name string `json:"name"`
	// MinMember is how many members have to start together; 0 if unknown.
	MinMember int `json:"minMember,omitempty"`
	// Numbers of members by state.
	Bound   int `json:"bound"`
	Pending int `json:"pending"`
	Gated   int `json:"gated"`
	Ended   int `json:"ended"`
	// Reserved describes what the running scheduler reserves for the gang, and ReservedNodes are its nodes.
	Reserved      string   `json:"reserved,omitempty"`
	ReservedNodes []string `json:"reservedNodes"`
	// Late is a deadline that the gang can no longer keep.
	Late string `json:"late,omitempty"`
	// Missing is why the gang does not start, empty if it starts.
	Missing string `json:"missing,omitempty"`
	// Groups are the requirements of the groups within the gang, empty if it has none.
	Groups string `json:"groups,omitempty"`
	// Level is the node label that the members of a group or a segment share, else the narrowest that the gang names;
	// empty for none.
	Level string `json:"level,omitempty"`
	// SegmentSize is how many consecutive ranks share a value of Level; 0 if the gang has no segments.
	SegmentSize int `json:"segmentSize,omitempty"`
	// Assignments are the plan in the order of ranks, if the gang starts.
	Assignments []Assignment `json:"assignments"`
}

// Assignment is the planned node of a pod.
type Assignment struct {
	Pod  string `json:"pod"`
	Node string `json:"node"`
	// Domain is the node's value of the gang's Level.
	Domain string `json:"domain,omitempty"`
	// Rank is the member's number in the whole gang; nil if its controller gives it none.
	Rank *int `json:"rank,omitempty"`
}

// follows reports whether members that wait outside the queue start with the plan of the gang.
func (g *Gang) follows() bool { return g != nil && g.Missing == "" }

// node is the node that the plan gives a member, empty if there is none.
func (g *Gang) node(pod string) string {
	if g == nil {
		return ""
	}
	for _, s := range g.Assignments {
		if s.Pod == pod {
			return s.Node
		}
	}
	return ""
}

// gang lets the leader plan for all members, as the scheduler does, and reads the plan from the members' cycles. Runs
// says that the target runs.
func (w *world) gang(ctx context.Context, gangs *coscheduling.Plugin, id gang.ID, minimum int, runs bool) *Gang {
	g := &Gang{Name: id.String(), MinMember: minimum}
	w.readStatus(id, g)
	var members, pending []*v1.Pod
	for _, obj := range w.API.List(v1.SchemeGroupVersion.WithResource("pods")) {
		pod := obj.(*v1.Pod)
		if of, _ := gangs.Gang(pod); of != id {
			continue
		}
		members = append(members, pod)
		state := read.Member(pod, read.Membership{}, nil, true).State
		if runs && pod.Name == w.target.Name && pod.Namespace == w.target.Namespace {
			state = gang.Bound // it was removed from its node only to find out where it would go today
			pending = append(pending, pod)
		}
		switch state {
		case gang.Bound:
			g.Bound++
		case gang.Gated:
			g.Gated++
		case gang.Pending:
			g.Pending++
			pending = append(pending, pod)
		default:
			g.Ended++
		}
	}
	slices.SortFunc(pending, func(a, b *v1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	g.Missing = w.lead(ctx, pending)
	if groups := gangs.Groups(w.target); groups != nil {
		g.Groups, g.Level = groups.String(), groups.Level()
	}
	if g.Missing == "" {
		g.Assignments = w.assignments(ctx, pending)
		w.addRanks(g, gangs.Topology(w.target), members)
	}
	return g
}

// readStatus reads what the running scheduler has written to the status of the gang's PodGroup.
func (w *world) readStatus(id gang.ID, g *Gang) {
	obj, ok := w.API.Get(podGroupResource,
		types.NamespacedName{Namespace: id.Namespace, Name: id.Name}).(*unstructured.Unstructured)
	if !ok {
		return
	}
	pg := &schedulingv1alpha1.PodGroup{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, pg); err != nil {
		return // the scheduler cannot read it either
	}
	g.Late = read.Late(pg)
	c := meta.FindStatusCondition(pg.Status.Conditions, schedulingv1alpha1.PodGroupReserved)
	if c != nil && c.Status == metav1.ConditionTrue {
		g.Reserved = cmp.Or(c.Message, plural.Of(len(pg.Status.ReservedNodes), "node")+" reserved")
		g.ReservedNodes = pg.Status.ReservedNodes
	}
}

// lead runs the planning cycle of the leader, and returns why there is no plan.
func (w *world) lead(ctx context.Context, members []*v1.Pod) string {
	why := ""
	for _, pod := range members {
		if fw := w.AllNodes[pod.Spec.SchedulerName]; fw != nil {
			kept := w.PreEnqueue(pod)
			if kept.IsSuccess() {
				w.leader, w.led = pod, framework.NewCycleState()
				_, status, _ := fw.RunPreFilterPlugins(ctx, w.led, pod)
				return status.Message()
			}
			if why == "" || pod.Name == w.target.Name {
				why = kept.Message()
			}
		}
	}
	return why
}

// assignments reads the planned node of each member, the only one that PreFilter leaves.
func (w *world) assignments(ctx context.Context, members []*v1.Pod) []Assignment {
	var assignments []Assignment
	for _, pod := range members {
		fw := w.AllNodes[pod.Spec.SchedulerName]
		if fw == nil {
			continue
		}
		left, status, _ := fw.RunPreFilterPlugins(ctx, framework.NewCycleState(), pod)
		if !status.IsSuccess() || left.AllNodes() || left.NodeNames.Len() != 1 {
			continue
		}
		assignments = append(assignments, Assignment{Pod: pod.Name, Node: strings.Join(left.NodeNames.UnsortedList(), "")})
	}
	return assignments
}
