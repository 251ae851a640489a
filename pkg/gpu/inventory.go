package gpu

import (
	"slices"
)

// WholeMilli is one physical GPU in milli-GPU.
const WholeMilli = 1000

// Mode says who decides which device a pod gets.
type Mode uint8

const (
	// ModeDevicePlugin is a node whose kubelet picks devices: the scheduler knows how many are free, not which.
	ModeDevicePlugin Mode = iota
	// ModeShared is a node on which the scheduler owns the device index of every pod, whole GPUs included.
	ModeShared
	// ModeDRA is a node whose devices are served from ResourceSlices by dynamic resource allocation.
	ModeDRA
)

// Agent is what on a shared node enforces that a pod uses only the devices assigned to it.
type Agent uint8

const (
	// AgentNone means that nothing enforces it.
	AgentNone Agent = iota
	// AgentDeclared means that a label of the node names an agent.
	AgentDeclared
	// AgentRegistered means that the agent lists the devices and gives them out when the kubelet asks for them.
	AgentRegistered
	// AgentUnlisted means that the agent's list has no device or cannot be read. Devices are those that the node is known
	// to have all the same.
	AgentUnlisted
)

// Lists reports whether the agent is one that lists devices, even if its list cannot be read.
func (a Agent) Lists() bool { return a == AgentRegistered || a == AgentUnlisted }

// Device is one physical GPU (or one MIG slice of a node that advertises slices as GPUs).
type Device struct {
	// FreeMilli is the compute that is assigned to no pod.
	FreeMilli int
	// FreeMemMiB is the memory that is assigned to no pod; meaningless while Inventory.MemMiB is 0.
	FreeMemMiB int
	// MemMiB is the memory of the device where those of the node differ in it, else 0.
	MemMiB int
	// Unhealthy devices are never given out.
	Unhealthy bool
	// TaskLimit is how many containers may use the device at a time; 0 for any number. Tasks is how many do, where that is
	// limited.
	TaskLimit, Tasks int
}

// count adds the containers of a pod to those that use the device.
func (d *Device) count(tasks int) {
	if d.TaskLimit > 0 {
		d.Tasks += tasks
	}
}

// tasksLeft is how many more containers may use the device; -1 for any number.
func (d Device) tasksLeft() int {
	if d.TaskLimit == 0 {
		return -1
	}
	return max(0, d.TaskLimit-d.Tasks)
}

// whole reports whether nothing of the device is assigned.
func (d Device) whole() bool { return !d.Unhealthy && d.FreeMilli >= WholeMilli && d.tasksLeft() != 0 }

// SliceCount counts the hardware slices (MIG) of one profile, by the name of their extended resource.
type SliceCount struct {
	Resource string
	// Count is free slices in an inventory, wanted slices in a request.
	Count int
	// Milli is the share of a physical GPU's compute that one slice is before it is cut into time slices.
	Milli int
	// Total is how many slices the node has, free or not; only in an inventory.
	Total int
	// Profile is the geometry of the slice; only in an inventory.
	Profile Profile
	// Replicas is into how many time slices each is cut; 0 and 1 for none. Then Count and Total are time slices.
	Replicas int
}

