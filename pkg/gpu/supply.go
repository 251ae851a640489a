package gpu

import "strings"

// Part is what one node contributes to the supply.
type Part struct {
	// Model of its GPUs, in lower case.
	Model string
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
	p := Part{Model: strings.ToLower(inv.Model), IdleMilli: idle, UsedMilli: int64(inv.Healthy())*WholeMilli - idle}
	if inv.InUse {
		p.OpenMilli = idle
	}
	if d != nil {
		p.Hosts = hostsOf(d.sizes, inv.wholes(free), inv.FreeCPUMilli)
	}
	return p
}

// Supply is the state of the cluster as far as it matters to all nodes alike: what is idle, where there are places for
// large pods, and how fast pods come and go. It is a plain sum over nodes; its owner keeps it up to date. It is not
// safe for concurrent use.
type Supply struct {
	idleMilli, usedMilli int64
	// openMilli is what is idle of nodes in use.
	openMilli int64
	byModel   map[string]int64
	hosts     Hosts
	turnover  turnover
}

// Replace takes one node's part out and puts another in.
func (s *Supply) Replace(before, after Part) {
	if s.byModel == nil {
		s.byModel = map[string]int64{}
	}
	s.idleMilli += after.IdleMilli - before.IdleMilli
	s.openMilli += after.OpenMilli - before.OpenMilli
	s.usedMilli += after.UsedMilli - before.UsedMilli
	for i := range s.hosts {
		s.hosts[i] += after.Hosts[i] - before.Hosts[i]
	}
	for _, change := range [...]struct {
		model string
		milli int64
	}{{before.Model, -before.IdleMilli}, {after.Model, after.IdleMilli}} {
		if s.byModel[change.model] += change.milli; s.byModel[change.model] == 0 {
			delete(s.byModel, change.model)
		}
	}
}

// IdleMilli is the free compute.
func (s *Supply) IdleMilli() int64 { return s.idleMilli }

// Open is the part of the GPUs of nodes in use that is idle, 0 where none is in use.
func (s *Supply) Open() float64 {
	if s.openMilli == 0 {
		return 0
	}
	return float64(s.openMilli) / float64(s.openMilli+s.usedMilli)
}

// FreeByModel is that of one model.
func (s *Supply) FreeByModel(model string) int64 { return s.byModel[strings.ToLower(model)] }

// Placed and Departed count GPU pods that were given a node and that have left it.
func (s *Supply) Placed() { s.turnover.placed() }

// Departed counts a GPU pod that has left its node.
func (s *Supply) Departed() { s.turnover.departed() }

// Filling is how far the cluster fills up rather than turns over, from 1 for pods that stay to 0, in quarters: scores
// must not all change with every pod.
func (s *Supply) Filling() float64 { return s.turnover.filling(s.idleMilli, s.usedMilli) }

// turnover counts the pods that come and go. Older ones fade, so that a cluster that has turned over for a year still
// notices that pods have begun to stay.
type turnover struct{ came, left float64 }

// turnoverMemory is after how many further placements and departures one counts half.
const turnoverMemory = 2048

func (t *turnover) placed()   { t.came++; t.fade() }
func (t *turnover) departed() { t.left++; t.fade() }

func (t *turnover) fade() {
	if t.came+t.left > 2*turnoverMemory {
		t.came, t.left = t.came/2, t.left/2
	}
}

// filling is 1 minus the part of what runs now that is expected to leave before the idle GPUs are full: they are full
// after idle/used times as many pods have been added as there are now, net of those that leave.
func (t *turnover) filling(idleMilli, usedMilli int64) float64 {
	if t.left == 0 {
		return 1
	}
	stay := t.came - t.left
	if stay <= 0 || usedMilli <= 0 {
		return 0
	}
	expected := t.left / stay * float64(idleMilli) / float64(usedMilli)
	return float64(int(4*max(0, 1-expected)+0.5)) / 4
}
