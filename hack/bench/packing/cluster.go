package main

import (
	"berth.dev/berth/pkg/gpu"
)

// machine is one simulated node.
type machine struct {
	inv *gpu.Inventory
	// epoch counts the changes of the node.
	epoch int
	pods  int
	part  gpu.Part
}

// shape is a kind of node.
type shape struct {
	name     string
	model    string
	gpus     int
	cpuMilli int64
	count    int
}

// kind is a kind of pod. Kinds are numbered within a family.
type kind struct {
	request gpu.Request
	class   gpu.Class
	// milli is the GPU that it asks for in sum.
	milli int
}

func newKind(cpuMilli int64, count, milli int, models ...string) kind {
	k := kind{request: gpu.Request{Count: count, Milli: milli, Shared: count > 0 && milli < gpu.WholeMilli,
		CPUMilli: cpuMilli, Models: models}}
	k.class = gpu.ClassOf(&k.request, 0)
	k.milli = count * milli
	return k
}

// cluster is the state of a simulation.
type cluster struct {
	machines []machine
	supply   gpu.Supply
	capacity map[string]int
	// gpuMilli is the compute of all GPUs, usedMilli what pods have of it.
	gpuMilli, usedMilli int
	inUse               int
	// largest is the most GPUs of one machine.
	largest int
}

func newCluster(shapes []shape) *cluster {
	c := &cluster{capacity: map[string]int{}}
	for _, s := range shapes {
		c.largest = max(c.largest, s.gpus)
		for range s.count {
			cpu := s.cpuMilli
			c.machines = append(c.machines, machine{inv: &gpu.Inventory{
				Mode: gpu.ModeShared, Model: s.model, Replicas: 1, Devices: gpu.NewDevices(s.gpus, 0), IndexKnown: true,
				FreeCPUMilli: cpu, CPUMilli: cpu,
			}})
			c.capacity[s.model] += s.gpus
			c.gpuMilli += s.gpus * gpu.WholeMilli
		}
	}
	return c
}

// placement is where a pod runs.
type placement struct {
	kind    *kind
	machine int
	devices []int
	share   gpu.Share
}

func (c *cluster) fits(i int, k *kind) bool {
	inv := c.machines[i].inv
	return inv.FreeCPUMilli >= k.request.CPUMilli && gpu.Fit(inv, &k.request).Cause == gpu.Fits
}

func (c *cluster) bind(i int, k *kind, demand *gpu.Demand) placement {
	m := &c.machines[i]
	p := placement{kind: k, machine: i}
	if k.milli > 0 {
		p.devices, p.share, _ = gpu.Choose(m.inv, &k.request)
		m.inv.Take(p.devices, p.share)
		c.supply.Placed()
	}
	m.inv.FreeCPUMilli -= k.request.CPUMilli
	c.usedMilli += k.milli
	if m.pods++; m.pods == 1 {
		c.inUse++
	}
	c.changed(m, demand)
	return p
}

func (c *cluster) release(p placement, demand *gpu.Demand) {
	m := &c.machines[p.machine]
	if p.kind.milli > 0 {
		m.inv.Give(p.devices, p.share)
		c.supply.Departed()
	}
	m.inv.FreeCPUMilli += p.kind.request.CPUMilli
	c.usedMilli -= p.kind.milli
	if m.pods--; m.pods == 0 {
		c.inUse--
	}
	c.changed(m, demand)
}

func (c *cluster) changed(m *machine, demand *gpu.Demand) {
	m.epoch++
	m.inv.InUse = m.pods > 0
	if demand != nil {
		part := gpu.PartOf(m.inv, demand)
		c.supply.Replace(m.part, part)
		m.part = part
	}
}

// recount counts all machines again for another demand.
func (c *cluster) recount(demand *gpu.Demand) {
	for i := range c.machines {
		m := &c.machines[i]
		part := gpu.PartOf(m.inv, demand)
		c.supply.Replace(m.part, part)
		m.part = part
	}
}
