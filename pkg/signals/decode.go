package signals

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
)

// Node is a GPU node as the readers have to know it.
type Node struct {
	Name string
	// Hostname is the value of the node's kubernetes.io/hostname label, "" if it has none.
	Hostname string
}

// origin finds the node that a series is about.
type origin struct {
	hostLabels []string
	// nodes: what a host label may say → name of the node.
	nodes map[string]string
}

// newOrigin indexes nodes by name, by hostname and by the first part of a dotted name, in this order of precedence. A
// hostname or short name that two nodes share is not used.
func newOrigin(hostLabels []string, nodes []Node) origin {
	index := make(map[string]string, 2*len(nodes))
	alias := func(of func(Node) string) {
		found := make(map[string]string, len(nodes))
		for _, node := range nodes {
			name := of(node)
			if _, taken := found[name]; taken {
				found[name] = ""
				continue
			}
			found[name] = node.Name
		}
		for name, node := range found {
			if _, taken := index[name]; !taken && name != "" && node != "" {
				index[name] = node
			}
		}
	}
	alias(func(n Node) string { return n.Name })
	alias(func(n Node) string { return n.Hostname })
	alias(func(n Node) string { short, _, _ := strings.Cut(n.Name, "."); return short })
	return origin{hostLabels: hostLabels, nodes: index}
}

// node returns the node of a series; ok is false if its host is not there or not known.
func (o origin) node(metric model.Metric) (node string, ok bool) {
	node, ok = o.nodes[firstLabel(metric, o.hostLabels)]
	return node, ok
}

// Values of the label that the query of use adds: the time of the samples of a host, and the readings of a GPU.
const (
	readingTime   = "time"
	readingEngine = "engine"
	readingUtil   = "util"
	readingUsed   = "used"
	readingFree   = "free"
)

// largestReading is the range of each kind of reading of a GPU.
var largestReading = map[model.LabelValue]float64{
	readingEngine: 1, readingUtil: 100, readingUsed: maxMemoryMiB, readingFree: maxMemoryMiB,
}

// readings are what an answer says of one GPU: kind of reading → value, within the range of the kind.
type readings map[model.LabelValue]model.SampleValue

// decodeUse returns the use by node. asked is the scheduler's time of the query. A node without the time of its samples
// is not measured. Of two values of one GPU, which differ in their host label only, the larger one stays.
func decodeUse(vector model.Vector, asked time.Time, from origin) (use map[string]Use, dropped int) {
	nodes, taken := map[string]map[GPUID]readings{}, map[string]time.Time{}
	for _, sample := range vector {
		node, known := from.node(sample.Metric)
		id, ofGPU := gpuOf(sample.Metric)
		kind := sample.Metric[labelReading]
		age, timed := ageOf(sample.Timestamp, sample.Value)
		switch largest, isValue := largestReading[kind]; {
		case known && kind == readingTime && timed:
			if before, ok := taken[node]; !ok || asked.Add(-age).Before(before) {
				taken[node] = asked.Add(-age)
			}
		case known && isValue && ofGPU && inBounds(sample.Value, largest):
			if nodes[node] == nil {
				nodes[node] = map[GPUID]readings{}
			}
			if nodes[node][id] == nil {
				nodes[node][id] = readings{}
			}
			nodes[node][id][kind] = max(nodes[node][id][kind], sample.Value)
		default:
			dropped++
		}
	}
	use = make(map[string]Use, len(nodes))
	for node, at := range taken {
		if of := useOf(nodes[node], at); len(of.GPUs) > 0 {
			use[node] = of
		}
	}
	return use, dropped
}

// useOf returns the use of the GPUs whose utilization is known. The engine's activity counts where both are.
func useOf(gpus map[GPUID]readings, at time.Time) Use {
	use := Use{Time: at}
	sum := 0
	for id, r := range gpus {
		gpu := GPUUse{GPUID: id}
		engine, hasEngine := r[readingEngine]
		util, hasUtil := r[readingUtil]
		switch {
		case hasEngine:
			gpu.Milli = milliOf(engine, largestReading[readingEngine])
		case hasUtil:
			gpu.Milli = milliOf(util, largestReading[readingUtil])
		default:
			continue
		}
		used, usedKnown := r[readingUsed]
		free, freeKnown := r[readingFree]
		if usedKnown && freeKnown {
			gpu.UsedMiB, gpu.FreeMiB = int64(math.Round(float64(used))), int64(math.Round(float64(free)))
		}
		use.GPUs = append(use.GPUs, gpu)
		sum += gpu.Milli
	}
	slices.SortFunc(use.GPUs, func(a, b GPUUse) int { return compareGPUs(a.GPUID, b.GPUID) })
	use.MeanMilli = sum / max(1, len(use.GPUs))
	return use
}

// lastFatal returns the last fatal code in a GPU's history, and when it began; ok reports whether the GPU still has it.
// The exporter repeats a code until the driver is reloaded, so that only changes count: a code from the first
// observation on is of unknown age, and no reason to avoid the GPU. A harmless code after a fatal one does not end the
// fault; a return to 0 does, because it takes a reset.
func lastFatal(history []model.SamplePair, fatal []int32) (code int, at model.Time, ok bool) {
	previous, known := 0, false
	for _, point := range history {
		current, valid := xidOf(point.Value)
		if !valid {
			continue
		}
		switch {
		case current == 0:
			ok = false
		case known && current != previous && slices.Contains(fatal, int32(current)):
			code, at, ok = current, point.Timestamp, true
		}
		previous, known = current, true
	}
	return code, at, ok
}

// endOf returns the last point in time that the history looked at: the end of the one series without labels.
func endOf(history model.Matrix) (model.Time, bool) {
	for _, series := range history {
		if len(series.Metric) == 0 && len(series.Values) > 0 {
			return series.Values[len(series.Values)-1].Timestamp, true
		}
	}
	return 0, false
}

// decodeFaults returns the faults by node, in order of GPU: GPUs that came to have a fatal code, at that time, and
// those whose row remap has failed, as last seen at the time asked, the scheduler's time of the query. It holds at most
// one fault for a GPU and XID, the latest.
func decodeFaults(history model.Matrix, asked time.Time, fatal []int32, from origin) (map[string][]Fault, int) {
	end, ok := endOf(history)
	if !ok {
		return nil, 0
	}
	faults, dropped := map[string][]Fault{}, 0
	for _, series := range history {
		if len(series.Metric) == 0 || len(series.Values) == 0 {
			continue
		}
		node, known := from.node(series.Metric)
		id, ofGPU := gpuOf(series.Metric)
		if !known || !ofGPU {
			dropped++
			continue
		}
		last := series.Values[len(series.Values)-1]
		code, at, fails := 0, last.Timestamp, last.Timestamp == end && last.Value > 0
		if series.Metric[labelReading] == "xid" {
			code, at, fails = lastFatal(series.Values, fatal)
		}
		if fails {
			faults[node] = append(faults[node], Fault{GPUID: id, XID: code, Time: asked.Add(-end.Sub(at))})
		}
	}
	for node, of := range faults {
		slices.SortFunc(of, func(a, b Fault) int {
			return cmp.Or(compareGPUs(a.GPUID, b.GPUID), cmp.Compare(a.XID, b.XID), b.Time.Compare(a.Time))
		})
		faults[node] = slices.CompactFunc(of, func(a, b Fault) bool { return a.GPUID == b.GPUID && a.XID == b.XID })
	}
	return faults, dropped
}
