package gpu

import "slices"

// Part is what one node contributes to the supply.
type Part struct {
	// IdleMilli and UsedMilli are the compute of its healthy GPUs that are free and that are allocated.
	IdleMilli, UsedMilli int64
	// OpenMilli is IdleMilli if the node is in use, else 0.
	OpenMilli int64
	Room      Room
}

// Room is what a node has for pods of whole GPUs: the GPUs that are entirely free, and its free CPU.
type Room struct {
	GPUs     int
	CPUMilli int64
}

// PartOf reads what a node contributes.
func PartOf(inv *Inventory) Part {
	var buf [32]int
	free := inv.freeVector(buf[:0])
	idle := int64(sum(free))
	p := Part{IdleMilli: idle, UsedMilli: int64(inv.Healthy())*WholeMilli - idle,
		Room: Room{inv.wholes(free), inv.FreeCPUMilli}}
	if inv.InUse {
		p.OpenMilli = idle
	}
	return p
}

// Supply is the state of the cluster as far as it matters to all nodes alike: what is idle, and where there is room
// for large pods. It is a plain sum over nodes; its owner keeps it up to date. It is not safe for concurrent use.
type Supply struct {
	idleMilli, usedMilli int64
	// openMilli is what is idle of nodes in use.
	openMilli int64
	// rooms counts the nodes with a free GPU by their room: most nodes are alike.
	rooms map[Room]int
	// hosts are the places in them for pods of these sizes.
	sizes []Size
	hosts Hosts
}

// Replace takes one node's part out and puts another in.
func (s *Supply) Replace(before, after Part) {
	s.idleMilli += after.IdleMilli - before.IdleMilli
	s.openMilli += after.OpenMilli - before.OpenMilli
	s.usedMilli += after.UsedMilli - before.UsedMilli
	s.addRooms(before.Room, -1)
	s.addRooms(after.Room, 1)
}

// addRooms counts n more nodes with that room, fewer where n is negative.
func (s *Supply) addRooms(r Room, n int) {
	if r.GPUs == 0 {
		return
	}
	if s.rooms == nil {
		s.rooms = map[Room]int{}
	}
	if s.rooms[r] += n; s.rooms[r] == 0 {
		delete(s.rooms, r)
	}
	s.hosts.add(hostsOf(s.sizes, r), n)
}

// hostsFor counts the places for pods of these sizes.
func (s *Supply) hostsFor(sizes []Size) Hosts {
	if !slices.Equal(sizes, s.sizes) {
		s.sizes, s.hosts = sizes, Hosts{}
		for room, nodes := range s.rooms {
			s.hosts.add(hostsOf(sizes, room), nodes)
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
