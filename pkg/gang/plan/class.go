package plan

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/podtopologyspread"
	"k8s.io/kubernetes/pkg/scheduler/metrics"

	sampling "berth.dev/berth/pkg/candidates"
	"berth.dev/berth/pkg/gang/plan/account"
	"berth.dev/berth/pkg/process"
)

// Class is the part of a dry run that concerns one class of members. Nodes are filtered in chunks until enough of them
// fit to choose from, as the scheduler itself does for a pod; a class is short only after every node was looked at.
type Class struct {
	run *Run
	traits
	// Pod is the member that is being placed, or one that stands for all if they share a state.
	Pod   *v1.Pod
	State fwk.CycleState
	// volumes are those of pod that a driver would have to provision.
	volumes []account.Volume
	spreads []*account.Spread
	// readsOthers is set if a plugin has to know where others are placed. If a gang has many classes, plugins that only
	// score are not told: the cost would grow with the square of the members.
	readsOthers bool
	// left is how many of the members were not tried yet.
	left int
	// turnedAway is what plugins said of nodes that they did not let a member reserve.
	turnedAway map[string]*fwk.Status
	search
	ranking
}

// traits are what members of a class have in common.
type traits struct {
	class   string
	info    *framework.PodInfo
	Profile framework.Framework
	filters *process.Traits
	// reserves is set if Reserve takes note of members of the class, so that each needs a state of its own.
	reserves bool
	// members is how many there are of the class.
	members int
}

// search is how far the nodes were looked at.
type search struct {
	// eligible holds the indices of the nodes that PreFilter left and that are not too full for any member, next the
	// first that was not looked at yet.
	eligible []int
	next     int
	// names are those nodes, nil if PreFilter left all, and home is the domain to which the member is kept.
	names sets.Set[string]
	home  int
	// leftBy are the plugins whose PreFilter left names, rejected is what one said that left none.
	leftBy   sets.Set[string]
	rejected *fwk.Status
	// changes counts what has happened since the nodes were last looked at from the start; full is set if nothing has
	// since no node fitted.
	changes int
	full    bool
}

// confined reports whether PreFilter has left out nodes.
func (s *search) confined() bool { return s.names != nil || s.rejected != nil }

// begin prepares the placing of one more member of the class.
func (t *Class) begin(pod *v1.Pod) error {
	if t.State != nil && !t.reserves {
		return nil
	}
	first := t.State == nil
	t.Pod = pod
	if process.HasVolumes(pod) {
		t.volumes = t.run.storage.Provisions(pod)
	}
	if err := t.preFilter(first); err != nil || t.rejected != nil {
		return err
	}
	if first {
		if err := t.countSpreads(pod); err != nil {
			return err
		}
	}
	return t.countOthers()
}

// preFilter gives the member a state of its own and finds the nodes that PreFilter leaves.
func (t *Class) preFilter(first bool) error {
	d := t.run
	state := framework.NewCycleState()
	state.SetPodGroupSchedulingCycle(d.group)
	t.State = state
	result, status, by := t.Profile.RunPreFilterPlugins(d.ctx, t.State, t.Pod)
	d.work.spend(preFilterVisits)
	t.readsOthers = t.filters.FiltersByOthers(state) || (!d.work.many && t.filters.ReadsOthers(state))
	if !slices.Contains(d.open, t) {
		d.open = append(d.open, t)
	}
	if !status.IsSuccess() {
		if !status.IsRejected() {
			return status.AsError()
		}
		t.rejected = status
		t.eligible, t.candidates, t.next, t.changes = nil, nil, 0, 0
		return nil
	}
	again := first || t.confined()
	t.rejected, t.names = nil, nil
	t.changes++
	if !result.AllNodes() {
		t.names, t.leftBy = result.NodeNames, by
	}
	if again || t.confined() {
		t.gather()
	}
	t.stale()
	return nil
}

