package overview

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/runtimes"
	"berth.dev/berth/pkg/runview"
)

const (
	// mostStays is how many workloads a row of the plan has, those with the most GPUs.
	mostStays = 8
	// mostWaiting is how many gangs without nodes of their own it shows.
	mostWaiting = 16
)

// StayKind says what a stay is.
type StayKind string

// The kinds of stays. Backfilled pods started on a node after it was reserved for a gang that they are not of.
const (
	StayRunning    StayKind = "running"
	StayBackfilled StayKind = "backfilled"
	StayReserved   StayKind = "reserved"
)

// Stay is what a workload has, or is to have, of the nodes of a row.
type Stay struct {
	Kind      StayKind
	Namespace string
	// Workload is the name of a Job.
	Workload string
	// Pods on Nodes have or get the GPUs; all are 0 of what is reserved.
	Pods, Nodes int
	MilliGPU    int64
	// From is when it began or is expected to begin, with an interval from Earliest to Latest if it has not begun. It is
	// zero if that is not known.
	From, Earliest, Latest time.Time
	// To is when it is expected to end, and By when it will have ended with a probability of 90%. Both are zero if that
	// is not known. Basis says what they rest on.
	To, By time.Time
	Basis  runtimes.Basis
}

// Ends reports whether anything is known of the end.
func (s *Stay) Ends() bool { return !s.To.IsZero() }

// PlanRow is what runs on some nodes, and what is to run there.
type PlanRow struct {
	// Stays are in the order in which they begin. More is how many workloads are left out, those with the fewest GPUs.
	Stays []Stay
	More  int
}

// Plan is what runs until when, and what is to start when.
type Plan struct {
	// Rows are those that were asked for.
	Rows []PlanRow
	// Waiting are the gangs that were told a start and have no nodes reserved, by that start.
	Waiting []Stay
	// Unread says why what was learned of run times is not known, empty if it is.
	Unread string
}

// Plan tells of each list of nodes what runs on them until when, and for what they are reserved.
func (b *Book) Plan(rows [][]string, now time.Time) *Plan {
	b.feed.mu.Lock()
	defer b.feed.mu.Unlock()
	p := planner{book: b, now: now, reserved: map[string][]*reservation{}, keys: map[gang.ID]jobKey{}}
	plan := &Plan{Unread: b.runs.unread}
	for id, g := range b.gangs {
		if stay, at := p.reserve(id, g); stay != nil && len(at) == 0 {
			plan.Waiting = append(plan.Waiting, *stay)
		}
	}
	slices.SortFunc(plan.Waiting, compareStays)
	plan.Waiting = plan.Waiting[:min(len(plan.Waiting), mostWaiting)]
	for _, nodes := range rows {
		plan.Rows = append(plan.Rows, p.row(nodes))
	}
	return plan
}

// planner makes one plan.
type planner struct {
	book *Book
	now  time.Time
	// reserved is what is reserved, by node.
	reserved map[string][]*reservation
	// keys are those of gangs, which to find out takes a look at all members.
	keys map[gang.ID]jobKey
}

// keyOf names the workload of a pod.
func (p *planner) keyOf(pod *podEntry) jobKey {
	if pod.gang == (gang.ID{}) {
		return controllerKey(pod.pod)
	}
	key, known := p.keys[pod.gang]
	if !known {
		key = p.book.keyOf(pod)
		p.keys[pod.gang] = key
	}
	return key
}

// reservation is what is reserved for a gang, and since when.
type reservation struct {
	of    gang.ID
	since time.Time
	stay  Stay
}

// reserve notes which nodes are reserved for a gang, and returns when it is to run; nil for one that was told nothing.
func (p *planner) reserve(id gang.ID, g *gangEntry) (stay *Stay, at []string) {
	if g.group == nil {
		return nil, nil
	}
	status := &g.group.Status
	kept := meta.FindStatusCondition(status.Conditions, schedulingv1alpha1.PodGroupReserved)
	if kept != nil && kept.Status == metav1.ConditionTrue {
		at = status.ReservedNodes
	}
	if status.EstimatedStart == nil && len(at) == 0 {
		return nil, nil
	}
	r := &reservation{of: id, stay: Stay{Kind: StayReserved, Namespace: id.Namespace, Workload: g.key(id).name}}
	if start := status.EstimatedStart; start != nil {
		r.stay.From = later(start.Time.Time, p.now)
		r.stay.Earliest, r.stay.Latest = later(start.Earliest.Time, p.now), later(start.Latest.Time, r.stay.From)
		p.endOf(&r.stay, g.first(), r.stay.From, 0)
	}
	if kept != nil {
		r.since = kept.LastTransitionTime.Time
	}
	for _, node := range at {
		p.reserved[node] = append(p.reserved[node], r)
	}
	return &r.stay, at
}

