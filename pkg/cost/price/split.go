package price

// Capacity is an amount of the resources that carry a node's price: what a node has, or what a pod asks for.
type Capacity struct {
	MilliCPU  int64
	MemoryMiB int64
	MilliGPU  int64
}

// Rates are what the resources cost an hour where nothing better is known.
type Rates struct {
	Core      MicroDollars // one CPU core
	MemoryGiB MicroDollars
	GPU       MicroDollars
}

// Price returns what the capacity costs at these rates.
func (r Rates) Price(c Capacity) MicroDollars {
	return r.hostPart(c).Plus(r.GPU.Scale(c.MilliGPU, 1000))
}

func (r Rates) hostPart(c Capacity) MicroDollars {
	return r.Core.Scale(c.MilliCPU, 1000).Plus(r.MemoryGiB.Scale(c.MemoryMiB, 1024))
}

// Split is a node's price divided over its resources, so that pods which together ask for all of the node pay exactly
// its price.
type Split struct {
	// Price of the whole node an hour.
	Price MicroDollars
	// Allocatable is what the node offers to pods.
	Allocatable Capacity

	cpu, memory, gpu MicroDollars // parts of Price; their sum is Price
}

// NewSplit divides price over what the node has. GPUs take what CPU and memory at the reference rates leave over, but
// at least what they would take if all rates were scaled alike: a GPU's price varies tenfold between models and a
// core's hardly at all, yet on a heavily discounted node the cores must not eat the whole price. Without GPUs the price
// is divided in proportion to the rates. A node with nothing priced keeps its price whole: every pod pays all of it.
func NewSplit(price MicroDollars, allocatable Capacity, reference Rates) Split {
	s := Split{Price: price, Allocatable: allocatable}
	cpu := reference.Core.Scale(allocatable.MilliCPU, 1000)
	host := reference.hostPart(allocatable)
	gpu := reference.GPU.Scale(allocatable.MilliGPU, 1000)
	if allocatable.MilliGPU > 0 {
		s.gpu = max(price.Minus(host), proportion(price, gpu, host.Plus(gpu)))
	}
	rest := price.Minus(s.gpu)
	s.cpu = proportion(rest, cpu, host)
	s.memory = rest.Minus(s.cpu)
	return s
}

// proportion returns whole·part/total, or nothing where there is no total.
func proportion(whole, part, total MicroDollars) MicroDollars {
	if total <= 0 {
		return 0
	}
	return whole.Scale(int64(part), int64(total))
}

// Share returns what the requested part of the node costs, at most the node's price.
func (s Split) Share(request Capacity) MicroDollars {
	share := s.memory.part(request.MemoryMiB, s.Allocatable.MemoryMiB).
		Plus(s.cpu.part(request.MilliCPU, s.Allocatable.MilliCPU)).
		Plus(s.gpuPrice(request.MilliGPU))
	return min(share, s.Price)
}

// gpuPrice returns what this many thousandths of the node's GPUs cost an hour.
func (s Split) gpuPrice(milliGPU int64) MicroDollars {
	return s.gpu.part(milliGPU, s.Allocatable.MilliGPU)
}

// part returns the price of request out of total: all of it where there is no total to divide it by.
func (m MicroDollars) part(request, total int64) MicroDollars {
	if total <= 0 || request >= total {
		return m
	}
	return m.Scale(request, total)
}
