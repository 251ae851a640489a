package replay

import (
	"sort"

	v1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/pkg/cluster/stranded"
	"berth.dev/berth/pkg/cost/price"
	"berth.dev/berth/pkg/cost/priceview"
	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/pkg/podview"
)

// priceOf is what a node costs, as it states itself or by the configuration.
type priceOf func(*v1.Node) (price.MicroDollars, bool)

// ledger knows what every node holds, by what was bound and not by what the scheduler believes.
type ledger struct {
	keys  gpuview.Keys
	rules priceview.CapacityRules
	priceOf
	nodes map[string]*nodeState
	order []*nodeState

	capacityMilli  int64
	allocatedMilli int64 // asked for by work that can run
	spotMilli      int64 // of it, on spot nodes
	excessMilli    int64 // held by pods that need less
	waitingMilli   int64 // held by gangs that are not complete and so cannot run
	microDollars   int64 // an hour, of the nodes in use
	nodesInUse     int
	unpriced       int

	// kinds are those of the pods that came so far.
	kinds stranded.Kinds
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

// holding is what one pod takes of its node.
type holding struct {
	node    *nodeState
	devices []int
	share   gpu.Share
	// milli is its need, and taken what it holds of its GPUs.
	milli, taken int64
	cpu          int64
	memory       int64
	counted      bool
	// works says that the pod can run: it is of no gang, or of one that has as many members as it needs.
	works bool
}

func newLedger(keys gpuview.Keys, rules priceview.CapacityRules, priceOf priceOf) *ledger {
	return &ledger{keys: keys, rules: rules, priceOf: priceOf, nodes: map[string]*nodeState{}}
}

func (l *ledger) addNode(node *v1.Node) {
	if l.nodes[node.Name] != nil {
		return
	}
	read, _ := l.keys.ReadGPUNode(node)
	micro, priced := l.priceOf(node)
	info := framework.NewNodeInfo()
	info.SetNode(node)
	n := &nodeState{
		name: node.Name, node: node, model: read.Model(),
		inv:     gpu.Inventory{Mode: gpu.ModeShared, Model: read.Model(), Devices: gpu.NewDevices(read.GPUs(), 0)},
		freeCPU: info.GetAllocatable().GetMilliCPU(), freeMemory: info.GetAllocatable().GetMemory(),
		microDollars: int64(micro), spot: l.rules.TypeOf(node) == priceview.Spot,
	}
	if !priced {
		l.unpriced++
	}
	l.nodes[n.name] = n
	l.order = append(l.order, n)
	l.capacityMilli += int64(read.GPUs()) * gpu.WholeMilli
}

// finish orders the nodes by name, so that nothing depends on the order in which they were added.
func (l *ledger) finish() {
	sort.Slice(l.order, func(i, j int) bool { return l.order[i].name < l.order[j].name })
}

// request reads what a pod asks for. A request that cannot be read asks for no GPU.
func (l *ledger) request(pod *v1.Pod) (gpu.Request, int64, int64) {
	asked, err := l.keys.PodGPURequest(pod)
	if err != nil {
		asked.Request = gpu.Request{}
	}
	requests := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
	return asked.Request, requests.Cpu().MilliValue(), requests.Memory().Value()
}

// place books a bound pod, which works until run says otherwise. needMilli is what it needs, which is less than what it
// takes where a share takes a whole GPU.
func (l *ledger) place(pod *v1.Pod, needMilli int64) *holding {
	n := l.nodes[pod.Spec.NodeName]
	if n == nil {
		return nil
	}
	r, cpu, memory := l.request(pod)
	h := &holding{node: n, cpu: cpu, memory: memory, milli: needMilli, taken: needMilli,
		counted: !podview.BelongsToNode(pod), works: true}
	share, ok := r.ShareOn(0)
	if ok && r.Count > 0 {
		h.share = gpu.Share{Milli: share.Milli}
		h.devices = gpuview.AssignedDevices(pod)
		if len(h.devices) != r.Count || !n.inv.CanTake(h.devices, h.share) {
			// The scheduler has seen to the links, which are not known here.
			r.Interconnect = gpu.InterconnectAny
			h.devices, _, _ = gpu.Choose(&n.inv, &r)
		}
		if len(h.devices) > 0 && n.inv.Take(h.devices, h.share) {
			h.taken = int64(len(h.devices) * h.share.Milli)
		} else {
			h.devices = nil // more than the node has, as where the kubelet hands out time slices
		}
	}
	n.freeCPU -= cpu
	n.freeMemory -= memory
	l.add(h, 1)
	if h.counted {
		n.pods++
		if n.pods == 1 {
			l.nodesInUse++
			l.microDollars += n.microDollars
		}
	}
	return h
}

// run says whether the pod that holds this can run.
func (l *ledger) run(h *holding, works bool) {
	l.add(h, -1)
	h.works = works
	l.add(h, 1)
}

// add counts the GPUs of a holding, or no longer with sign -1.
func (l *ledger) add(h *holding, sign int64) {
	if !h.works {
		l.waitingMilli += sign * h.taken
		return
	}
	l.allocatedMilli += sign * h.milli
	l.excessMilli += sign * (h.taken - h.milli)
	if h.node.spot {
		l.spotMilli += sign * h.milli
	}
}

// heldMilli is what pods hold without working with it: beyond their need, or while their gang is not complete.
func (l *ledger) heldMilli() int64 { return l.excessMilli + l.waitingMilli }

// release undoes place.
func (l *ledger) release(h *holding) {
	n := h.node
	n.inv.Give(h.devices, h.share)
	n.freeCPU += h.cpu
	n.freeMemory += h.memory
	l.add(h, -1)
	if h.counted {
		n.pods--
		if n.pods == 0 {
			l.nodesInUse--
			l.microDollars -= n.microDollars
		}
	}
}

// strandedMilli is the idle GPU that no pod of those kinds could use, and what pods hold without working with it.
func (l *ledger) strandedMilli() int64 {
	total := l.heldMilli()
	for _, n := range l.order {
		total += l.kinds.Milli(&stranded.Room{Node: n.node, Model: n.model, Devices: n.inv.Devices, FreeCPUMilli: n.freeCPU,
			FreeMemoryBytes: n.freeMemory})
	}
	return total
}