// first is the member by whose name the others stand behind, nil without members that have not ended.
func (g *gangEntry) first() *podEntry {
	var first *podEntry
	for _, m := range g.members {
		if !podview.Finished(m.pod) && (first == nil || compareNames(m.pod.Name, first.pod.Name) < 0) {
			first = m
		}
	}
	return first
}

func later(x, y time.Time) time.Time {
	if x.After(y) {
		return x
	}
	return y
}

// endOf says when a run of such a pod that has lasted for the age is to end, from a moment on.
func (p *planner) endOf(s *Stay, pod *podEntry, from time.Time, age time.Duration) {
	if pod == nil {
		return
	}
	var group metav1.Object // a nil PodGroup would be none
	if g := p.book.gangs[pod.gang]; g != nil && g.group != nil {
		group = g.group
	}
	claim, class := runview.ClaimOf(pod.pod, group), runview.ClassOf(pod.pod, pod.gpus)
	if pod.gang != (gang.ID{}) {
		// The scheduler reads no Jobs of other pods.
		claim.EndBy(p.book.runs.limitOf(pod.pod))
	}
	source := p.book.runs.book.Of(&class, &claim)
	if s.Basis = source.Basis(); s.Basis == runtimes.Guessed || s.Basis == runtimes.Endless {
		return
	}
	left := source.Left(age)
	s.To, s.By = from.Add(left.At(0.5)), from.Add(left.At(0.9))
}

// row tells what is on the nodes and for what they are reserved.
func (p *planner) row(nodes []string) PlanRow {
	type workload struct {
		jobKey
		kind StayKind
	}
	found, promised := map[workload]*resident{}, map[gang.ID]*Stay{}
	for _, name := range nodes {
		for _, r := range p.reserved[name] {
			if promised[r.of] == nil {
				stay := r.stay
				promised[r.of] = &stay
			}
			promised[r.of].Nodes++
		}
		n := p.book.nodes[name]
		if n == nil {
			continue
		}
		for uid, pod := range n.pods {
			entry := p.book.pods[uid]
			began, ran := runview.Started(pod)
			if !ran || podview.BelongsToNode(pod) {
				continue
			}
			key := workload{p.keyOf(entry), p.kindOf(entry, name, began)}
			r := found[key]
			if r == nil {
				r = &resident{Stay: Stay{Kind: key.kind, Namespace: key.namespace, Workload: key.name}, on: map[string]bool{}}
				found[key] = r
			}
			r.add(entry, began)
		}
	}
	var row PlanRow
	list := slices.SortedFunc(maps.Values(found), func(x, y *resident) int {
		return cmp.Or(-cmp.Compare(x.MilliGPU, y.MilliGPU), compareStays(x.Stay, y.Stay))
	})
	row.More = max(0, len(list)-mostStays)
	for _, r := range list[:len(list)-row.More] {
		row.Stays = append(row.Stays, p.finish(r))
	}
	for _, stay := range promised {
		row.Stays = append(row.Stays, *stay)
	}
	slices.SortFunc(row.Stays, compareStays)
	return row
}

// kindOf tells pods that backfill from others.
func (p *planner) kindOf(pod *podEntry, node string, began time.Time) StayKind {
	for _, r := range p.reserved[node] {
		if r.of != pod.gang && began.After(r.since) {
			return StayBackfilled
		}
	}
	return StayRunning
}

// resident sums up the pods of a workload on the nodes of a row.
type resident struct {
	Stay
	on map[string]bool
	// last is the pod that came last.
	last *podEntry
	came time.Time
}

func (r *resident) add(p *podEntry, began time.Time) {
	r.Pods++
	r.MilliGPU += p.milli
	r.on[p.pod.Spec.NodeName] = true
	if r.From.IsZero() || began.Before(r.From) {
		r.From = began
	}
	if r.last == nil || cmp.Or(began.Compare(r.came), compareNames(p.pod.Name, r.last.pod.Name)) > 0 {
		r.last, r.came = p, began
	}
}

// finish says when the workload ends, by the pod that came last.
func (p *planner) finish(r *resident) Stay {
	r.Nodes = len(r.on)
	p.endOf(&r.Stay, r.last, p.now, max(0, p.now.Sub(r.came)))
	return r.Stay
}

func compareStays(x, y Stay) int {
	return cmp.Or(x.From.Compare(y.From), cmp.Compare(x.Namespace, y.Namespace), compareNames(x.Workload, y.Workload),
		cmp.Compare(x.Kind, y.Kind))
}
