package gpu

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// node makes an inventory of n free GPUs that the tests then change.
func node(n int, change ...func(*Inventory)) *Inventory {
	inv := &Inventory{
		Resource: "nvidia.com/gpu", Model: "NVIDIA-A10", Generation: 86, MemMiB: 24 << 10, Replicas: 1,
		Devices: NewDevices(n, 24<<10), FreeCPUMilli: 64_000, CPUMilli: 64_000,
	}
	for _, c := range change {
		c(inv)
	}
	return inv
}

func shared(inv *Inventory) { inv.Mode, inv.IndexKnown = ModeShared, true }

func take(milli ...int) func(*Inventory) {
	return func(inv *Inventory) {
		for i, m := range milli {
			inv.Occupy([]int{i}, Share{Milli: m, MemMiB: inv.MemMiB * m / WholeMilli})
		}
	}
}

func whole(count int) *Request {
	return &Request{Resource: "nvidia.com/gpu", Count: count, Milli: WholeMilli}
}

func share(milli int) *Request { return &Request{Count: 1, Milli: milli, Shared: true} }

func with(r *Request, change func(*Request)) *Request {
	change(r)
	return r
}

func TestFit(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		inv  *Inventory
		req  *Request
		want Reason
	}{
		{"a pod without GPUs fits a node without GPUs", &Inventory{}, &Request{}, Reason{}},
		{"a GPU-intensive pod needs a GPU node", &Inventory{}, &Request{NeedsGPUNode: true}, Reason{Cause: NoGPU}},
		{"a GPU-intensive pod fits any GPU node", node(1), &Request{NeedsGPUNode: true}, Reason{}},
		{"whole GPUs fit when enough are free", node(8, take(1000, 1000)), whole(6), Reason{}},
		{"a node without GPUs says so", &Inventory{}, whole(1), Reason{Cause: NoGPU}},
		{"a node whose agent lists no GPU says so", &Inventory{Resource: "nvidia.com/gpu", Agent: AgentUnlisted}, whole(1),
			Reason{Cause: Unlisted}},
		{"and a pod for another maker is told of that", &Inventory{Resource: "nvidia.com/gpu", Agent: AgentUnlisted},
			&Request{Resource: "amd.com/gpu", Count: 1, Milli: 1000}, Reason{Cause: NoGPU, Detail: "amd.com/gpu"}},
		{"a node of another maker lacks the resource", node(8), &Request{Resource: "amd.com/gpu", Count: 1, Milli: 1000},
			Reason{Cause: NoGPU, Detail: "amd.com/gpu"}},
		{"too small a node is told by its size", node(4), whole(8), Reason{Cause: TooFewGPUs, Need: 8, Have: 4}},
		{"a full node is told by what is free", node(8, take(1000, 1000, 1000, 1000)), whole(8),
			Reason{Cause: GPUsTaken, Need: 8, Have: 4}},
		{"a GPU of which a share is taken is not whole", node(1, shared, take(1)), whole(1),
			Reason{Cause: GPUsTaken, Need: 1, Have: 0}},
		{"unhealthy GPUs do not count", node(2, func(i *Inventory) { i.Devices[0].Unhealthy = true }), whole(2),
			Reason{Cause: Unhealthy, Need: 2, Have: 1}},
		{"a share fits the GPU that has room", node(2, shared, take(900, 500)), share(500), Reason{}},
		{"a share needs one GPU with room, not two halves", node(2, shared, take(600, 600)), share(500),
			Reason{Cause: ShareTaken, Need: 500, Have: 400}},
		{"a share never goes to a node that does not share", node(2), share(500),
			Reason{Cause: NotShared}},
		{"a share on two devices needs two with room", node(2, shared, take(600)),
			with(share(500), func(r *Request) { r.Count = 2 }),
			Reason{Cause: ShareTaken, Need: 500, Have: 1000}},
		{"a share by memory is refused in memory", node(2, shared, take(900, 500)), &Request{Count: 1, ShareMemMiB: 20 << 10,
			Shared: true},
			Reason{Cause: ShareTaken, Need: 20 << 10, Have: 12 << 10, Detail: "MiB"}},
		{"and so on two GPUs", node(2, shared, take(900, 500)), &Request{Count: 2, ShareMemMiB: 12 << 10, Shared: true},
			Reason{Cause: ShareTaken, Need: 12 << 10, Have: 12 << 10, Detail: "MiB"}},
		{"a share by memory fits by memory", node(1, shared, take(500)), &Request{Count: 1, ShareMemMiB: 12 << 10,
			Shared: true}, Reason{}},
		{"a share by memory above the GPU's own never fits", node(1, shared), &Request{Count: 1, ShareMemMiB: 25 << 10,
			Shared: true},
			Reason{Cause: GPUMemory, Need: 25 << 10, Have: 24 << 10}},
		{"a share by memory needs known memory", node(1, shared, func(i *Inventory) { i.MemMiB = 0 }),
			&Request{Count: 1, ShareMemMiB: 1, Shared: true},
			Reason{Cause: GPUMemory, Need: 1}},
		{"few cores and much memory are limited by memory", node(1, shared, take(600)),
			&Request{Count: 1, Milli: 100, ShareMemMiB: 12 << 10, Shared: true},
			Reason{Cause: ShareTaken, Need: 12 << 10, Have: 9831, Detail: "MiB"}},
		{"whole GPUs keep off shares that nothing enforces", node(8, shared, func(i *Inventory) { i.SharesInUse = true }),
			whole(1),
			Reason{Cause: Mixed, Detail: "shares of GPUs"}},
		{"shares keep off whole GPUs that the kubelet gave out", node(8, shared, func(i *Inventory) { i.WholeInUse = true }),
			share(100),
			Reason{Cause: Mixed, Detail: "whole GPUs in use"}},
		{"whole GPUs keep off shares that are left of a shared node", node(8, func(i *Inventory) { i.SharesInUse = true }),
			whole(1), Reason{Cause: SharesLeft}},
		{"time slices do too", node(2, sliced(8), func(i *Inventory) { i.SharesInUse = true }), whole(1),
			Reason{Cause: SharesLeft}},
		{"whole GPUs go beside whole GPUs", node(8, shared, func(i *Inventory) { i.WholeInUse = true }), whole(1), Reason{}},
		{"shares go beside shares", node(8, shared, func(i *Inventory) { i.SharesInUse = true }), share(100), Reason{}},
		{"an agent keeps them apart", node(8, shared, func(i *Inventory) {
			i.Agent, i.SharesInUse = AgentDeclared, true
		}), whole(1),
			Reason{}},
		{"a share that an agent must serve needs one that registers devices",
			node(8, shared, func(i *Inventory) { i.Agent = AgentDeclared }),
			with(share(100), func(r *Request) { r.ByAgent = true }),
			Reason{Cause: NoShareAgent}},
		{"a node that registered its devices serves it",
			node(8, shared, func(i *Inventory) { i.Agent = AgentRegistered }),
			with(share(100), func(r *Request) { r.ByAgent = true }), Reason{}},
		{"all of the memory is taken by a share of the compute", node(1, shared, take(100)),
			with(share(100), func(r *Request) { r.ShareMemMilli = 1000 }),
			Reason{Cause: ShareTaken, Need: 24 << 10, Have: 22119, Detail: "MiB"}},
		{"a GPU serves as many containers as it may", node(2, shared, limited(2), take(100, 100), take(100)), share(100),
			Reason{}},
		{"and no more, however much is free", node(2, shared, limited(1), take(100, 100)), share(100),
			Reason{Cause: TasksTaken, Need: 1}},
		{"two GPUs with room for a container each", node(2, shared, limited(2), take(100, 100), take(100)),
			with(share(100), func(r *Request) { r.Count = 2 }),
			Reason{Cause: TasksTaken, Need: 2, Have: 1}},
		{"too little compute is the first that is said", node(2, shared, limited(1), take(900, 900)), share(200),
			Reason{Cause: ShareTaken, Need: 200, Have: 100}},
		{"less memory than asked for", node(8), with(whole(1), func(r *Request) { r.MinMemMiB = 40 << 10 }),
			Reason{Cause: GPUMemory, Need: 40 << 10, Have: 24 << 10}},
		{"a model that is not accepted", node(8), with(whole(1), func(r *Request) { r.Models = []string{"Tesla-T4"} }),
			Reason{Cause: WrongModel, Detail: "NVIDIA-A10"}},
		{"models compare without regard to case", node(8),
			with(whole(1), func(r *Request) { r.Models = []string{"nvidia-a10"} }), Reason{}},
		{"exclusive GPUs are not time-sliced", node(2, sliced(8)),
			with(whole(1), func(r *Request) { r.Sharing = SharingExclusive }),
			Reason{Cause: NotExclusive}},
		{"a whole GPU of a shared node is exclusive", node(2, shared),
			with(whole(1), func(r *Request) { r.Sharing = SharingExclusive }), Reason{}},
		{"time slices never stand in for several GPUs", node(2, sliced(8)), whole(2), Reason{Cause: Replicas, Need: 2}},
		{"one GPU may be a time slice", node(2, sliced(1)), whole(1), Reason{}},
		{"several slices are given to who asks for slices", node(2, sliced(3)),
			with(whole(3), func(r *Request) { r.Sharing = SharingAllowed }), Reason{}},
		{"slices run out like GPUs", node(2, sliced(0)), whole(1), Reason{Cause: GPUsTaken, Need: 1}},
		{"NVLink is required and absent", node(8), with(whole(2), func(r *Request) { r.Interconnect = InterconnectRequired }),
			Reason{Cause: NotLinked, Need: 2, Have: 1}},
		{"NVLink is required and there", node(8, meshed),
			with(whole(8), func(r *Request) { r.Interconnect = InterconnectRequired }), Reason{}},
		{"one GPU needs no link", node(1), with(whole(1), func(r *Request) { r.Interconnect = InterconnectRequired }),
			Reason{}},
		{"a node about to leave takes no GPU pod", node(8, func(i *Inventory) { i.Leaving = "karpenter.sh/disrupted" }),
			whole(1),
			Reason{Cause: NodeLeaving, Detail: "karpenter.sh/disrupted"}},
		{"hardware slices are counted by profile",
			&Inventory{Slices: []SliceCount{{Resource: "nvidia.com/mig-1g.5gb", Count: 2, Milli: 142}}},
			&Request{Slices: []SliceCount{{Resource: "nvidia.com/mig-1g.5gb", Count: 3, Milli: 142}}},
			Reason{Cause: SlicesTaken, Need: 3, Have: 2, Detail: "nvidia.com/mig-1g.5gb"}},
		{"a profile that the node lacks",
			&Inventory{Slices: []SliceCount{{Resource: "nvidia.com/mig-1g.5gb", Count: 2, Milli: 142}}},
			&Request{Slices: []SliceCount{{Resource: "nvidia.com/mig-3g.20gb", Count: 1, Milli: 428}}},
			Reason{Cause: SlicesTaken, Need: 1, Detail: "nvidia.com/mig-3g.20gb"}},
		{"claims are checked elsewhere", &Inventory{Mode: ModeDRA}, whole(8), Reason{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, Fit(tc.inv, tc.req)); diff != "" {
				t.Errorf("Fit (-want +got):\n%s", diff)
			}
		})
	}
}

