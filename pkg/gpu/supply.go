package gpu

import "slices"

// Part is what one node contributes to the supply.
type Part struct {
	// IdleMilli and UsedMilli are the compute of its healthy GPUs that are free and that are allocated.
	IdleMilli, UsedMilli int64
	// OpenMilli is IdleMilli if the node is in use, else 0.
	OpenMilli int64
	Headroom  Headroom
}

// Headroom is what a node has left for pods of whole GPUs: the GPUs that are entirely free, and its free CPU.
type Headroom struct {
	GPUs     int
	CPUMilli int64
}

// PartOf reads what a node contributes.
func PartOf(inv *Inventory) Part {
	var buf [32]int
	free := inv.freeVector(buf[:0])
	idle := int64(sum(free))
	p := Part{IdleMilli: idle, UsedMilli: int64(inv.Healthy())*WholeMilli - idle,
		Headroom: Headroom{inv.wholes(free), inv.FreeCPUMilli}}
	if inv.InUse {
		p.OpenMilli = idle
	}
	return p
}

// Supply sums up what is idle in the cluster, and how many large pods fit. Its owner keeps it up to date. It is not
// safe for concurrent use.
type Supply struct {
	idleMilli, usedMilli int64
	// openMilli is what is idle of nodes in use.
	openMilli int64
	// nodes counts the nodes with a free GPU by their headroom: most nodes are alike.
	nodes map[Headroom]int
	// hosts is how many pods of these sizes fit.
	sizes []Size
	hosts Hosts
}

// Replace subtracts one node's part and adds another.
func (s *Supply) Replace(before, after Part) {
	s.idleMilli += after.IdleMilli - before.IdleMilli
	s.openMilli += after.OpenMilli - before.OpenMilli
	s.usedMilli += after.UsedMilli - before.UsedMilli
	s.addNodes(before.Headroom, -1)
	s.addNodes(after.Headroom, 1)
}

// addNodes counts n more nodes with that headroom, fewer where n is negative.
func (s *Supply) addNodes(free Headroom, n int) {
	if free.GPUs == 0 {
		return
	}
	if s.nodes == nil {
		s.nodes = map[Headroom]int{}
	}
	if s.nodes[free] += n; s.nodes[free] == 0 {
		delete(s.nodes, free)
	}
	s.hosts.add(hostsOf(s.sizes, free), n)
}

// hostsFor counts how many pods of these sizes fit.
func (s *Supply) hostsFor(sizes []Size) Hosts {
	if !slices.Equal(sizes, s.sizes) {
		s.sizes, s.hosts = sizes, Hosts{}
		for free, nodes := range s.nodes {
			s.hosts.add(hostsOf(sizes, free), nodes)
		}
	}
	return s.hosts
}

// Open is the part of the GPUs of nodes in use that is idle, 0 where none is in use.
func (s *Supply) Open() float64 {
	if s.openMilli == 0 {
		return 0
	}
	return float64(s.openMilli) / float64(s.openMilli+s.usedMilli)
}
