package signals

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// GPUSnapshot is what was known of the GPUs after one round of queries. It never changes; what is in it is shared and
// must not be written to. The zero value knows nothing.
type GPUSnapshot struct {
	ages        sampleAges
	faultWindow time.Duration

	utilisation   map[string]Utilisation
	utilisationOn bool
	memory        map[string]Memory
	memoryOn      bool
	// xidFaults and otherFaults come from two queries, and one may fail; faults is both.
	xidFaults, otherFaults, faults faultsByNode
}

// Utilisation is how busy the GPUs of a node were.
type Utilisation struct {
	// Time of the oldest sample in it, by the scheduler's clock: pods bound to the node after it are not yet in it.
	Time time.Time
	// MeanMilli is the mean of GPUs in thousandths.
	MeanMilli int
	// GPUs in order of index, then UUID. A GPU without a sample is missing.
	GPUs []GPUUtilisation
}

// GPUUtilisation is the share of time in which the GPU's engine was active (DCGM_FI_PROF_GR_ENGINE_ACTIVE) or, where
// that is not measured, in which at least one kernel ran (DCGM_FI_DEV_GPU_UTIL).
type GPUUtilisation struct {
	GPUID
	// Milli is from 0 to 1000.
	Milli int
}

// Memory is how the framebuffers of a node's GPUs were used.
type Memory struct {
	// Time of the oldest sample in it, by the scheduler's clock.
	Time time.Time
	// GPUs in order of index, then UUID. A GPU whose used or free memory is not known is missing.
	GPUs []GPUMemory
}

// GPUMemory is the use of one GPU's framebuffer. Reserved is what the driver keeps, 0 where it is not exported.
type GPUMemory struct {
	GPUID
	UsedMiB, FreeMiB, ReservedMiB int64
}

// Fault is a reason to keep new work off a GPU.
type Fault struct {
	GPUID
	// XID is the fatal code, 0 for a failed row remap.
	XID int
	// Time at which the GPU came to have the fault or, for a standing condition, was last seen with it.
	Time time.Time
}

// Reason names the fault for a message to a user.
func (f Fault) Reason() string {
	if f.XID != 0 {
		return fmt.Sprintf("fatal XID %d", f.XID)
	}
	return "row remap failure"
}

// Utilisation returns the utilisation of a node and the weight, from 0 to 1, that it has at the time now by its age.
// At weight 0 nothing is known and the node must be treated as any other: there is no sample, it is too old, or too
// few nodes have one.
func (s *GPUSnapshot) Utilisation(node string, now time.Time) (Utilisation, float64) {
	if !s.utilisationOn {
		return Utilisation{}, 0
	}
	u, ok := s.utilisation[node]
	if !ok {
		return Utilisation{}, 0
	}
	return u, s.ages.weight(now.Sub(u.Time))
}

// Memory returns the use of a node's framebuffers and its weight, as Utilisation does.
func (s *GPUSnapshot) Memory(node string, now time.Time) (Memory, float64) {
	if !s.memoryOn {
		return Memory{}, 0
	}
	m, ok := s.memory[node]
	if !ok {
		return Memory{}, 0
	}
	return m, s.ages.weight(now.Sub(m.Time))
}

// Faults returns the faults of a node that still count at the time now, in order of index and UUID, nil if there are
// none. A fault counts for the configured window, coverage or not: its presence is knowledge, its absence is none.
func (s *GPUSnapshot) Faults(node string, now time.Time) []Fault {
	all := s.faults[node]
	expired := func(f Fault) bool { return now.Sub(f.Time) >= s.faultWindow }
	if !slices.ContainsFunc(all, expired) {
		return all
	}
	var active []Fault
	for _, fault := range all {
		if !expired(fault) {
			active = append(active, fault)
		}
	}
	return active
}

// sampleAges are the ages between which a sample loses its weight.
type sampleAges struct {
	full, zero time.Duration
}

// weight is 1 up to the age full and falls linearly to 0 at the age zero.
func (a sampleAges) weight(age time.Duration) float64 {
	switch {
	case age >= a.zero:
		return 0
	case age <= a.full:
		return 1
	}
	return float64(a.zero-age) / float64(a.zero-a.full)
}

// faultsByNode holds at most one fault for a GPU and XID, the latest.
type faultsByNode map[string][]Fault

func (f faultsByNode) add(node string, fault Fault) {
	for i, known := range f[node] {
		if known.GPUID == fault.GPUID && known.XID == fault.XID {
			if fault.Time.After(known.Time) {
				f[node][i].Time = fault.Time
			}
			return
		}
	}
	f[node] = append(f[node], fault)
}

// mergeFaults returns the union in the order that Faults promises, and leaves its arguments as they are.
func mergeFaults(sources ...faultsByNode) faultsByNode {
	merged := faultsByNode{}
	for _, source := range sources {
		for node, faults := range source {
			for _, fault := range faults {
				merged.add(node, fault)
			}
		}
	}
	for _, faults := range merged {
		slices.SortFunc(faults, func(a,
			b Fault) int {
			return cmp.Or(compareGPUs(a.GPUID, b.GPUID), cmp.Compare(a.XID, b.XID))
		})
	}
	return merged
}

func compareGPUs(a, b GPUID) int {
	return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(a.UUID, b.UUID))
}
