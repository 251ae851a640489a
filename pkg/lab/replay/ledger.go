package replay

import (
	"sort"

	v1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/pkg/cluster/stranded"
	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/pkg/podview"
)

// ledger records the allocations of every node from the bindings, independently of the scheduler's own state.
type ledger struct {
	keys  gpuview.Keys
	nodes map[string]*nodeState
	order []*nodeState

	capacityMilli  int64
	allocatedMilli int64 // requested by pods that can run
	spotMilli      int64 // the part of it on spot nodes
	excessMilli    int64 // allocated to pods beyond their requests
	waitingMilli   int64 // allocated to incomplete gangs, which cannot run
	microDollars   int64 // an hour, of the nodes in use
	nodesInUse     int
	unpriced       int

	// mix counts all pods that have arrived.
	mix stranded.Mix
}

type nodeState struct {
	name, model         string
	node                *v1.Node
	inv                 gpu.Inventory
	freeCPU, freeMemory int64
	microDollars        int64
	spot                bool
	pods                int
}

// allocation is the part of a node that one pod has.
type allocation struct {
	node    *nodeState
	devices []int
	share   gpu.Share
	// milli is its GPU request, and taken what it has of the GPUs, in thousandths of a GPU.
	milli, taken int64
	cpu          int64
	memory       int64
	counted      bool
	// canRun is false for the members of a gang that has too few of them on nodes.
	canRun bool
}

func newLedger(keys gpuview.Keys) *ledger {
	return &ledger{keys: keys, nodes: map[string]*nodeState{}}
}

// addNode adds a node with its price an hour, if that is known.
func (l *ledger) addNode(node *v1.Node, microDollars int64, priced, spot bool) {
	if l.nodes[node.Name] != nil {
		return
	}
	read, _ := l.keys.ReadGPUNode(node)
	info := framework.NewNodeInfo()
	info.SetNode(node)
	n := &nodeState{
		name: node.Name, node: node, model: read.Model(),
		inv:     gpu.Inventory{Mode: gpu.ModeShared, Model: read.Model(), Devices: gpu.NewDevices(read.GPUs(), 0)},
		freeCPU: info.GetAllocatable().GetMilliCPU(), freeMemory: info.GetAllocatable().GetMemory(),
		microDollars: microDollars, spot: spot,
	}
	if !priced {
		l.unpriced++
	}
	l.nodes[n.name] = n
	l.order = append(l.order, n)
	l.capacityMilli += int64(read.GPUs()) * gpu.WholeMilli
}

// finish orders the nodes by name, so that no result depends on the order in which they were added.
func (l *ledger) finish() {
	sort.Slice(l.order, func(i, j int) bool { return l.order[i].name < l.order[j].name })
}

// request returns the GPU request, the milli-CPU and the bytes of a pod. An invalid GPU request counts as none.
func (l *ledger) request(pod *v1.Pod) (gpu.Request, int64, int64) {
	asked, err := l.keys.PodGPURequest(pod)
	if err != nil {
		asked.Request = gpu.Request{}
	}
	requests := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
	return asked.Request, requests.Cpu().MilliValue(), requests.Memory().Value()
}

// place allocates a bound pod, which can run unless setCanRun changes that. needMilli is its GPU request, which is less
// than its allocation where a share takes a whole GPU.
func (l *ledger) place(pod *v1.Pod, needMilli int64) *allocation {
	n := l.nodes[pod.Spec.NodeName]
	if n == nil {
		return nil
	}
	r, cpu, memory := l.request(pod)
	a := &allocation{node: n, cpu: cpu, memory: memory, milli: needMilli, taken: needMilli,
		counted: !podview.BelongsToNode(pod), canRun: true}
	share, ok := r.ShareOn(0)
	if ok && r.Count > 0 {
		a.share = gpu.Share{Milli: share.Milli}
		a.devices = gpuview.AssignedDevices(pod)
		if len(a.devices) != r.Count || !n.inv.CanTake(a.devices, a.share) {
			// The scheduler has checked the links between GPUs, which are unknown here.
			r.Interconnect = gpu.InterconnectAny
			a.devices, _, _ = gpu.Choose(&n.inv, &r)
		}
		if len(a.devices) > 0 && n.inv.Take(a.devices, a.share) {
			a.taken = int64(len(a.devices) * a.share.Milli)
		} else {
			a.devices = nil // more than the node has, for example with time slices
		}
	}
	n.freeCPU -= cpu
	n.freeMemory -= memory
	l.add(a, 1)
	if a.counted {
		n.pods++
		if n.pods == 1 {
			l.nodesInUse++
			l.microDollars += n.microDollars
		}
	}
	return a
}

// setCanRun changes whether the pod of the allocation can run.
func (l *ledger) setCanRun(a *allocation, canRun bool) {
	l.add(a, -1)
	a.canRun = canRun
	l.add(a, 1)
}

// add adds the GPUs of an allocation to the sums, and subtracts them with sign -1.
func (l *ledger) add(a *allocation, sign int64) {
	if !a.canRun {
		l.waitingMilli += sign * a.taken
		return
	}
	l.allocatedMilli += sign * a.milli
	l.excessMilli += sign * (a.taken - a.milli)
	if a.node.spot {
		l.spotMilli += sign * a.milli
	}
}

// heldMilli is what is allocated to pods and not used: beyond their requests, or while their gang is incomplete.
func (l *ledger) heldMilli() int64 { return l.excessMilli + l.waitingMilli }

// release undoes place.
func (l *ledger) release(a *allocation) {
	n := a.node
	n.inv.Give(a.devices, a.share)
	n.freeCPU += a.cpu
	n.freeMemory += a.memory
	l.add(a, -1)
	if a.counted {
		n.pods--
		if n.pods == 0 {
			l.nodesInUse--
			l.microDollars -= n.microDollars
		}
	}
}

// strandedMilli is the idle part of GPUs that no pod of the mix could use, and heldMilli.
func (l *ledger) strandedMilli() int64 {
	total := l.heldMilli()
	for _, n := range l.order {
		total += l.mix.StrandedMilli(&stranded.Headroom{Node: n.node, Model: n.model, Devices: n.inv.Devices,
			FreeCPUMilli: n.freeCPU, FreeMemoryBytes: n.freeMemory})
	}
	return total
}
