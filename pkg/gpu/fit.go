package gpu

import "strconv"

// Cause is why a node cannot serve a request.
type Cause uint8

const (
	// Fits means that the node can serve the request.
	Fits Cause = iota
	// NoGPU means that the node has no GPU, or none under the resource asked for.
	NoGPU
	// TooFewGPUs means that the node has fewer healthy GPUs than asked for even when it is empty.
	TooFewGPUs
	// GPUsTaken means that the node has enough GPUs, but too few are free.
	GPUsTaken
	// ShareTaken means that too few GPUs have the share free.
	ShareTaken
	// TasksTaken means that GPUs have the share free, but may not be used by more containers.
	TasksTaken
	// GPUMemory means that its GPUs have less memory than asked for, or it is unknown.
	GPUMemory
	// WrongModel means that its GPUs are of a product that the pod does not accept.
	WrongModel
	// NotLinked means that no free set of that many GPUs is connected by NVLink.
	NotLinked
	// NotShared means that a share was asked for and the node does not share its GPUs.
	NotShared
	// NoShareAgent means that no agent on the node serves the kind of share that was asked for.
	NoShareAgent
	// NoSliceAgent means that the agent which gives out the node's GPUs gives out no hardware slices.
	NoSliceAgent
	// Unlisted means that the agent which gives out the node's GPUs lists none.
	Unlisted
	// NotExclusive means that exclusive GPUs were asked for and the node shares its GPUs.
	NotExclusive
	// NotWhole means that exclusive GPUs were asked for and the node has hardware slices of GPUs.
	NotWhole
	// Replicas means that the pod would get time slices or hardware slices in place of physical GPUs.
	Replicas
	// SlicesTaken means that too few hardware slices of a profile are free.
	SlicesTaken
	// Unhealthy means that too few GPUs are healthy.
	Unhealthy
	// Mixed means that shares and whole GPUs would run on the node at once with nothing that keeps them apart.
	Mixed
	// SharesLeft means that shares are in use from the time when the node was shared; now the kubelet gives out its GPUs.
	SharesLeft
	// SmallNode means that the node has less CPU than a node for CPU-intensive pods must have.
	SmallNode
	// NodeLeaving means that a taint announces that the node is going to be removed.
	NodeLeaving
)

// Reason is a cause with its numbers.
type Reason struct {
	Cause Cause
	// Need and Have are in the unit of the cause: GPUs, milli-GPU, MiB or slices.
	Need, Have int
	// Detail is a product, a resource, a taint, what runs on the node, or the unit of a share if it is not milli-GPU.
	Detail string
}

// Evictable reports whether removing pods from the node could make the request fit.
func (r Reason) Evictable() bool {
	switch r.Cause {
	case GPUsTaken, ShareTaken, TasksTaken, SlicesTaken, Mixed, SharesLeft:
		return true
	case NotLinked:
		// Have counts the largest linked set of the empty node.
		return r.Have >= r.Need
	default:
		return false
	}
}

// Own reports whether the node could not serve the request even if it were empty.
func (r Reason) Own() bool {
	switch r.Cause {
	case NoGPU, TooFewGPUs, WrongModel, GPUMemory:
		return true
	default:
		return false
	}
}

// summaries are the messages by cause, where they depend on neither hardware nor amounts.
var summaries = [...]string{
	NoGPU:        "node(s) without GPUs",
	TooFewGPUs:   "node(s) with too few GPUs",
	GPUsTaken:    "node(s) with too few free GPUs",
	ShareTaken:   "node(s) without a free GPU share",
	TasksTaken:   "node(s) whose GPUs are used by as many containers as allowed",
	GPUMemory:    "node(s) with too little GPU memory",
	WrongModel:   "node(s) with an unknown GPU model",
	NotLinked:    "node(s) without enough NVLink-connected free GPUs",
	NotShared:    "node(s) that do not share GPUs",
	NoShareAgent: "node(s) without an agent that serves such shares of GPUs",
	NoSliceAgent: "node(s) whose agent gives out no slices of GPUs",
	Unlisted:     "node(s) whose agent lists no GPU",
	NotExclusive: "node(s) that share GPUs (exclusive ones were asked for)",
	NotWhole:     "node(s) with slices of GPUs (exclusive ones were asked for)",
	Replicas:     "node(s) with time-sliced GPUs",
	Unhealthy:    "node(s) with too few healthy GPUs",
	SharesLeft:   "node(s) that are no longer in shared mode, but on which pods still use shares of GPUs",
	SmallNode:    "node(s) with too little CPU for CPU-intensive pods",
}

// Kind is the message without amounts, which differ from pod to pod and node to node.
func (r Reason) Kind() string {
	switch {
	case r.Cause == NoGPU && r.Detail != "":
		return "node(s) without " + r.Detail
	case r.Cause == GPUMemory && r.Have == 0:
		return "node(s) with unknown GPU memory"
	case r.Cause == WrongModel && r.Detail != "":
		return "node(s) with another GPU model (" + r.Detail + ")"
	case r.Cause == Replicas && r.Detail != "":
		return "node(s) with slices of GPUs"
	case r.Cause == SlicesTaken:
		return "node(s) with too few free " + r.Detail
	case r.Cause == Mixed:
		return "node(s) with " + r.Detail + " and no agent that keeps shares and whole GPUs apart"
	case r.Cause == NodeLeaving:
		return "node(s) about to leave (" + r.Detail + ")"
	default:
		return summaries[r.Cause]
	}
}