// countOthers tells the plugins which pods are gone and where members were placed.
func (t *Class) countOthers() error {
	d, pod := t.run, t.Pod
	for _, p := range d.gone {
		if status := t.Profile.RunPreFilterExtensionRemovePod(d.ctx, t.State, pod, p.Info,
			d.copies[p.Node]); !status.IsSuccess() {
			return fmt.Errorf("leaving out pod %s: %w", p.Info.GetPod().Name, status.AsError())
		}
	}
	if !t.readsOthers {
		return nil
	}
	d.work.spend(len(d.placed) / addsPerVisit)
	for _, p := range d.placed {
		if status := t.Profile.RunPreFilterExtensionAddPod(d.ctx, t.State, pod, p.Info,
			d.copies[p.Node]); !status.IsSuccess() {
			return fmt.Errorf("counting placed pod %s: %w", p.Info.GetPod().Name, status.AsError())
		}
	}
	return nil
}

// enter keeps the next members to a domain.
func (t *Class) enter(home int) {
	if home == t.home {
		return
	}
	t.home, t.full = home, false
	if t.State != nil {
		t.gather()
	}
}

// gather begins again with all nodes on which members of the class may be.
func (t *Class) gather() {
	d := t.run
	t.eligible, t.candidates, t.next, t.changes = t.eligible[:0], nil, 0, 0
	consider := func(i int) {
		if t.names == nil || t.names.Has(d.Nodes[i].Node().Name) {
			t.eligible = append(t.eligible, i)
		}
	}
	if d.homes.of != nil {
		for _, i := range d.homes.nodes[t.home] {
			consider(i)
		}
		return
	}
	for i := range d.Nodes {
		if d.work.many {
			// The next class begins where there was room for the last one.
			i = (i + d.start) % len(d.Nodes)
		}
		consider(i)
	}
}

// tried notes that one more member was tried. After the last the class need not know where others are placed.
func (t *Class) tried() {
	if t.left--; t.left <= 0 {
		t.run.open = slices.DeleteFunc(t.run.open, func(r *Class) bool { return r == t })
	}
}

// countSpreads prepares the constraints of the class on all nodes of the cluster, as they are with all members placed
// so far.
func (t *Class) countSpreads(pod *v1.Pod) error {
	if len(pod.Spec.TopologySpreadConstraints) == 0 {
		return nil
	}
	all, err := t.Profile.SnapshotSharedLister().NodeInfos().List()
	if err != nil {
		return fmt.Errorf("listing nodes: %w", err)
	}
	nodes := slices.Clone(all)
	for i, n := range nodes {
		if changed := t.run.copies[n.Node().Name]; changed != nil {
			nodes[i] = changed
		}
	}
	t.spreads, err = account.SpreadsOf(pod, nodes)
	return err
}

// reserve holds the node for the member until the dry run ends, if plugins take note of that, and reports whether they
// let it.
func (t *Class) reserve(pod *v1.Pod, i int) (bool, error) {
	if !t.reserves {
		return true, nil
	}
	d := t.run
	node := d.Nodes[i].Node().Name
	status := t.Profile.RunReservePluginsReserve(d.ctx, t.State, pod, node)
	switch {
	case status.IsSuccess():
		d.reserved = append(d.reserved, reservedPod{profile: t.Profile, state: t.State, pod: pod, node: node})
		return true, nil
	case status.IsRejected():
		t.Profile.RunReservePluginsUnreserve(d.ctx, t.State, pod, node)
		t.turnedAway[node] = status
		return false, nil
	}
	t.Profile.RunReservePluginsUnreserve(d.ctx, t.State, pod, node)
	return false, fmt.Errorf("reserving node %s for pod %s: %w", node, pod.Name, status.AsError())
}

// enough is how many nodes that fit are compared with each other: the scheduler's own measure for large clusters.
func (t *Class) enough() int {
	n := len(t.run.Nodes)
	if t.run.work.many {
		return min(n, max(comparedByMany/len(t.run.Classes), 1))
	}
	if t.run.ranks != nil {
		// Domains are filled in order, so none may be left out by chance.
		return n
	}
	percentage := 0
	if p := t.Profile.PercentageOfNodesToScore(); p != nil {
		percentage = int(*p)
	}
	return sampling.Enough(n, percentage)
}

