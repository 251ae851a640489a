package packing

import (
	"berth.dev/berth/pkg/cost/price"
	"berth.dev/berth/pkg/gpu"
)

// machine is one simulated node.
type machine struct {
	inv   *gpu.Inventory
	split price.Split
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
	// product is what is known of the GPUs beyond their name, and dollars the price of a node an hour.
	product product
	dollars float64
}

func newShape(name, model string, gpus int, cpuMilli int64, count int) shape {
	return shape{name: name, model: model, gpus: gpus, cpuMilli: cpuMilli, count: count}
}

// product is a kind of GPU; the zero value has nothing that a pod could prefer.
type product struct {
	memMiB, generation int
	linked             bool
}

// kind is a kind of pod. Kinds are numbered within a family.
type kind struct {
	request gpu.Request
	shape   gpu.Shape
	// milli is the GPU that it asks for in sum.
	milli int
	// members is how many such pods start together or not at all.
	members int
}

func newKind(cpuMilli int64, count, milli int, models ...string) kind {
	k := kind{request: gpu.Request{Count: count, Milli: milli, Shared: count > 0 && milli < gpu.WholeMilli,
		CPUMilli: cpuMilli, Models: models}}
	k.shape = gpu.ShapeOf(&k.request, 0)
	k.milli, k.members = count*milli, 1
	return k
}

// cluster is the state of a simulation.
type cluster struct {
	machines []machine
	supply   gpu.Supply
	capacity gpu.Capacity
	// gpuMilli is the compute of all GPUs, usedMilli what pods have of it.
	gpuMilli, usedMilli int
	inUse               int
	// inUsePrice is what the nodes in use cost.
	inUsePrice price.MicroDollars
	// pods is how many run with GPUs and without.
	pods map[bool]int64
	// largest is the most GPUs of one machine.
	largest int
}

func newCluster(shapes []shape) *cluster {
	c := &cluster{capacity: gpu.Capacity{}, pods: map[bool]int64{}}
	for _, s := range shapes {
		c.largest = max(c.largest, s.gpus)
		for range s.count {
			inv := &gpu.Inventory{
				Mode: gpu.ModeShared, Model: s.model, Replicas: 1, Devices: gpu.NewDevices(s.gpus, s.product.memMiB),
				IndexKnown: true, FreeCPUMilli: s.cpuMilli, CPUMilli: s.cpuMilli,
				MemMiB: s.product.memMiB, Generation: s.product.generation,
			}
			if s.product.linked {
				inv.Links = gpu.Mesh(s.gpus)
			}
			c.machines = append(c.machines, machine{inv: inv, split: splitOf(&s)})
			c.capacity[s.model] = gpu.Stock{
				GPUs: c.capacity[s.model].GPUs + s.gpus, MemMiB: s.product.memMiB, Linked: s.product.linked,
			}
			c.gpuMilli += s.gpus * gpu.WholeMilli
			c.changed(&c.machines[len(c.machines)-1])
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

// place gives all members of a pod's gang, or the pod alone, the machines that the policy likes best, or none of them.
func (c *cluster) place(p policy, k *kind, rank []int) []placement {
	placed := make([]placement, 0, k.members)
	for range k.members {
		at := best(c, p, k, rank)
		if at < 0 {
			for _, undo := range placed {
				c.give(undo)
			}
			return nil
		}
		placed = append(placed, c.take(at, k))
	}
	for range placed {
		p.placed(k, 1)
	}
	return placed
}

// release ends a pod.
func (c *cluster) release(gone placement, p policy) {
	c.give(gone)
	p.placed(gone.kind, -1)
}

func (c *cluster) take(i int, k *kind) placement {
	m := &c.machines[i]
	p := placement{kind: k, machine: i}
	if k.milli > 0 {
		p.devices, p.share, _ = gpu.Choose(m.inv, &k.request)
		m.inv.Take(p.devices, p.share)
	}
	m.inv.FreeCPUMilli -= k.request.CPUMilli
	c.usedMilli += k.milli
	c.pods[k.milli > 0]++
	if m.pods++; m.pods == 1 {
		c.inUse++
		c.inUsePrice = c.inUsePrice.Plus(m.split.Price)
	}
	c.changed(m)
	return p
}

func (c *cluster) give(p placement) {
	m := &c.machines[p.machine]
	if p.kind.milli > 0 {
		m.inv.Give(p.devices, p.share)
	}
	m.inv.FreeCPUMilli += p.kind.request.CPUMilli
	c.usedMilli -= p.kind.milli
	c.pods[p.kind.milli > 0]--
	if m.pods--; m.pods == 0 {
		c.inUse--
		c.inUsePrice = c.inUsePrice.Minus(m.split.Price)
	}
	c.changed(m)
}

func (c *cluster) changed(m *machine) {
	m.epoch++
	m.inv.InUse = m.pods > 0
	part := gpu.PartOf(m.inv)
	c.supply.Replace(m.part, part)
	m.part = part
}