// String is the message. Nodes with the same shortage have equal messages, which the scheduler counts, so that the user
// sees how many nodes have how many free GPUs. It concatenates because it may be called for every node.
func (r Reason) String() string {
	need, have := strconv.Itoa(r.Need), strconv.Itoa(r.Have)
	switch r.Cause {
	case TooFewGPUs, GPUsTaken, TasksTaken, SlicesTaken, Unhealthy:
		return r.Kind() + " (need " + need + ", have " + have + ")"
	case ShareTaken:
		// Steps keep the number of distinct reasons small however the shares are cut.
		unit, step := "milli-GPU", 100
		if r.Detail != "" {
			unit, step = r.Detail, 1<<10
		}
		under := strconv.Itoa(min(r.Need, r.Have/step*step+step))
		return r.Kind() + " (need " + need + " " + unit + " on one GPU, have under " + under + ")"
	case GPUMemory:
		if r.Have == 0 {
			return r.Kind() + " (need " + need + " MiB per GPU)"
		}
		return r.Kind() + " (need " + need + " MiB per GPU, have " + have + ")"
	case NotLinked:
		return "node(s) without " + need + " NVLink-connected free GPUs"
	case Replicas:
		return r.Kind() + " (need " + need + " physical GPUs, or annotation berth.dev/gpu-sharing: shared)"
	case SmallNode:
		return r.Kind() + " (need " + need + " milli-cores)"
	default:
		return r.Kind()
	}
}

// Fit reports whether the node can serve the request now, and if not, the first cause. Causes that no eviction can
// cure are tested before those that one can.
func Fit(inv *Inventory, r *Request) Reason {
	if !inv.unlike() {
		return fit(inv, r)
	}
	var reason Reason
	for i, part := range inv.parts(r) {
		found := fit(part, r)
		if found.Cause == Fits {
			return found
		}
		if i == 0 || !reason.Evictable() {
			reason = found
		}
	}
	return reason
}

// fit is Fit for a node whose devices are alike to the request.
func fit(inv *Inventory, r *Request) Reason {
	if !r.WantsGPU() {
		if inv.CPUMilli < r.MinNodeCPUMilli {
			return Reason{Cause: SmallNode, Need: int(r.MinNodeCPUMilli)}
		}
		if r.NeedsGPUNode && !inv.HasGPU() {
			return Reason{Cause: NoGPU}
		}
		return Reason{}
	}
	if inv.Leaving != "" {
		return Reason{Cause: NodeLeaving, Detail: inv.Leaving}
	}
	if inv.Mode == ModeDRA && !r.Shared && len(inv.Devices) == 0 {
		return Reason{} // the devices are known only to those who read the slices
	}
	if reason := fitEmpty(inv, r); reason.Cause != Fits {
		return reason
	}
	wanted := inv.wanted(r)
	for _, want := range wanted {
		if have := inv.freeSlices(want.Resource); have < want.Count {
			return Reason{Cause: SlicesTaken, Need: want.Count, Have: have, Detail: want.Resource}
		}
	}
	if r.Count == 0 || inv.slice(r.Resource) != nil {
		return Reason{}
	}
	if inv.Mode == ModeDevicePlugin && inv.SharesInUse {
		return Reason{Cause: SharesLeft}
	}
	if inv.TimeSliced() {
		if inv.FreeReplicas < r.Count {
			return Reason{Cause: GPUsTaken, Need: r.Count, Have: inv.FreeReplicas}
		}
		return Reason{}
	}
	return fitFree(inv, r)
}

