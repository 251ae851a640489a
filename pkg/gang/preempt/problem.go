package preempt

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/capacity"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/eviction"
	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/plural"
	"berth.dev/berth/pkg/podview"
)

// request asks for pods to be evicted so that a gang can start, or a single pod.
type request struct {
	// name is for whom the request is, in messages and as a key. id is the gang, or zero for a single pod, which is only.
	name string
	id   gang.ID
	only *v1.Pod
	// statuses tell on which nodes no eviction helps the single pod.
	statuses fwk.NodeToStatusReader
	priority int32
	// inFlight is set if gangs of lower priority were being bound when it was made, which can be evicted only after that.
	inFlight bool
	need     gang.Minimum
	classes  []requestClass
	// required are the label keys of the levels that all members share, and occupied counts the members on each node.
	required []string
	occupied map[string]int
	// division is how the members are divided into groups or segments, nil if they are not; it then has its own classes.
	division *division
}

// requestClass is a number of members that ask for the same.
type requestClass struct {
	class, role string
	pod         *v1.Pod
	count       int
}

// asks reports whether both requests ask for the same.
func (r *request) asks(other *request) bool {
	return r.priority == other.priority && r.need.Total == other.need.Total && r.division.asks(other.division) &&
		maps.Equal(r.need.Roles, other.need.Roles) &&
		slices.EqualFunc(r.classes, other.classes, func(a, b requestClass) bool {
			return a.class == b.class && a.role == b.role && a.count == b.count
		})
}

// mayHelp reports whether an eviction on the node can help.
func (r *request) mayHelp(node string) bool {
	return r.statuses == nil || r.statuses.Get(node).Code() != fwk.UnschedulableAndUnresolvable
}

// proposal is the answer to a request.
type proposal struct {
	eviction.Plan
	request *request
	// at is when it was found.
	at      time.Time
	victims []*v1.Pod
	// pods counts the pods on each node where members will be placed, by the account.
	pods map[string]int
	// leaving are the pods that terminate anyway on these nodes.
	leaving []*v1.Pod
	// impacts are the victims by gang.
	impacts []gang.EvictionImpact
	// names are the names of the nodes in Sets.
	names []string
}

// going returns the pods that have to terminate before members are placed.
func (p *proposal) going() []*v1.Pod { return slices.Concat(p.victims, p.leaving) }

// idle reports whether no pod has to terminate.
func (p *proposal) idle() bool { return len(p.victims)+len(p.leaving) == 0 }

// evicting is the message about the victims.
func (p *proposal) evicting() string {
	return "evicting " + plural.Of(len(p.victims), "pod") + " of lower priority"
}

// propose chooses the pods to evict, with what filters have found so far.
func (e *Evictor) propose(r *request, said findings) *proposal {
	keys := make([]capacity.ShapeKey, len(r.classes))
	for i, c := range r.classes {
		keys[i] = e.Capacity.Acquire(c.pod)
		defer e.Capacity.Release(keys[i])
	}
	all, err := e.Sources.Budgets.List(labels.Everything())
	if err != nil {
		return &proposal{request: r, Plan: eviction.Plan{Reason: "listing PodDisruptionBudgets: " + err.Error()}}
	}
	b := &problemBuilder{evictor: e, request: r, cluster: e.Capacity.Snapshot(keys),
		leaving: map[string][]*v1.Pod{}, now: time.Now()}
	b.problem.Budgets, b.covers = readBudgets(all)
	p := b.build(said)
	found := &proposal{Plan: eviction.Choose(p), request: r, pods: map[string]int{}}
	impacts := map[gang.ID]gang.EvictionImpact{}
	for _, i := range found.Victims {
		found.victims = append(found.victims, b.victims[i])
		v := &p.Victims[i]
		if g, known := p.Groups[v.Group]; known {
			t := impacts[v.Group]
			t.Group, t.Whole, t.Bound = v.Group, slices.Contains(found.Groups, v.Group), g.Bound
			t.Pods = append(t.Pods, v.UID)
			impacts[v.Group] = t
		}
	}
	found.impacts = slices.SortedFunc(maps.Values(impacts),
		func(a, b gang.EvictionImpact) int { return a.Group.Compare(b.Group) })
	for _, placed := range found.Placed {
		found.pods[placed.Node] = 0
	}
	for i := range b.cluster.Nodes {
		n := &b.cluster.Nodes[i]
		found.names = append(found.names, n.Name)
		if _, used := found.pods[n.Name]; used {
			found.pods[n.Name] = len(n.Pods)
			found.leaving = append(found.leaving, b.leaving[n.Name]...)
		}
	}
	slices.SortFunc(found.leaving, func(a, b *v1.Pod) int { return cmp.Compare(a.UID, b.UID) })
	if found.Reason != "" && b.kept && r.only != nil {
		// No event tells the pod that a hold has ended.
		e.Holds.Gate.Wait(r.only)
	}
	return found
}

