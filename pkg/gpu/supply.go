package gpu

// Part is what one node contributes to the supply.
type Part struct {
	// IdleMilli and UsedMilli are the compute of its healthy GPUs that are free and that are allocated.
	IdleMilli, UsedMilli int64
	// OpenMilli is IdleMilli if the node is in use, else 0.
	OpenMilli int64
	// Hosts are its places for the sizes of the demand.
	Hosts Hosts
}

// PartOf reads what a node contributes. Without a demand there are no places to count.
func PartOf(inv *Inventory, d *Demand) Part {
	var buf [32]int
	free := inv.freeVector(buf[:0])
	idle := int64(sum(free))
	p := Part{IdleMilli: idle, UsedMilli: int64(inv.Healthy())*WholeMilli - idle}
	if inv.InUse {
		p.OpenMilli = idle
	}
	if d != nil {
		p.Hosts = hostsOf(d.sizes, inv.wholes(free), inv.FreeCPUMilli)
	}
	return p
}

// Supply is the state of the cluster as far as it matters to all nodes alike: what is idle, and where there are places
// for large pods. It is a plain sum over nodes; its owner keeps it up to date. It is not safe for concurrent use.
type Supply struct {
	idleMilli, usedMilli int64
	// openMilli is what is idle of nodes in use.
	openMilli int64
	hosts     Hosts
}

// Replace takes one node's part out and puts another in.
func (s *Supply) Replace(before, after Part) {
	s.idleMilli += after.IdleMilli - before.IdleMilli
	s.openMilli += after.OpenMilli - before.OpenMilli
	s.usedMilli += after.UsedMilli - before.UsedMilli
	for i := range s.hosts {
		s.hosts[i] += after.Hosts[i] - before.Hosts[i]
	}
}

// Open is the part of the GPUs of nodes in use that is idle, 0 where none is in use.
func (s *Supply) Open() float64 {
	if s.openMilli == 0 {
		return 0
	}
	return float64(s.openMilli) / float64(s.openMilli+s.usedMilli)
}
