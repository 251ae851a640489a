package gpu

import (
	"slices"
	"strings"
)

// Interconnect is what a pod asks of the links among its GPUs.
type Interconnect uint8

const (
	// InterconnectAny asks nothing.
	InterconnectAny Interconnect = iota
	// InterconnectPreferred takes the best connected set that is free.
	InterconnectPreferred
	// InterconnectRequired takes only a set that is connected by NVLink.
	InterconnectRequired
)

// Sharing is whether a pod accepts a GPU that others use too.
type Sharing uint8

const (
	// SharingAny lets one GPU be a time slice, but never takes several time slices for several GPUs.
	SharingAny Sharing = iota
	// SharingExclusive refuses time-sliced and shared nodes.
	SharingExclusive
	// SharingAllowed accepts time slices in any number.
	SharingAllowed
)

// Request is what one pod asks of a node's GPUs. The zero value asks for none.
type Request struct {
	// Resource is the extended resource asked for; empty when the pod asks by annotation only.
	Resource string
	// Count is how many distinct GPUs.
	Count int
	// Milli is the compute of each GPU: WholeMilli for whole GPUs, less for a share, 0 when the share is given by memory.
	Milli int
	// ShareMemMiB is the memory of each GPU that the share takes; 0 means in proportion to Milli.
	ShareMemMiB int
	// ShareMemMilli is that memory in thousandths of the GPU's, where it is given so and not in proportion to Milli.
	ShareMemMilli int
	// ByAgent reports that only an agent in state AgentRegistered can serve the share.
	ByAgent bool
	// Shared reports that the pod asked in a sharing dialect, so that only a node in ModeShared can serve it.
	Shared bool
	// Slices are hardware slices asked for by their own resource names.
	Slices []SliceCount

	// MinMemMiB is the least memory that each GPU must have; 0 for any.
	MinMemMiB int
	// Models are the acceptable products, sorted; empty for any.
	Models       []string
	Interconnect Interconnect
	Sharing      Sharing
	// NeedsGPUNode asks for a node with GPUs without asking for a GPU.
	NeedsGPUNode bool
	// AvoidsGPUNode asks to be kept off nodes with GPUs while another fits.
	AvoidsGPUNode bool
	// MinNodeCPUMilli is the least CPU that the node must have; 0 for any.
	MinNodeCPUMilli int64
	// CPUMilli is the pod's CPU request.
	CPUMilli int64
}

// AsksNothing reports that the pod asks nothing of GPUs, and not to be kept off their nodes either.
func (r *Request) AsksNothing() bool {
	return !r.WantsGPU() && !r.NeedsGPUNode && !r.AvoidsGPUNode && r.MinMemMiB == 0 && r.MinNodeCPUMilli == 0 &&
		len(r.Models) == 0 && r.Interconnect == InterconnectAny && r.Sharing == SharingAny
}

// WantsGPU reports whether the pod asks for any GPU or slice.
func (r *Request) WantsGPU() bool { return r.Count > 0 || len(r.Slices) > 0 }

// needsLinks reports whether NVLink must connect the GPUs of the pod.
func (r *Request) needsLinks() bool { return r.Count > 1 && r.Interconnect == InterconnectRequired }

// Whole reports whether the pod takes its GPUs entirely.
func (r *Request) Whole() bool { return r.Count > 0 && r.Milli >= WholeMilli }

// ShareOn resolves the share against GPUs of memMiB each. It returns false when the share is given by memory and the
// memory is unknown or too small.
func (r *Request) ShareOn(memMiB int) (Share, bool) {
	s := Share{Milli: r.Milli, MemMiB: r.ShareMemMiB}
	if s.MemMiB > 0 {
		if memMiB <= 0 || s.MemMiB > memMiB {
			return s, false
		}
		if s.Milli == 0 {
			s.Milli = MilliOf(s.MemMiB, memMiB)
		}
		return s, true
	}
	memMilli := s.Milli
	if r.ShareMemMilli > 0 {
		memMilli = r.ShareMemMilli
	}
	s.MemMiB = memMiB * memMilli / WholeMilli
	return s, true
}

// MilliOf is the compute that counts with a part of a GPU's memory, 1 at least. It is rounded down, so that three
// shares of a third of the memory fit, not two. The memory bounds how many pods get the GPU.
func MilliOf(partMiB, memMiB int) int { return max(1, min(WholeMilli, partMiB*WholeMilli/memMiB)) }

// TotalMilli is the compute that the pod asks for in sum; a share given by memory counts on GPUs of memMiB each.
func (r *Request) TotalMilli(memMiB int) int {
	sum := 0
	if s, ok := r.ShareOn(memMiB); ok {
		sum = s.Milli * r.Count
	}
	for _, sl := range r.Slices {
		sum += sl.Count * sl.Milli
	}
	return sum
}

// AcceptsModel reports whether the request accepts a GPU of that product. Letter case does not matter.
func (r *Request) AcceptsModel(model string) bool {
	if len(r.Models) == 0 {
		return true
	}
	return slices.ContainsFunc(r.Models, func(m string) bool { return strings.EqualFold(m, model) })
}

// ShapeOf is the shape of a request; a share given by memory counts on GPUs of memMiB each.
func ShapeOf(r *Request, memMiB int) Shape {
	c := Shape{CPUMilli: r.CPUMilli, Count: r.Count}
	if s, ok := r.ShareOn(memMiB); ok && r.Count > 0 {
		c.Milli = min(s.Milli, WholeMilli)
	} else {
		c.Count = 0
	}
	if c.Count == 0 {
		countSlices(&c, r.Slices)
	}
	c.MinMemMiB, c.Linked = r.MinMemMiB, c.Count > 1 && r.Interconnect == InterconnectRequired
	c.Models = strings.Join(r.Models, "|")
	return c
}

// countSlices counts slices of several sizes as equal parts of the same number of GPUs.
func countSlices(c *Shape, wanted []SliceCount) {
	names := make([]string, 0, len(wanted))
	milli := 0
	for _, s := range wanted {
		c.Count += s.Count
		milli += s.Count * s.Milli
		names = append(names, s.Resource)
	}
	c.Milli, c.Slices = milli/max(1, c.Count), strings.Join(names, ",")
}

// accepts reports whether the request runs on GPUs of that model.
func accepts(c Capacity, r *Request, model string) bool {
	return r.AcceptsModel(model) && c[model].Serves(r.MinMemMiB, r.needsLinks())
}
