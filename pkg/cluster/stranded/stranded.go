// Package stranded says which idle GPUs of a node no pod of a cluster can use: the node has too little CPU or memory
// for each of these pods, too few GPUs that are free enough, or does not match their selectors, affinities and
// tolerations.
//
// The overview of a cluster and the replays count with it. It does not predict future pods: the scheduler's expected
// waste is in package gpu.
package stranded

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/podview"
)

// Need is what a pod needs of one node.
type Need struct {
	// Count GPUs, and of each that many thousandths.
	Count, Milli int
	// CPUMilli in milli-cores, MemoryBytes of the host.
	CPUMilli, MemoryBytes int64
	// Models that the pod accepts; empty for any.
	Models []string
}

// Headroom is what a node has free.
type Headroom struct {
	Node    *v1.Node
	Model   string
	Devices []gpu.Device
	// FreeCPUMilli in milli-cores, FreeMemoryBytes of the host.
	FreeCPUMilli, FreeMemoryBytes int64
}

// Mix has the shapes of the pods that ask for GPUs: what they need, and what restricts their nodes. The zero value is
// empty.
type Mix struct {
	shapes []shape
	known  map[string]bool
}

type shape struct {
	Need
	// pod is one of them: all have the same selector, affinity and tolerations.
	pod *v1.Pod
}

// Add adds a pod. One that needs no GPU does not count.
func (m *Mix) Add(pod *v1.Pod, n Need) {
	if n.Count == 0 {
		return
	}
	var required *v1.NodeSelector
	if a := pod.Spec.Affinity; a != nil && a.NodeAffinity != nil {
		required = a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	key := fmt.Sprintf("%d/%d/%d/%d/%s/%v/%v/%v", n.CPUMilli, n.MemoryBytes, n.Count, n.Milli, strings.Join(n.Models, "|"),
		pod.Spec.NodeSelector, required, pod.Spec.Tolerations)
	if m.known == nil {
		m.known = map[string]bool{}
	}
	if !m.known[key] {
		m.known[key] = true
		m.shapes = append(m.shapes, shape{n, pod})
	}
}

// Usable says of each device whether a pod of some shape could use its idle part. In an empty mix every idle part is
// usable.
func (m *Mix) Usable(r *Headroom) []bool {
	usable := make([]bool, len(r.Devices))
	left := 0
	for _, d := range r.Devices {
		if idle(&d) > 0 {
			left++
		}
	}
	for i := range m.shapes {
		of := &m.shapes[i]
		if left == 0 {
			return usable
		}
		if !of.fits(r) {
			continue
		}
		for i, d := range r.Devices {
			if !usable[i] && idle(&d) > 0 && d.FreeMilli >= of.Milli {
				usable[i] = true
				left--
			}
		}
	}
	for i := range usable {
		usable[i] = usable[i] || len(m.shapes) == 0 && idle(&r.Devices[i]) > 0
	}
	return usable
}

// StrandedMilli is the idle part of the GPUs that no pod of any shape could use, in thousandths of a GPU.
func (m *Mix) StrandedMilli(r *Headroom) int64 {
	milli := 0
	for i, usable := range m.Usable(r) {
		if !usable {
			milli += idle(&r.Devices[i])
		}
	}
	return int64(milli)
}

// idle is the idle part of a device, in thousandths of a GPU.
func idle(d *gpu.Device) int {
	if d.Unhealthy {
		return 0
	}
	return d.FreeMilli
}

func (s *shape) fits(r *Headroom) bool {
	if s.CPUMilli > r.FreeCPUMilli || s.MemoryBytes > r.FreeMemoryBytes || len(s.Models) > 0 &&
		!slices.Contains(s.Models, r.Model) {
		return false
	}
	fitting := 0
	for _, d := range r.Devices {
		if idle(&d) >= s.Milli {
			fitting++
		}
	}
	return fitting >= s.Count && podview.Admits(r.Node, s.pod)
}