// Inventory is what the scheduler knows of the GPUs of one node at one moment. The zero value is a node without GPUs.
type Inventory struct {
	Mode Mode
	// Resource is the extended resource under which whole GPUs are advertised, such as nvidia.com/gpu.
	Resource string
	// Model is the product name, without the suffixes that sharing adds; empty when unknown.
	Model string
	// Generation is the CUDA compute capability times ten (A100 = 80); 0 when unknown.
	Generation int
	// MemMiB is the memory of each GPU, the least where they differ; 0 when unknown.
	MemMiB int
	// Replicas is into how many time slices or MPS clients the device plugin cuts each GPU; 1 when it does not.
	Replicas int
	// FreeReplicas is how many such replicas are free; used only when Replicas > 1.
	FreeReplicas int
	// Devices in index order.
	Devices []Device
	// Slices are free hardware slices, under resource names of their own or, where all are alike, under Resource.
	Slices []SliceCount
	// SlicedGPUs is how many physical GPUs are cut into slices. They are none of Devices.
	SlicedGPUs int
	// Links is the interconnect; nil when the GPUs are not linked or nothing is known.
	Links *Links
	// Agent is what enforces the assignment of devices on the node.
	Agent Agent
	// WholeInUse and SharesInUse report, for a shared node without an agent, that pods run there to which the kubelet gave
	// GPUs, and pods that use the devices assigned to them. On a node in ModeDevicePlugin that was shared before, such
	// shares may be in use too.
	WholeInUse, SharesInUse bool
	// IndexKnown reports that FreeMilli is true of each index and not only in sum.
	IndexKnown bool
	// Leaving names the taint by which the node announces its end; empty when it stays.
	Leaving string
	// InUse is set while a pod runs on the node that does not belong to the node as a pod of a DaemonSet does.
	InUse bool
	// FreeCPUMilli and CPUMilli are the node's unrequested and allocatable CPU.
	FreeCPUMilli, CPUMilli int64
}

// HasGPU reports whether the node has any GPU or GPU slice, as far as is known, or serves them by claims.
func (inv *Inventory) HasGPU() bool {
	return len(inv.Devices) > 0 || len(inv.Slices) > 0 || inv.Mode == ModeDRA ||
		inv.Agent == AgentUnlisted
}

// TimeSliced reports whether what the node calls a GPU is a replica of one.
func (inv *Inventory) TimeSliced() bool { return inv.Replicas > 1 }

// Serves reports whether the node hands out GPUs or slices under the names that the request uses. A request that names
// none is for any.
func (inv *Inventory) Serves(r *Request) bool {
	if r.Resource != "" {
		return r.Resource == inv.Resource
	}
	return len(r.Slices) == 0 || inv.slice(r.Slices[0].Resource) != nil
}

// slice finds the slices that the node advertises under a resource name, nil if it has none.
func (inv *Inventory) slice(resource string) *SliceCount {
	for i := range inv.Slices {
		if inv.Slices[i].Resource == resource {
			return &inv.Slices[i]
		}
	}
	return nil
}

// wanted are the slices that serve the request on the node: those that it names, or the requested number of those that
// the node hands out under the name of GPUs.
func (inv *Inventory) wanted(r *Request) []SliceCount {
	if r.Count > 0 && !r.Shared && r.Resource != "" && inv.slice(r.Resource) != nil {
		return []SliceCount{{Resource: r.Resource, Count: r.Count}}
	}
	return r.Slices
}

// SlicedMilli is the part of physical GPUs, in milli-GPU, that the slices serving the request take, 1 at least.
func (inv *Inventory) SlicedMilli(r *Request) int {
	sum := 0
	for _, w := range inv.wanted(r) {
		if s := inv.slice(w.Resource); s != nil {
			sum += max(1, s.takenMilli(w.Count))
		}
	}
	return sum
}

// FreeSlicedMilli is the part of physical GPUs, in milli-GPU, that free slices are: what the slices in use leave of the
// GPUs that are cut, so that each GPU counts once however it is cut. Where the number of GPUs is not known, it is the
// sum of the free slices.
func (inv *Inventory) FreeSlicedMilli() int {
	free, used := 0, 0
	for i := range inv.Slices {
		s := &inv.Slices[i]
		free += s.takenMilli(s.Count)
		used += s.takenMilli(s.Total - s.Count)
	}
	if inv.SlicedGPUs == 0 {
		return free
	}
	if used == 0 {
		return inv.SlicedGPUs * WholeMilli
	}
	return min(free, max(0, inv.SlicedGPUs*WholeMilli-used))
}

// takenMilli is the part of physical GPUs, in milli-GPU, that n of the slices take from others.
func (s *SliceCount) takenMilli(n int) int {
	milli := s.Milli
	if s.Profile != (Profile{}) {
		milli = s.Profile.takenMilli()
	}
	return n * milli / max(1, s.Replicas)
}

