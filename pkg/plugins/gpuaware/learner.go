package gpuaware

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"

	"berth.dev/berth/pkg/claimview"
	"berth.dev/berth/pkg/gangview"
	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/gpu/mix"
	"berth.dev/berth/pkg/gpuview"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/signals"
)

// learnt is the demand as it was last drawn up. It is immutable but for the cache inside.
type learnt struct {
	// number counts from 1; it is never given twice.
	number uint64
	demand *gpu.Demand
}

// learner learns the mix of the workload from the pods that are given a node, and the capacity that they share. It
// draws up the mix in the informers' goroutines, never in a scheduling cycle.
type learner struct {
	keys   *gpuview.Keys
	gangs  *gangview.Gangs
	claims *claimview.GPUs
	now    atomic.Pointer[learnt]

	mu  sync.Mutex
	mix *mix.Mix
	// groups are those with a pod that has arrived, until the mix is known.
	groups map[string]struct{}
	// lastGroup is that of the last pod, once it is.
	lastGroup string
	nodes     map[string]gpuNode
	// capacity is GPUs by model, sizes are nodes by how many GPUs they have, memories nodes by the memory of their GPUs,
	// doors nodes by their taints.
	capacity mix.Capacity
	sizes    map[int]int
	memories map[int]int
	doors    map[string]door
	// gpus is all capacity, counted what it was, and in how many models, when the pressure was last worked out.
	gpus, counted, countedModels int
	// cliques is how many nodes are in an NVLink domain that spans nodes.
	cliques atomic.Int64
	// hits and misses are those of caches that are no longer in use.
	hits, misses uint64
}

// gpuNode is what counts of a node.
type gpuNode struct {
	model  string
	gpus   int
	memMiB int
	door   string
	// linked reports that NVLink connects some of them.
	linked bool
	// nvidia reports that DCGM measures the GPUs.
	nvidia bool
	// hostname is the label by which exporters may name the node.
	hostname string
	clique   string
}

// door is the taints that keep pods out of some nodes.
type door struct {
	taints []v1.Taint
	nodes  int
}

func newLearner(keys *gpuview.Keys, gangs *gangview.Gangs, claims *claimview.GPUs) *learner {
	l := &learner{
		keys: keys, gangs: gangs, claims: claims, mix: mix.New(), groups: map[string]struct{}{},
		nodes: map[string]gpuNode{}, capacity: mix.Capacity{}, sizes: map[int]int{}, memories: map[int]int{},
		doors: map[string]door{},
	}
	l.now.Store(&learnt{number: 1, demand: gpu.NewDemand(l.mix.Distribution(), nil, 0)})
	return l
}

// learnt returns the mix in use.
func (l *learner) learnt() *learnt { return l.now.Load() }

// observe counts a pod in as one of that class.
func (l *learner) observe(class mix.Class, pod *v1.Pod) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mix.Observe(class, ownerOf(pod), l.independent(pod))
	now := l.now.Load()
	d := l.mix.Redraw(now.demand.Distribution())
	if d == nil {
		return
	}
	hits, misses := now.demand.Stranding().CacheCounts()
	l.hits, l.misses = l.hits+hits, l.misses+misses
	l.now.Store(&learnt{number: now.number + 1, demand: gpu.NewDemand(d, l.capacity, l.largest())})
}

// started counts a pod of that class that was given a node.
func (l *learner) started(class mix.Class, pod *v1.Pod) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mix.Started(class, ownerOf(pod), began(pod))
}

// ended counts a pod of that class that has left its node.
func (l *learner) ended(class mix.Class, pod *v1.Pod, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mix.Ended(class, ownerOf(pod), began(pod), at)
}

// began is when the pod was given its node, or was created if its status does not say.
func began(pod *v1.Pod) time.Time {
	if at, ok := podview.ScheduledAt(pod); ok {
		return at
	}
	return pod.CreationTimestamp.Time
}