// fitEmpty tests what does not depend on the pods that run on the node.
func fitEmpty(inv *Inventory, r *Request) Reason {
	sliced := !r.Shared && r.Count > 0 && inv.slice(r.Resource) != nil
	switch {
	case !inv.HasGPU():
		return Reason{Cause: NoGPU}
	case inv.Agent == AgentUnlisted && (r.Resource == "" || r.Resource == inv.Resource):
		return Reason{Cause: Unlisted}
	case inv.Agent == AgentRegistered && len(r.Slices) > 0:
		return Reason{Cause: NoSliceAgent}
	case sliced && r.Sharing == SharingExclusive:
		return Reason{Cause: NotWhole}
	case !sliced && r.Count > 0 && len(inv.Devices) == 0 && inv.Mode != ModeDRA,
		r.Count > 0 && r.Resource != "" && r.Resource != inv.Resource && inv.Mode != ModeDRA:
		return Reason{Cause: NoGPU, Detail: r.Resource}
	case r.Shared && inv.Mode != ModeShared:
		return Reason{Cause: NotShared}
	case r.ByAgent && inv.Agent != AgentRegistered:
		return Reason{Cause: NoShareAgent}
	case r.Sharing == SharingExclusive && (inv.Mode == ModeShared || inv.TimeSliced()) && !r.Whole(),
		r.Sharing == SharingExclusive && inv.TimeSliced():
		return Reason{Cause: NotExclusive}
	case !r.AcceptsModel(inv.Model):
		return Reason{Cause: WrongModel, Detail: inv.Model}
	case r.MinMemMiB > 0 && inv.memoryFor(r) < r.MinMemMiB:
		return Reason{Cause: GPUMemory, Need: r.MinMemMiB, Have: inv.memoryFor(r)}
	case r.Count == 0:
		return Reason{}
	case sliced:
		return fitParts(r, inv.slice(r.Resource).Total, r.Resource)
	case inv.TimeSliced():
		return fitParts(r, inv.Healthy()*inv.Replicas, "")
	case len(inv.Devices) < r.Count:
		return Reason{Cause: TooFewGPUs, Need: r.Count, Have: len(inv.Devices)}
	case inv.Healthy() < r.Count:
		return Reason{Cause: Unhealthy, Need: r.Count, Have: inv.Healthy()}
	}
	if _, ok := r.ShareOn(inv.MemMiB); !ok {
		return Reason{Cause: GPUMemory, Need: r.ShareMemMiB, Have: inv.MemMiB}
	}
	return Reason{}
}

// fitParts is fitEmpty for a node that offers parts of GPUs as GPUs; parts is how many it has.
func fitParts(r *Request, parts int, resource string) Reason {
	switch {
	case parts < r.Count:
		return Reason{Cause: TooFewGPUs, Need: r.Count, Have: parts}
	case r.needsLinks():
		return Reason{Cause: NotLinked, Need: r.Count}
	case r.Count > 1 && r.Sharing != SharingAllowed:
		return Reason{Cause: Replicas, Need: r.Count, Detail: resource}
	}
	return Reason{}
}

// fitFree tests what is free now.
func fitFree(inv *Inventory, r *Request) Reason {
	// Without an agent the kubelet gives out any device, even one that a pod has a share of.
	switch {
	case inv.Mode != ModeShared || inv.Agent != AgentNone:
	case r.Resource != "" && inv.SharesInUse:
		return Reason{Cause: Mixed, Detail: "shares of GPUs"}
	case r.Resource == "" && inv.WholeInUse:
		return Reason{Cause: Mixed, Detail: "whole GPUs in use"}
	}
	if r.Whole() {
		return fitWhole(inv, r)
	}
	return fitShare(inv, r)
}

func fitWhole(inv *Inventory, r *Request) Reason {
	if have := inv.FreeWhole(); have < r.Count {
		return Reason{Cause: GPUsTaken, Need: r.Count, Have: have}
	}
	if r.needsLinks() {
		if _, ok := inv.bestFree(r.Count, true); !ok {
			return Reason{Cause: NotLinked, Need: r.Count, Have: inv.Links.LargestLinked(len(inv.Devices))}
		}
	}
	return Reason{}
}

func fitShare(inv *Inventory, r *Request) Reason {
	share, _ := r.ShareOn(inv.MemMiB)
	n, free, computing, largestMiB, largestMilli := 0, 0, 0, 0, 0
	byMemory := r.Milli == 0 && r.ShareMemMiB > 0
	for i, d := range inv.Devices {
		if !d.Unhealthy {
			largestMilli = max(largestMilli, d.FreeMilli)
		}
		switch {
		case inv.HasFree(i, Share{Milli: share.Milli}):
			computing++
			largestMiB = max(largestMiB, d.FreeMemMiB)
		case byMemory && !d.Unhealthy:
			// A request for memory alone takes compute in proportion, so that it gets no more memory than this.
			largestMiB = max(largestMiB, min(d.FreeMemMiB, d.FreeMilli*inv.MemMiB/WholeMilli))
		}
		if inv.canTake(i, share) {
			n++
		}
		if inv.HasFree(i, share) {
			free++
		}
	}
	switch {
	case n < r.Count && free >= r.Count:
		return Reason{Cause: TasksTaken, Need: r.Count, Have: n}
	case n < r.Count && (computing >= r.Count || byMemory):
		return Reason{Cause: ShareTaken, Need: share.MemMiB, Have: largestMiB, Detail: "MiB"}
	case n < r.Count:
		return Reason{Cause: ShareTaken, Need: share.Milli, Have: largestMilli}
	}
	return Reason{}
}

// freeSlices counts the free slices of one profile.
func (inv *Inventory) freeSlices(resource string) int {
	if s := inv.slice(resource); s != nil {
		return s.Count
	}
	return 0
}

// memoryFor is the memory of each GPU or slice that serves the request, the least where they differ; 0 when unknown.
func (inv *Inventory) memoryFor(r *Request) int {
	least := inv.MemMiB
	for i, w := range inv.wanted(r) {
		if s := inv.slice(w.Resource); s != nil && (i == 0 || s.Profile.MemMiB < least) {
			least = s.Profile.MemMiB
		}
	}
	return least
}
