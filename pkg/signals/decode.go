package signals

import (
	"cmp"
	"slices"
	"strconv"
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

// Reasons for which a sample is dropped, values of a metric's label.
const (
	dropNoHost      = "no_host_label"
	dropUnknownHost = "unknown_host"
	dropNoGPU       = "no_gpu_label"
	dropBadValue    = "bad_value"
)

// drops counts dropped samples by reason.
type drops map[string]int

// origin finds the node and the GPU that a series is about.
type origin struct {
	hostLabels []model.LabelName
	// nodes: what a host label may say → name of the node.
	nodes map[string]string
}

// newOrigin indexes nodes by name, by hostname and by the first part of a dotted name, in this order of precedence. A
// hostname or short name that two nodes share names neither.
func newOrigin(hostLabels []model.LabelName, nodes []Node) origin {
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

// node returns the node of a series, or the reason to drop it.
func (o origin) node(metric model.Metric) (node, reason string) {
	host, ok := firstLabel(metric, o.hostLabels)
	if !ok {
		return "", dropNoHost
	}
	node, ok = o.nodes[host]
	if !ok {
		return "", dropUnknownHost
	}
	return node, ""
}

// locate returns the node and the GPU of a series, or the reason to drop it.
func (o origin) locate(metric model.Metric) (node string, id GPUID, reason string) {
	if node, reason = o.node(metric); reason != "" {
		return "", GPUID{}, reason
	}
	id, ok := gpuOf(metric)
	if !ok {
		return "", GPUID{}, dropNoGPU
	}
	return node, id, ""
}

// readings are what one query told about one node.
type readings struct {
	// values: kind of reading → GPU → value, within the range of the kind.
	values map[string]map[GPUID]model.SampleValue
	// taken: kind of reading → time of the oldest sample, by the scheduler's clock.
	taken map[string]time.Time
}

// collect sorts an answer by node. largest gives each kind of reading and its largest value. asked is the scheduler's
// time of the query. Of two values of one GPU, which differ in their host label only, the larger one stays.
func collect(vector model.Vector, asked time.Time, from origin, largest map[string]float64) (map[string]readings,
	drops) {
	nodes, dropped := map[string]readings{}, drops{}
	for _, sample := range vector {
		node, reason := from.node(sample.Metric)
		if reason != "" {
			dropped[reason]++
			continue
		}
		of, ok := nodes[node]
		if !ok {
			of = readings{values: map[string]map[GPUID]model.SampleValue{}, taken: map[string]time.Time{}}
			nodes[node] = of
		}
		kind := string(sample.Metric[labelReading])
		if timed, isTime := strings.CutSuffix(kind, timeSuffix); isTime {
			reason = of.addTime(timed, asked, sample)
		} else {
			reason = of.addValue(kind, sample, largest)
		}
		if reason != "" {
			dropped[reason]++
		}
	}
	return nodes, dropped
}

func (r readings) addTime(kind string, asked time.Time, sample *model.Sample) (reason string) {
	age, ok := ageOf(sample.Timestamp, sample.Value)
	if !ok {
		return dropBadValue
	}
	taken := asked.Add(-age)
	if known, ok := r.taken[kind]; !ok || taken.Before(known) {
		r.taken[kind] = taken
	}
	return ""
}

func (r readings) addValue(kind string, sample *model.Sample, largest map[string]float64) (reason string) {
	id, ok := gpuOf(sample.Metric)
	if !ok {
		return dropNoGPU
	}
	// A kind that was not asked for has no largest value, so that only 0 passes; NaN passes nowhere.
	if !inBounds(sample.Value, largest[kind]) {
		return dropBadValue
	}
	gpus := r.values[kind]
	if gpus == nil {
		gpus = map[GPUID]model.SampleValue{}
		r.values[kind] = gpus
	}
	gpus[id] = max(gpus[id], sample.Value)
	return ""
}

// decodeUtilisation returns the utilisation by node. The engine's activity counts where a GPU has both readings; a
// reading without a sample time counts for nothing.
func decodeUtilisation(vector model.Vector, asked time.Time, from origin) (map[string]Utilisation, drops) {
	nodes, dropped := collect(vector, asked, from, map[string]float64{readingEngine: 1, readingUtil: 100})
	decoded := make(map[string]Utilisation, len(nodes))
	for node, of := range nodes {
		var u Utilisation
		seen := map[GPUID]bool{}
		for _, reading := range []struct {
			kind string
			full float64
		}{{readingEngine, 1}, {readingUtil, 100}} {
			taken, timed := of.taken[reading.kind]
			for id, value := range of.values[reading.kind] {
				if !timed || seen[id] {
					continue
				}
				seen[id] = true
				u.GPUs = append(u.GPUs, GPUUtilisation{GPUID: id, Milli: milliOf(value, reading.full)})
				u.Time = older(u.Time, taken)
			}
		}
		if len(u.GPUs) == 0 {
			continue
		}
		slices.SortFunc(u.GPUs, func(a, b GPUUtilisation) int { return compareGPUs(a.GPUID, b.GPUID) })
		sum := 0
		for _, gpu := range u.GPUs {
			sum += gpu.Milli
		}
		u.MeanMilli = sum / len(u.GPUs)
		decoded[node] = u
	}
	return decoded, dropped
}

// decodeMemory returns the use of the framebuffers by node. A GPU needs both used and free memory to count.
func decodeMemory(vector model.Vector, asked time.Time, from origin) (map[string]Memory, drops) {
	nodes, dropped := collect(vector, asked, from,
		map[string]float64{readingUsed: maxMemoryMiB, readingFree: maxMemoryMiB, readingReserved: maxMemoryMiB})
	decoded := make(map[string]Memory, len(nodes))
	for node, of := range nodes {
		taken, timed := of.taken[readingUsed]
		if !timed {
			continue
		}
		m := Memory{Time: taken}
		for id, used := range of.values[readingUsed] {
			free, ok := of.values[readingFree][id]
			if !ok {
				continue
			}
			m.GPUs = append(m.GPUs, GPUMemory{
				GPUID:       id,
				UsedMiB:     mebibytesOf(used),
				FreeMiB:     mebibytesOf(free),
				ReservedMiB: mebibytesOf(of.values[readingReserved][id]),
			})
		}
		if len(m.GPUs) == 0 {
			continue
		}
		slices.SortFunc(m.GPUs, func(a, b GPUMemory) int { return compareGPUs(a.GPUID, b.GPUID) })
		decoded[node] = m
	}
	return decoded, dropped
}

// decodeFaults returns the failed row remaps and the exporter's own counts of fatal XIDs by node, as last seen at the
// time asked.
func decodeFaults(vector model.Vector, asked time.Time, fatal map[int]bool, from origin) (faultsByNode, drops) {
	faults, dropped := faultsByNode{}, drops{}
	for _, sample := range vector {
		node, id, reason := from.locate(sample.Metric)
		if reason == "" && !(sample.Value > 0) {
			reason = dropBadValue
		}
		fault := Fault{GPUID: id, Time: asked}
		switch string(sample.Metric[labelReading]) {
		case readingRowRemap:
		case readingXIDCount:
			code, err := strconv.Atoi(string(sample.Metric[labelXID]))
			if err != nil || !fatal[code] {
				reason = cmp.Or(reason, dropBadValue)
			}
			fault.XID = code
		default:
			reason = cmp.Or(reason, dropBadValue)
		}
		if reason != "" {
			dropped[reason]++
			continue
		}
		faults.add(node, fault)
	}
	return faults, dropped
}

func older(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}
