package coscheduling

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/kubeview"
)

// board is a trial copy of the cluster within one scheduling cycle, on which a gang is seated with the profile's own
// filters and scores. Nodes are copied only when a member is seated on them.
type board struct {
	ctx   context.Context
	nodes []fwk.NodeInfo
	// index holds the positions of nodes that were asked for, or of all if indexed is set.
	index   map[string]int
	indexed bool
	// copies holds the nodes that members have been seated on, as they are then.
	copies map[string]fwk.NodeInfo
	pods   map[gang.UID]*v1.Pod
	trials map[string]*trial
	// seated lists who was seated, for classes that are opened later.
	seated   []seatedPod
	removed  []seatedPod
	examined int
	// ranks, where set, replaces the profile's scores: the greater the better, 0 for nodes not in it.
	ranks map[string]int64
}

type seatedPod struct {
	info fwk.PodInfo
	node string
}

// newBoard prepares a board for members on nodes.
func (c *coordinator) newBoard(ctx context.Context, members []gang.Member, nodes []fwk.NodeInfo) (*board, error) {
	b := &board{
		ctx:    ctx,
		nodes:  nodes,
		index:  map[string]int{},
		copies: map[string]fwk.NodeInfo{},
		pods:   make(map[gang.UID]*v1.Pod, len(members)),
		trials: map[string]*trial{},
	}
	for i := range members {
		m := &members[i]
		pod := c.pod(m.Ref())
		if pod == nil {
			return nil, fmt.Errorf("member %s/%s has just gone", m.Namespace, m.Name)
		}
		b.pods[m.UID] = pod
		t := b.trials[m.Class]
		if t == nil {
			info, err := framework.NewPodInfo(pod)
			if err != nil {
				return nil, fmt.Errorf("reading pod %s/%s: %w", m.Namespace, m.Name, err)
			}
			info.CalculateResource()
			t = &trial{board: b, pod: pod, info: info, profile: c.profile(pod), reasons: map[string]int{}}
			b.trials[m.Class] = t
		}
		t.members++
	}
	return b, nil
}

// position returns the index of a node. The names of the few that are seated on are noted when they are chosen; only pods
// that are to be removed can lie on any node.
func (b *board) position(name string) (int, bool) {
	i, known := b.index[name]
	if !known && !b.indexed {
		b.indexed = true
		for i, n := range b.nodes {
			b.index[n.Node().Name] = i
		}
		i, known = b.index[name]
	}
	return i, known
}

// node returns the node as it is with everybody seated so far.
func (b *board) node(i int) fwk.NodeInfo {
	if n := b.copies[b.nodes[i].Node().Name]; n != nil {
		return n
	}
	return b.nodes[i]
}

// Best returns the node on which the member is best seated now.
func (b *board) Best(m gang.Member) (string, bool, error) { return b.trials[m.Class].best() }

// Seat seats the member on the node for the rest of the trial.
func (b *board) Seat(m gang.Member, name string) error {
	position, here := b.position(name)
	if !here {
		return fmt.Errorf("seating pod %s on node %s: it is not on the board", m.Name, name)
	}
	// All of a class ask for the same, which is reckoned once.
	info := *b.trials[m.Class].info
	info.Pod = b.pods[m.UID]
	n := b.copies[name]
	if n == nil {
		n = b.nodes[position].Snapshot()
		b.copies[name] = n
	}
	n.AddPodInfo(&info)
	b.seated = append(b.seated, seatedPod{info: &info, node: name})
	for class, t := range b.trials {
		if t.state == nil {
			continue
		}
		if status := t.profile.RunPreFilterExtensionAddPod(b.ctx, t.state, t.pod, &info, n); !status.IsSuccess() {
			return fmt.Errorf("seating pod %s on node %s: %w", m.Name, name, status.AsError())
		}
		if class == m.Class {
			if err := t.reconsider(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// remove takes a pod off its node for the rest of the trial. All pods are removed before the first member is seated.
func (b *board) remove(s seatedPod) error {
	position, here := b.position(s.node)
	if !here {
		return nil
	}
	n := b.copies[s.node]
	if n == nil {
		n = b.nodes[position].Snapshot()
		b.copies[s.node] = n
	}
	if err := n.RemovePod(klog.FromContext(b.ctx), s.info.GetPod()); err != nil {
		return fmt.Errorf("removing pod %s: %w", klog.KObj(s.info.GetPod()), err)
	}
	b.removed = append(b.removed, s)
	return nil
}

// price makes the trial take the cheapest nodes first, those without a price before all others.
func (b *board) price(prices map[string]gang.Price) {
	b.ranks = make(map[string]int64, len(prices))
	for i, name := range slices.SortedFunc(maps.Keys(prices), func(x, y string) int {
		switch {
		case prices[x].Less(prices[y]):
			return -1
		case prices[y].Less(prices[x]):
			return 1
		}
		return strings.Compare(x, y)
	}) {
		b.ranks[name] = -int64(i) - 1
	}
}

// hardness is how large a part of the mean node one member of the class asks for, in the resource where that is most.
func (b *board) hardness(class string) float64 {
	if len(b.trials) < 2 {
		return 0
	}
	info, err := framework.NewPodInfo(b.trials[class].pod)
	if err != nil {
		return 0
	}
	want := info.CalculateResource().Resource
	var cpu, memory int64
	scalar := map[v1.ResourceName]int64{}
	for _, n := range b.nodes {
		a := n.GetAllocatable()
		cpu += a.GetMilliCPU()
		memory += a.GetMemory()
		for name, q := range a.GetScalarResources() {
			scalar[name] += q
		}
	}
	part := func(want, total int64) float64 { return float64(want) * float64(len(b.nodes)) / float64(max(total, 1)) }
	hardest := max(part(want.GetMilliCPU(), cpu), part(want.GetMemory(), memory))
	for name, q := range want.GetScalarResources() {
		hardest = max(hardest, part(q, scalar[name]))
	}
	return hardest
}

func (b *board) describe(class string) string { return kubeview.DescribeRequest(b.trials[class].pod) }

// reasons counts the nodes by what keeps the first class that is short off them.
func (b *board) reasons(r gang.Result) []gang.Reason {
	if len(r.Short) == 0 {
		return nil
	}
	t := b.trials[r.Short[0].Class]
	reasons := make([]gang.Reason, 0, len(t.reasons))
	for text, n := range t.reasons {
		resource, short := strings.CutPrefix(text, "Insufficient ")
		rest, worded := strings.CutPrefix(text, "node(s) ")
		switch {
		case short:
			text = "nodes short of " + resource
		case n == 0:
			text = rest
		case worded:
			text = "nodes " + rest
		default:
			text = "nodes: " + text
		}
		if n == 0 {
			n = len(b.nodes)
		}
		reasons = append(reasons, gang.Reason{Text: text, Nodes: n})
	}
	return reasons
}

// nominated returns the pods that are nominated to the node and before which pod has to yield, without its siblings.
func (b *board) nominated(t *trial, node string) []fwk.PodInfo {
	var out []fwk.PodInfo
	for _, info := range t.profile.NominatedPodsForNode(node) {
		pod := info.GetPod()
		if b.pods[gang.UID(pod.UID)] == nil && corev1helpers.PodPriority(pod) >= corev1helpers.PodPriority(t.pod) {
			out = append(out, info)
		}
	}
	return out
}