// Clone returns a copy that shares nothing that Take or Give changes.
func (inv *Inventory) Clone() *Inventory {
	c := *inv
	c.Devices = slices.Clone(inv.Devices)
	c.Slices = slices.Clone(inv.Slices)
	return &c
}

// FreeMilli sums the free compute of healthy devices.
func (inv *Inventory) FreeMilli() int {
	sum := 0
	for _, d := range inv.Devices {
		if !d.Unhealthy {
			sum += d.FreeMilli
		}
	}
	return sum
}

// FreeWhole counts devices without any assigned part.
func (inv *Inventory) FreeWhole() int { return inv.devicesThat(Device.whole).count }

// Healthy counts devices that may be given out.
func (inv *Inventory) Healthy() int {
	return inv.devicesThat(func(d Device) bool { return !d.Unhealthy }).count
}

// Share is what one pod takes of each of its devices.
type Share struct {
	Milli  int
	MemMiB int
	// Tasks is how many of its containers use the device at a time; 0 stands for one.
	Tasks int
}

func (s Share) tasks() int { return max(1, s.Tasks) }

// CanTake reports whether every device of the set has the share free. A repeated or unknown index cannot be taken.
func (inv *Inventory) CanTake(devices []int, s Share) bool {
	for n, i := range devices {
		if slices.Contains(devices[:n], i) || !inv.canTake(i, s) {
			return false
		}
	}
	return true
}

// canTake reports whether device i has the share free and may be used by as many more containers as the share has.
func (inv *Inventory) canTake(i int, s Share) bool {
	return inv.HasFree(i, s) && (inv.Devices[i].TaskLimit == 0 || inv.Devices[i].tasksLeft() >= s.tasks())
}

// HasFree reports whether device i has the compute and memory of the share free, however many containers use it.
func (inv *Inventory) HasFree(i int, s Share) bool {
	if i < 0 || i >= len(inv.Devices) {
		return false
	}
	d := inv.Devices[i]
	return !d.Unhealthy && d.FreeMilli >= s.Milli && (inv.MemMiB == 0 || d.FreeMemMiB >= s.MemMiB)
}

// Take assigns the share of every device of the set; it changes nothing and returns false where CanTake is false.
func (inv *Inventory) Take(devices []int, s Share) bool {
	if !inv.CanTake(devices, s) {
		return false
	}
	for _, i := range devices {
		inv.Devices[i].FreeMilli -= s.Milli
		inv.Devices[i].FreeMemMiB -= s.MemMiB
		if inv.all(s) {
			inv.Devices[i].FreeMemMiB = 0
		}
		inv.Devices[i].count(s.tasks())
	}
	return true
}

// Occupy assigns what is left of the devices, up to the share: for pods that run there already, whether or not it fits.
func (inv *Inventory) Occupy(devices []int, s Share) {
	for _, i := range devices {
		if i < 0 || i >= len(inv.Devices) {
			continue
		}
		d := &inv.Devices[i]
		d.FreeMilli = max(0, d.FreeMilli-s.Milli)
		d.FreeMemMiB = max(0, d.FreeMemMiB-s.MemMiB)
		if inv.all(s) {
			d.FreeMemMiB = 0
		}
		d.count(s.tasks())
	}
}

// Give returns a share that Take assigned.
func (inv *Inventory) Give(devices []int, s Share) {
	for _, i := range devices {
		inv.Devices[i].FreeMilli += s.Milli
		inv.Devices[i].FreeMemMiB += s.MemMiB
		if inv.all(s) {
			inv.Devices[i].FreeMemMiB = inv.MemoryOf(i)
		}
		inv.Devices[i].count(-s.tasks())
	}
}

// NewDevices makes n free devices of memMiB each.
func NewDevices(n, memMiB int) []Device {
	d := make([]Device, n)
	for i := range d {
		d[i] = Device{FreeMilli: WholeMilli, FreeMemMiB: memMiB}
	}
	return d
}