// problemBuilder makes a problem of a request and a copy of the account.
type problemBuilder struct {
	evictor *Evictor
	request *request
	cluster *capacity.Snapshot
	covers  coverage
	problem eviction.Problem
	victims []*v1.Pod
	// leaving are the pods of each node that terminate now.
	leaving map[string][]*v1.Pod
	now     time.Time
	// kept is set if capacity is kept for others.
	kept bool
}

func (b *problemBuilder) build(said findings) *eviction.Problem {
	r, p := b.request, &b.problem
	p.Priority, p.Need, p.Groups = r.priority, r.need, map[gang.ID]eviction.Group{}
	width := len(b.cluster.Resources)
	for i, c := range r.classes {
		class := eviction.Class{Demand: make(eviction.Vector, width), Count: c.count, Role: c.role,
			Fits: make([]bool, len(b.cluster.Nodes))}
		for _, bound := range b.cluster.Shapes[i].Bounds {
			class.Demand[bound.Resource] = bound.Amount
		}
		for n := range b.cluster.Nodes {
			node := &b.cluster.Nodes[n]
			class.Fits[n] = node.Admits[i] && !said[gang.Refusal{Class: c.class, Node: node.Name}] && r.mayHelp(node.Name)
		}
		p.Classes = append(p.Classes, class)
	}
	for n := range b.cluster.Nodes {
		b.addNode(n)
	}
	if loss := b.evictor.Sources.Loss; loss.Limits.Unsaved > 0 {
		moment := loss.At(b.now)
		for i, pod := range b.victims {
			v := &p.Victims[i]
			v.Lost, v.Protected = moment.Lost(pod), moment.IsProtected(pod)
		}
	}
	b.addKept()
	b.addNominated()
	b.applyFilterFindings(said)
	b.addDomains()
	r.division.addTo(p)
	for id, g := range p.Groups {
		b.describe(id, &g)
		p.Groups[id] = g
	}
	return p
}

// addNode adds the node with the pods on it.
func (b *problemBuilder) addNode(n int) {
	node := &b.cluster.Nodes[n]
	free := make(eviction.Vector, len(node.Has))
	for i := range free {
		free[i] = node.Has[i] - node.Used[i]
	}
	for i := range node.Pods {
		pod := &node.Pods[i]
		if pod.Terminating {
			if leaves(pod.Object, b.now) {
				for _, u := range pod.Uses {
					free[u.Resource] += u.Amount
				}
				b.leaving[node.Name] = append(b.leaving[node.Name], pod.Object)
			}
			continue
		}
		b.addVictim(n, pod)
	}
	b.problem.Nodes = append(b.problem.Nodes, eviction.Node{Name: node.Name, Free: free})
}

