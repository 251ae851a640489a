package nodeagent

import (
	"fmt"
	"slices"
	"strings"

	"berth.dev/berth/pkg/gpuview"
	"berth.dev/berth/pkg/nodeagent/nvidiasmi"
	"berth.dev/berth/pkg/nodeagent/podresources"
	"berth.dev/berth/pkg/wellknown"
)

// hardware is what nvidia-smi tells of the machine.
type hardware struct {
	gpus []nvidiasmi.GPU
	// slices are the indices of GPUs by the UUIDs of their hardware slices.
	slices map[string]int
	// minors are the minor numbers of device files by the UUIDs of GPUs, of those that are known.
	minors map[string]int
	// pairs are how the GPUs are connected; nil when that could not be read for these GPUs.
	pairs []nvidiasmi.Pair
}

// uuids names the GPUs in index order; two machines with the same GPUs give the same name.
func (h *hardware) uuids() string {
	var ids []string
	for _, gpu := range h.gpus {
		ids = append(ids, gpu.UUID)
	}
	return strings.Join(ids, ",")
}

// sliced reports whether any GPU is cut into hardware slices.
func (h *hardware) sliced() bool {
	return slices.ContainsFunc(h.gpus, func(g nvidiasmi.GPU) bool { return g.MIG })
}

// size is the number above all indices.
func (h *hardware) size() int {
	n := 0
	for _, gpu := range h.gpus {
		n = max(n, gpu.Index+1)
	}
	return n
}

// picture is what is published of a node's GPUs.
type picture struct {
	devices []gpuview.PublishedGPU
	inUse   []int
	// strangers are the devices whose GPU is not known.
	strangers []string
}

// draw joins what the machine and the kubelet tell. A GPU is healthy if the driver finds no fault and the kubelet
// offers it. Of what the kubelet does not offer it is the kubelet's answer only if it offers any GPU at all: it offers
// none while the device plugin has not registered, as after a restart, and none of a GPU in MIG mode without slices.
func draw(h *hardware, kubelet *podresources.State) picture {
	var p picture
	names := newIdentifier(h)
	offered := map[int]int{}
	if kubelet != nil {
		for _, held := range kubelet.Held {
			if index, ok := names.index(held.ID); ok {
				p.inUse = append(p.inUse, index)
			} else {
				p.strangers = append(p.strangers, held.ID)
			}
		}
		for _, id := range kubelet.Offered {
			if index, ok := names.index(id); ok {
				offered[index]++
			}
		}
	}
	slices.Sort(p.inUse)
	p.inUse = slices.Compact(p.inUse)
	for _, gpu := range h.gpus {
		device := gpuview.PublishedGPU{
			Index: gpu.Index, UUID: gpu.UUID, Model: strings.ReplaceAll(gpu.Name, " ", "-"), MemMiB: gpu.MemMiB, MIG: gpu.MIG,
			Healthy: gpu.Fault == "" && (gpu.MIG || len(offered) == 0 || offered[gpu.Index] > 0),
		}
		if !gpu.MIG && offered[gpu.Index] > 1 {
			device.Replicas = offered[gpu.Index]
		}
		p.devices = append(p.devices, device)
	}
	return p
}

// annotations are the values of the picture's keys. Links are left out where they are not known or there are none.
func (p *picture) annotations(h *hardware, inUseKnown bool) (map[string]string, error) {
	values := map[string]string{}
	if len(p.devices) == 0 {
		return values, nil
	}
	devices, err := gpuview.EncodeGPUs(p.devices)
	if err != nil {
		return nil, fmt.Errorf("describing the node's GPUs: %w", err)
	}
	values[wellknown.GPUDevicesKey] = devices
	if h.pairs != nil {
		links := make([]gpuview.PublishedLink, 0, len(h.pairs))
		for _, pair := range h.pairs {
			links = append(links, gpuview.PublishedLink{A: pair.A, B: pair.B, Name: pair.Link})
		}
		if values[wellknown.GPULinksKey], err = gpuview.EncodeLinks(links, h.size()); err != nil {
			return nil, fmt.Errorf("describing the node's links: %w", err)
		}
	}
	if inUseKnown {
		values[wellknown.GPUsInUseKey] = gpuview.EncodeInUse(p.inUse)
	}
	return values, nil
}
