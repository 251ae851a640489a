package gpuaware

import (
	"fmt"
	"slices"

	"berth.dev/berth/pkg/gpu"
)

// on reports whether the pod counts on the node: promised devices, or there. Of pods that others put there only what
// they ask for by resources counts.
func (p *modelPod) on(node string) bool {
	if p.holds != nil {
		return p.holds.node == node
	}
	return p.step == bound && p.object.Spec.NodeName == node || p.assumed != nil && p.assumed.Spec.NodeName == node
}

// free is what is left of each device of a node whose devices the scheduler chooses, if all pods there are its own.
func (m *model) free(n *modelNode) []gpu.Device {
	devices := make([]gpu.Device, len(n.gpus))
	for i, name := range n.gpus {
		d := gpu.Device{FreeMilli: gpu.WholeMilli, FreeMemMiB: t4MiB, Unhealthy: n.sick[name]}
		if n.kind == hami {
			d.TaskLimit = tasksOfAHAMi
		}
		for _, p := range m.pods {
			if p.holds == nil || p.holds.node != n.name || !slices.Contains(p.holds.gpus, name) {
				continue
			}
			d.FreeMilli -= p.holds.share.Milli
			d.FreeMemMiB -= p.holds.share.MemMiB
			if d.TaskLimit > 0 {
				d.Tasks++
			}
		}
		devices[i] = d
	}
	return devices
}

// requested sums what all pods on the node ask for of a resource.
func (m *model) requested(n *modelNode, name string) int {
	sum := 0
	for _, p := range m.pods {
		if p.on(n.name) && p.ask.resource == name {
			sum += p.ask.count
		}
	}
	return sum
}

// fits is whether the node has room for what the pod asks; unsure where others hold unknown devices.
func (m *model) fits(n *modelNode, a ask) (fits, sure bool) {
	if a.resource == migResource {
		return n.kind == mig && n.migs-m.requested(n, migResource) >= a.count, true
	}
	isWhole := a.resource == "nvidia.com/gpu" && !a.byHAMi
	if !n.kind.owned() {
		left := len(n.gpus) - m.requested(n, "nvidia.com/gpu")
		if n.kind == sliced {
			return isWhole && a.count == 1 && len(n.gpus)*timeSlices-m.requested(n, "nvidia.com/gpu") >= 1, true
		}
		return isWhole && left >= a.count, true
	}
	if a.byHAMi && n.kind != hami {
		return false, true
	}
	for _, p := range m.pods {
		if !p.on(n.name) {
			continue
		}
		if p.foreign && p.ask.resource == "nvidia.com/gpu" {
			return false, false
		}
		if others := p.ask.resource != ""; n.kind == plain && !p.foreign && p.ask.resource != migResource &&
			others != isWhole {
			return false, true // shares and whole GPUs with nothing between them
		}
	}
	room := 0
	for _, d := range m.free(n) {
		switch {
		case d.Unhealthy, d.TaskLimit > 0 && d.Tasks >= d.TaskLimit:
		case a.share.Milli == gpu.WholeMilli && d.FreeMilli == gpu.WholeMilli,
			a.share.Milli < gpu.WholeMilli && d.FreeMilli >= a.share.Milli && d.FreeMemMiB >= a.share.MemMiB:
			room++
		}
	}
	return room >= a.count, true
}

// promised checks what a pod was promised: the right number of devices, with room for it.
func (m *model) promised(p *modelPod, n *modelNode) {
	a, ok := m.h.plugin.shared.ledger.of(p.object.UID)
	if !ok || a.Node != n.name || len(a.Devices) != p.ask.count || a.Share.Milli != p.ask.share.Milli ||
		a.Share.MemMiB != p.ask.share.MemMiB {
		m.t.Fatalf("%s asks for %+v on %s and was promised %+v, %t\n%s", p.object.Name, p.ask, n.name, a, ok, m)
	}
	h := &hold{node: n.name, share: p.ask.share}
	for i, d := range a.Devices {
		name := fmt.Sprint(d)
		if n.kind == hami {
			name = a.UUIDs[i]
		}
		if slices.Contains(h.gpus, name) {
			m.t.Fatalf("%s was promised device %s of %s twice", p.object.Name, name, n.name)
		}
		h.gpus = append(h.gpus, name)
	}
	p.holds = h
	for i, d := range m.free(n) {
		mine := slices.Contains(h.gpus, n.gpus[i])
		if mine && (d.FreeMilli < 0 || d.FreeMemMiB < 0 || d.TaskLimit > 0 && d.Tasks > d.TaskLimit || d.Unhealthy &&
			m.quiet()) {
			m.t.Fatalf("%s was promised device %s of %s, of which that leaves %+v\n%s", p.object.Name, n.gpus[i], n.name, d, m)
		}
	}
}

// compare holds what the plugin counts on each node against the model, when all parts have heard of everything.
func (m *model) compare() {
	if !m.quiet() {
		return
	}
	h := m.h
	if err := h.Cache.UpdateSnapshot(h.logger, h.Snapshot); err != nil {
		m.t.Fatal(err)
	}
	for _, n := range m.nodes {
		info, err := h.Snapshot.NodeInfos().Get(n.name)
		if err != nil {
			m.t.Fatal(err)
		}
		views := h.plugin.shared.views
		v := views.of(info, h.Snapshot)
		m.compareNode(n, v.inventory)
	}
}

func (m *model) compareNode(n *modelNode, got *gpu.Inventory) {
	used := m.requested(n, "nvidia.com/gpu")
	switch n.kind {
	case plugin, mig:
		if want := max(0, len(n.gpus)-used); got.FreeWhole() != want {
			m.t.Fatalf("%s has %d free GPUs, want %d\n%s", n.name, got.FreeWhole(), want, m)
		}
		if n.kind == mig && n.migs > 0 {
			if want := max(0, n.migs-m.requested(n, migResource)); got.Slices[0].Count != want {
				m.t.Fatalf("%s has %d free slices, want %d\n%s", n.name, got.Slices[0].Count, want, m)
			}
		}
		return
	case sliced:
		if want := max(0, len(n.gpus)*timeSlices-used); got.FreeReplicas != want {
			m.t.Fatalf("%s has %d free time slices, want %d\n%s", n.name, got.FreeReplicas, want, m)
		}
		return
	case plain, agented, hami:
	}
	want, sum, foreign := m.free(n), 0, 0
	for _, p := range m.pods {
		if p.foreign && p.on(n.name) && p.ask.resource == "nvidia.com/gpu" {
			foreign += p.ask.count * p.ask.share.Milli
		}
	}
	for _, d := range want {
		if !d.Unhealthy {
			sum += d.FreeMilli
		}
	}
	if foreign == 0 && !slices.Equal(got.Devices, want) {
		m.t.Fatalf("%s counts %+v, want %+v\n%s", n.name, got.Devices, want, m)
	}
	// Which devices others took is a guess, how much they took is not, as far as there is room.
	if free := got.FreeMilli(); free > sum || free < sum-foreign {
		m.t.Fatalf("%s counts %d milli-GPU free, want %d less up to %d of others\n%s", n.name, free, sum, foreign, m)
	}
}