// best returns the index of the best node for the member.
func (t *Class) best() (int, bool, error) {
	for {
		for len(t.candidates) > 0 {
			top := t.candidates[0]
			t.candidates = t.candidates[1:]
			// Placing others may have changed what fits here, not only on their nodes.
			if t.run.work.spend(1); top.fresh || t.fits(top.node).IsSuccess() {
				return top.node, true, nil
			}
		}
		if t.next == len(t.eligible) {
			if t.changes == 0 || len(t.eligible) == 0 {
				t.full = !t.confined()
				return 0, false, nil
			}
			// Something may fit now that siblings are elsewhere, as with topology spread.
			t.next, t.changes = 0, 0
		}
		if err := t.scan(); err != nil {
			return 0, false, err
		}
	}
}

// leftOut stands for a node that is too full: what is placed on others does not change that.
const leftOut = -1

// scan filters further nodes until enough fit or none is left, and scores those that do.
func (t *Class) scan() error {
	var fit []int
	enough := t.enough()
	for len(fit) < enough && t.next < len(t.eligible) {
		chunk := t.eligible[t.next:min(t.next+enough, len(t.eligible))]
		t.next += len(chunk)
		statuses := make([]*fwk.Status, len(chunk))
		t.Profile.Parallelizer().Until(t.run.ctx, len(chunk), func(i int) { statuses[i] = t.fits(chunk[i]) }, metrics.Filter)
		t.run.work.examined += len(chunk)
		t.run.work.spend(len(chunk))
		for i, status := range statuses {
			switch {
			case status.IsSuccess():
				fit = append(fit, chunk[i])
			case !status.IsRejected():
				return fmt.Errorf("filtering node %s: %w", t.run.Nodes[chunk[i]].Node().Name, status.AsError())
			case status.Plugin() == names.NodeResourcesFit && t.run.copies[t.run.Nodes[chunk[i]].Node().Name] == nil:
				chunk[i] = leftOut
			}
		}
	}
	rest := t.eligible[t.next:]
	seen := slices.DeleteFunc(t.eligible[:t.next], func(i int) bool { return i == leftOut })
	t.next, t.eligible = len(seen), append(seen, rest...)
	if len(fit) == 0 {
		return nil
	}
	return t.score(fit)
}

// fits runs the filters for the member on the node.
func (t *Class) fits(i int) *fwk.Status {
	d := t.run
	node := d.node(i)
	if d.refusals.has(t.class, node.Node().Name) {
		return process.Reject(fwk.Unschedulable, RefusedBefore(d.refusals.said))
	}
	if !d.storage.Fits(t.volumes, node.Node()) {
		return fwk.NewStatus(fwk.Unschedulable, "node(s) did not have enough free storage")
	}
	if slices.ContainsFunc(t.spreads, func(s *account.Spread) bool { return !s.Fits(node.Node()) }) {
		return fwk.NewStatus(fwk.Unschedulable, podtopologyspread.ErrReasonConstraintsNotMatch).
			WithPlugin(podtopologyspread.Name)
	}
	nominated := d.nominated(t, node.Node().Name)
	if len(nominated) > 0 {
		// As the scheduler does: the pod has to fit with and without the pods that are about to come.
		state, with := t.State.Clone(), node.Snapshot()
		for _, info := range nominated {
			with.AddPodInfo(info)
			if status := t.Profile.RunPreFilterExtensionAddPod(d.ctx, state, t.Pod, info, with); !status.IsSuccess() {
				return status
			}
		}
		if status := t.Profile.RunFilterPlugins(d.ctx, state, t.Pod, with); !status.IsSuccess() {
			return status
		}
	}
	return t.Profile.RunFilterPlugins(d.ctx, t.State, t.Pod, node)
}