// limited lets a number of containers use each GPU.
func limited(tasks int) func(*Inventory) {
	return func(inv *Inventory) {
		for i := range inv.Devices {
			inv.Devices[i].TaskLimit = tasks
		}
	}
}

// sliced cuts each GPU into four replicas; free of them are left on the node.
func sliced(free int) func(*Inventory) {
	return func(inv *Inventory) { inv.Replicas, inv.FreeReplicas = 4, free }
}

func meshed(inv *Inventory) { inv.Links = Mesh(len(inv.Devices)) }

func TestReasonSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		reason Reason
		// kind is what the text is grouped by, empty where it is the text itself.
		want, kind string
		evictable  bool
	}{
		{Reason{Cause: NoGPU}, "node(s) without GPUs", "", false},
		{Reason{Cause: NoGPU, Detail: "amd.com/gpu"}, "node(s) without amd.com/gpu", "", false},
		{Reason{Cause: TooFewGPUs, Need: 8, Have: 4}, "node(s) with too few GPUs (need 8, have 4)",
			"node(s) with too few GPUs", false},
		{Reason{Cause: GPUsTaken, Need: 8, Have: 4}, "node(s) with too few free GPUs (need 8, have 4)",
			"node(s) with too few free GPUs", true},
		{Reason{Cause: ShareTaken, Need: 500, Have: 320},
			"node(s) without a free GPU share (need 500 milli-GPU on one GPU, have under 400)",
			"node(s) without a free GPU share", true},
		{Reason{Cause: ShareTaken, Need: 350, Have: 320},
			"node(s) without a free GPU share (need 350 milli-GPU on one GPU, have under 350)",
			"node(s) without a free GPU share", true},
		{Reason{Cause: ShareTaken, Need: 9000, Have: 5000, Detail: "MiB"},
			"node(s) without a free GPU share (need 9000 MiB on one GPU, have under 5120)",
			"node(s) without a free GPU share", true},
		{Reason{Cause: TasksTaken, Need: 1}, "node(s) whose GPUs are used by as many containers as allowed (need 1, have 0)",
			"node(s) whose GPUs are used by as many containers as allowed", true},
		{Reason{Cause: GPUMemory, Need: 40960, Have: 24576},
			"node(s) with too little GPU memory (need 40960 MiB per GPU, have 24576)", "node(s) with too little GPU memory",
			false},
		{Reason{Cause: GPUMemory, Need: 40960}, "node(s) with unknown GPU memory (need 40960 MiB per GPU)",
			"node(s) with unknown GPU memory", false},
		{Reason{Cause: WrongModel, Detail: "Tesla-T4"}, "node(s) with another GPU model (Tesla-T4)", "", false},
		{Reason{Cause: WrongModel}, "node(s) with an unknown GPU model", "", false},
		{Reason{Cause: NotLinked, Need: 4, Have: 8}, "node(s) without 4 NVLink-connected free GPUs",
			"node(s) without enough NVLink-connected free GPUs", true},
		{Reason{Cause: NotLinked, Need: 4, Have: 2}, "node(s) without 4 NVLink-connected free GPUs",
			"node(s) without enough NVLink-connected free GPUs", false},
		{Reason{Cause: Replicas, Need: 4},
			"node(s) with time-sliced GPUs (need 4 physical GPUs, or annotation berth.dev/gpu-sharing: shared)",
			"node(s) with time-sliced GPUs", false},
		{Reason{Cause: SlicesTaken, Need: 2, Detail: "nvidia.com/mig-1g.5gb"},
			"node(s) with too few free nvidia.com/mig-1g.5gb (need 2, have 0)",
			"node(s) with too few free nvidia.com/mig-1g.5gb", true},
		{Reason{Cause: Unhealthy, Need: 2, Have: 1}, "node(s) with too few healthy GPUs (need 2, have 1)",
			"node(s) with too few healthy GPUs", false},
		{Reason{Cause: Mixed, Detail: "shares of GPUs"},
			"node(s) with shares of GPUs and no agent that keeps shares and whole GPUs apart", "", true},
		{Reason{Cause: NodeLeaving, Detail: "karpenter.sh/disrupted"},
			"node(s) about to leave (karpenter.sh/disrupted)", "", false},
		{Reason{Cause: Unlisted}, "node(s) whose agent lists no GPU", "", false},
		{Reason{Cause: SharesLeft},
			"node(s) that are no longer in shared mode, but on which pods still use shares of GPUs", "", true},
		{Reason{Cause: NoSliceAgent}, "node(s) whose agent gives out no slices of GPUs", "", false},
		{Reason{Cause: NotShared}, "node(s) that do not share GPUs", "", false},
		{Reason{Cause: NotWhole}, "node(s) with slices of GPUs (exclusive ones were asked for)", "", false},
		{Reason{Cause: Replicas, Need: 2, Detail: "nvidia.com/mig-1g.5gb"},
			"node(s) with slices of GPUs (need 2 physical GPUs, or annotation berth.dev/gpu-sharing: shared)",
			"node(s) with slices of GPUs", false},
		{Reason{Cause: SmallNode, Need: 4000}, "node(s) with too little CPU for CPU-intensive pods (need 4000 milli-cores)",
			"node(s) with too little CPU for CPU-intensive pods", false},
	} {
		t.Run(tc.want, func(t *testing.T) {
			t.Parallel()
			if got := tc.reason.String(); got != tc.want {
				t.Errorf("String() = %q, want %q", got, tc.want)
			}
			kind := tc.kind
			if kind == "" {
				kind = tc.want
			}
			if got := tc.reason.Kind(); got != kind {
				t.Errorf("Kind() = %q, want %q", got, kind)
			}
			if got := tc.reason.Evictable(); got != tc.evictable {
				t.Errorf("Evictable() = %v, want %v", got, tc.evictable)
			}
		})
	}
}