// addVictim adds the pod if it may be evicted. Pods of DaemonSets and static pods would come back at once.
func (b *problemBuilder) addVictim(n int, pod *capacity.BoundPod) {
	priority := pod.Priority
	if priority <= b.request.priority && b.evictor.Holds.Gate.Backfills(b.request.id, pod.Object) {
		// It runs in capacity that is kept for this gang, which pods of a higher priority may use in any case.
		priority = math.MinInt32
	}
	id, role := pod.Of, ""
	with, whole := b.evictor.Sources.Owners.Together(pod.Object)
	if id == (gang.ID{}) && with != "" {
		// kube-scheduler plans its native group. The name has a space, as no gang has.
		id, with, whole = gang.ID{Namespace: pod.Object.Namespace, Name: with}, "", true
	}
	if id != (gang.ID{}) {
		g := b.problem.Groups[id]
		role = read.Role(pod.Object, b.evictor.Members.Group(id))
		g.Bind(role, with, whole)
		b.problem.Groups[id] = g
	}
	if priority >= b.request.priority || podview.BelongsToNode(pod.Object) {
		return
	}
	v := eviction.Victim{UID: pod.UID, Node: n, Priority: priority, Started: pod.Started, Group: id,
		With: with, Role: role,
		Requests: make(eviction.Vector, len(b.cluster.Resources)), Budgets: b.covers.of(pod.Object)}
	for _, u := range pod.Uses {
		v.Requests[u.Resource] = u.Amount
	}
	b.problem.Victims = append(b.problem.Victims, v)
	b.victims = append(b.victims, pod.Object)
}

// addKept subtracts what is kept for others of the same or a higher priority.
func (b *problemBuilder) addKept() {
	of := b.request.id
	if only := b.request.only; only != nil {
		of = b.evictor.Members.ID(only)
	}
	index := map[string]int{}
	for n := range b.problem.Nodes {
		index[b.problem.Nodes[n].Name] = n
	}
	for _, o := range b.evictor.Holds.ToOthers(of, b.request.priority) {
		if n, known := index[o.Node]; known {
			b.kept = true
			b.take(n, o.Info)
		}
	}
}

// take subtracts what the pod requests from what the node has free.
func (b *problemBuilder) take(n int, info fwk.PodInfo) {
	for i, name := range b.cluster.Resources {
		b.problem.Nodes[n].Free[i] -= podview.UsedBy(info, name)
	}
}

// addNominated subtracts what nominated pods of the same or a higher priority request.
func (b *problemBuilder) addNominated() {
	profile := b.evictor.Profiles.Any()
	for n := range b.problem.Nodes {
		for _, info := range profile.NominatedPodsForNode(b.problem.Nodes[n].Name) {
			pod := info.GetPod()
			if corev1helpers.PodPriority(pod) < b.request.priority || (b.request.only != nil && pod.UID == b.request.only.UID) ||
				(b.request.id != gang.ID{} && b.evictor.Members.ID(pod) == b.request.id) {
				continue
			}
			b.take(n, info)
		}
	}
}

// applyFilterFindings rules out the nodes with enough free capacity for a class that filters have refused everywhere,
// but for nodes that are known to accept it. On other nodes, what the account does not know, such as claims, may refuse
// the class as well: that shows when the next proposal is checked.
func (b *problemBuilder) applyFilterFindings(said findings) {
	for i, c := range b.request.classes {
		if !said[gang.Refusal{Class: c.class}] {
			continue
		}
		class := &b.problem.Classes[i]
		for n := range b.problem.Nodes {
			node := &b.problem.Nodes[n]
			if _, asked := said[gang.Refusal{Class: c.class, Node: node.Name}]; !asked && node.Free.Holds(class.Demand) {
				class.Fits[n] = false
			}
		}
	}
}

// describe completes a group of victims from the ledger.
func (b *problemBuilder) describe(id gang.ID, g *eviction.Group) {
	v, _ := b.evictor.Ledger.View(id)
	// Members that are being bound count: they would be all that is left of a gang that is evicted as a whole.
	g.Bound = max(g.Bound, v.Count[gang.Bound]) + v.InFlight(b.now)
	g.Minimum, g.Settled, g.SettledByRole = v.Minimum, v.Settled(), map[string]int{}
	for role := range v.Roles {
		g.SettledByRole[role] = v.SettledIn(role)
	}
}
