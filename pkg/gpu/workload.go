package gpu

import (
	"fmt"
	"slices"
	"sort"
	"strings"
)

// mostKinds is how many kinds of requests matter to a mean.
const mostKinds = 200

// RequestKind is one kind of request for whole GPUs or shares: what a pod of it needs of one node.
type RequestKind struct {
	// Milli thousandths of each of Count GPUs.
	Count, Milli int
	// CPUMilli in milli-cores, MemoryBytes of the host.
	CPUMilli, MemoryBytes int64
	// Models that the pod accepts; empty for any.
	Models []string
}

// Workload counts the kinds of requests of a cluster or a trace, those for GPUs only. The zero value is empty.
type Workload struct {
	kinds map[string]*countedKind
	total int64
	// common are the most frequent kinds, nil when kinds were observed since.
	common []*countedKind
}

type countedKind struct {
	RequestKind
	key  string
	seen int64
}

// Room is what a node has left for pods.
type Room struct {
	Model   string
	Devices []Device
	// FreeCPUMilli in milli-cores, FreeMemoryBytes of the host.
	FreeCPUMilli, FreeMemoryBytes int64
}

// Key is equal for requests of one kind.
func (k *RequestKind) Key() string {
	return fmt.Sprintf("%d/%d/%d/%d/%s", k.CPUMilli, k.MemoryBytes, k.Count, k.Milli, strings.Join(k.Models, "|"))
}

// Observe counts a request with a weight. One for no GPU does not count.
func (w *Workload) Observe(k RequestKind, times int) {
	if k.Count == 0 {
		return
	}
	key := k.Key()
	if w.kinds[key] == nil {
		if w.kinds == nil {
			w.kinds = map[string]*countedKind{}
		}
		w.kinds[key] = &countedKind{RequestKind: k, key: key}
	}
	w.kinds[key].seen += int64(times)
	w.common = nil
}

// StrandedMilli is how much of the room's idle GPU the workload cannot use where it is, in milli-GPU: for each kind of
// request all of it where the request does not fit, else the devices that are too full for it, weighted by how often
// the kind was seen. (The fragmentation measure of Weng et al., USENIX ATC 2023, section 3.1, over requests for GPUs.)
// Without a workload nothing is stranded.
func (w *Workload) StrandedMilli(r *Room) float64 {
	_, stranded := w.judge(r, nil)
	return stranded
}

// Judge returns what StrandedMilli does, and for each device of the room whether any of the most frequent kinds of
// requests could use what is idle of it. Without a workload every idle device is usable.
func (w *Workload) Judge(r *Room) (usable []bool, strandedMilli float64) {
	return w.judge(r, make([]bool, len(r.Devices)))
}

// judge marks in usable, unless that is nil.
func (w *Workload) judge(r *Room, usable []bool) ([]bool, float64) {
	idle := freeMilli(r.Devices)
	if idle == 0 {
		return usable, 0
	}
	common := w.mostFrequent()
	if w.total == 0 {
		for i := range usable {
			usable[i] = !r.Devices[i].Unhealthy && r.Devices[i].FreeMilli > 0
		}
		return usable, 0
	}
	sum := int64(0)
	for _, k := range common {
		if !k.fits(r) {
			sum += k.seen * int64(idle)
			continue
		}
		wasted := 0
		for i, d := range r.Devices {
			switch {
			case d.Unhealthy:
			case d.FreeMilli < k.Milli:
				wasted += d.FreeMilli
			case usable != nil:
				usable[i] = true
			}
		}
		sum += k.seen * int64(wasted)
	}
	return usable, float64(sum) / float64(w.total)
}

// mostFrequent returns the most frequent kinds, and counts their requests.
func (w *Workload) mostFrequent() []*countedKind {
	if w.common != nil || len(w.kinds) == 0 {
		return w.common
	}
	for _, k := range w.kinds {
		w.common = append(w.common, k)
	}
	sort.Slice(w.common, func(i, j int) bool {
		if a, b := w.common[i], w.common[j]; a.seen != b.seen {
			return a.seen > b.seen
		}
		return w.common[i].key < w.common[j].key
	})
	w.common = w.common[:min(len(w.common), mostKinds)]
	w.total = 0
	for _, k := range w.common {
		w.total += k.seen
	}
	return w.common
}

func (k *countedKind) fits(r *Room) bool {
	if k.CPUMilli > r.FreeCPUMilli || k.MemoryBytes > r.FreeMemoryBytes || len(k.Models) > 0 &&
		!slices.Contains(k.Models, r.Model) {
		return false
	}
	fitting := 0
	for _, d := range r.Devices {
		if !d.Unhealthy && d.FreeMilli >= k.Milli {
			fitting++
		}
	}
	return fitting >= k.Count
}