// classOf reads what a pod is to the mix. Pods that can only ever run outside of the GPU nodes are no part of it: they
// say nothing of how those fill up. It returns known as false for pods that may claim GPUs, only not how many is known.
func (l *learner) classOf(ctx context.Context, pod *v1.Pod) (class mix.Class, mixed, known bool) {
	request, err := l.keys.PodGPURequest(pod)
	return l.classBy(ctx, pod, request, err)
}

// classBy is classOf where the pod's request, or why there is none, has been read already.
func (l *learner) classBy(ctx context.Context, pod *v1.Pod, request gpuview.Request, err error) (class mix.Class,
	mixed, known bool) {
	if err != nil || podview.BelongsToNode(pod) {
		return mix.Class{}, false, true
	}
	if !request.WantsGPU() {
		claimed, known := l.claims.Demand(ctx, l.claims.Pod(pod)) // without the lock: it may take long
		if !known && (len(pod.Spec.ResourceClaims) > 0 || l.claims.Serves(pod)) {
			return mix.Class{}, false, false
		}
		request.Count, request.Milli, request.Slices = claimed.Count, claimed.Milli, claimed.Slices
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !request.WantsGPU() && !l.admitted(pod) {
		return mix.Class{}, false, true
	}
	return gpu.ClassOf(&request.Request, l.typicalMemMiB(&request.Request)), true, true
}

// ownerOf names who made the pod. The Jobs of a CronJob and the ReplicaSets of a Deployment, which differ in what
// follows the last hyphen, are one controller.
func ownerOf(pod *v1.Pod) mix.Owner {
	owner := podview.ControllerOf(pod)
	if owner == nil {
		return mix.Owner{Namespace: pod.Namespace}
	}
	name := owner.Name
	if at := strings.LastIndexByte(name, '-'); at > 0 && (owner.Kind == "Job" || owner.Kind == "ReplicaSet") {
		name = name[:at]
	}
	return mix.Owner{Namespace: pod.Namespace, Controller: pod.Namespace + "/" + owner.Kind + "/" + name}
}

// independent reports whether the pod is the first of its group or, once the mix is known, of another group than the
// pod before it.
func (l *learner) independent(pod *v1.Pod) bool {
	group := groupOf(l.gangs, pod)
	if l.mix.Known() {
		before := l.lastGroup
		l.groups, l.lastGroup = nil, group
		return group == "" || group != before
	}
	if _, seen := l.groups[group]; seen && group != "" {
		return false
	}
	l.groups[group] = struct{}{}
	return true
}

// admitted reports whether any GPU node lets the pod in by its taints. With no node known yet all pods count.
func (l *learner) admitted(pod *v1.Pod) bool {
	for _, d := range l.doors {
		_, untolerated := corev1helpers.FindMatchingUntoleratedTaint(klog.Background(), d.taints, pod.Spec.Tolerations, nil,
			false)
		if !untolerated {
			return true
		}
	}
	return len(l.doors) == 0
}

// typicalMemMiB is a GPU memory against which a share given by memory is counted: the least in the cluster that holds
// the share.
func (l *learner) typicalMemMiB(r *gpu.Request) int {
	least := 0
	for m := range l.memories {
		if m >= r.ShareMemMiB && (least == 0 || m < least) {
			least = m
		}
	}
	return least
}

// cacheCounts is how many packing values were found in the cache so far, and how many computed.
func (l *learner) cacheCounts() (hits, misses uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	hits, misses = l.now.Load().demand.Stranding().CacheCounts()
	return l.hits + hits, l.misses + misses
}

// nodeSeen counts a node's GPUs in the capacity.
func (l *learner) nodeSeen(n *gpuview.Node) {
	name := n.Node.Name
	if n.GPUs() == 0 && n.Clique == "" {
		l.nodeGone(name)
		return
	}
	var taints []v1.Taint
	for _, t := range n.Node.Spec.Taints {
		if t.Effect != v1.TaintEffectPreferNoSchedule {
			taints = append(taints, t)
		}
	}
	now := gpuNode{
		model: n.Model(), gpus: n.WholeGPUs(), memMiB: n.MemMiB(), nvidia: n.NVIDIA(),
		linked:   n.Empty().Links.LargestLinked(n.WholeGPUs()) > 1,
		hostname: n.Node.Labels[v1.LabelHostname], clique: n.Clique,
	}
	for _, t := range taints {
		now.door += t.ToString() + " "
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.nodes[name] == now {
		return
	}
	l.remove(name)
	l.nodes[name] = now
	if now.gpus > 0 {
		l.capacity[now.model] = mix.Stock{
			GPUs: l.capacity[now.model].GPUs + now.gpus, MemMiB: now.memMiB, Linked: now.linked,
		}
	}
	l.gpus += now.gpus
	l.sizes[now.gpus]++
	l.memories[now.memMiB]++
	if now.clique != "" {
		l.cliques.Add(1)
	}
	l.doors[now.door] = door{taints, l.doors[now.door].nodes + 1}
	l.recount()
}

// nodeGone takes them out.
func (l *learner) nodeGone(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.remove(name) {
		l.recount()
	}
}

// hasCliques reports whether NVLink connects any nodes with each other.
func (l *learner) hasCliques() bool { return l.cliques.Load() > 0 }

// byClique counts pods by the NVLink domains of their nodes. Those on nodes without GPUs do not count.
func (l *learner) byClique(nodes []string) *siblings {
	l.mu.Lock()
	defer l.mu.Unlock()
	found := &siblings{byClique: map[string]int{}}
	for _, name := range nodes {
		if n, ok := l.nodes[name]; ok {
			found.byClique[n.clique]++
			found.total++
		}
	}
	return found
}

// gpuNodes lists the nodes whose GPUs are measured, under the names that series may give them: DCGM knows NVIDIA's
// alone.
func (l *learner) gpuNodes() []signals.Node {
	l.mu.Lock()
	defer l.mu.Unlock()
	nodes := make([]signals.Node, 0, len(l.nodes))
	for name, n := range l.nodes {
		if n.nvidia {
			nodes = append(nodes, signals.Node{Name: name, Hostname: n.hostname})
		}
	}
	return nodes
}

func (l *learner) remove(name string) bool {
	n, ok := l.nodes[name]
	if !ok {
		return false
	}
	delete(l.nodes, name)
	if n.clique != "" {
		l.cliques.Add(-1)
	}
	l.gpus -= n.gpus
	stock := l.capacity[n.model]
	if stock.GPUs -= n.gpus; stock.GPUs > 0 {
		l.capacity[n.model] = stock
	} else {
		delete(l.capacity, n.model)
	}
	if l.sizes[n.gpus]--; l.sizes[n.gpus] == 0 {
		delete(l.sizes, n.gpus)
	}
	if l.memories[n.memMiB]--; l.memories[n.memMiB] == 0 {
		delete(l.memories, n.memMiB)
	}
	d := l.doors[n.door]
	if d.nodes--; d.nodes == 0 {
		delete(l.doors, n.door)
	} else {
		l.doors[n.door] = d
	}
	return true
}

// largest is the most GPUs of one node.
func (l *learner) largest() int {
	most := 0
	for gpus := range l.sizes {
		most = max(most, gpus)
	}
	return most
}

// recount spreads the demand over the capacity as it is now, if that has changed by more than a fiftieth: a fleet that
// starts up or is replaced arrives one node at a time.
func (l *learner) recount() {
	if change := l.gpus - l.counted; len(l.capacity) == l.countedModels && max(change, -change)*50 <= l.counted {
		return
	}
	l.counted, l.countedModels = l.gpus, len(l.capacity)
	now := l.now.Load()
	l.now.Store(&learnt{number: now.number + 1, demand: now.demand.WithCapacity(l.capacity, l.largest())})
}
