package signals

import (
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

// node returns the node of a series; ok is false if its host is not there or not known.
func (o origin) node(metric model.Metric) (node string, ok bool) {
	node, ok = o.nodes[firstLabel(metric, o.hostLabels)]
	return node, ok
}

// largestReading is the range of each kind of reading of use.
var largestReading = map[model.LabelValue]float64{
	readingEngine: 1, readingUtil: 100, readingUsed: maxMemoryMiB, readingFree: maxMemoryMiB,
}

// readings are what an answer says of one node: kind of reading → GPU → value, within the range of the kind.
type readings map[model.LabelValue]map[GPUID]model.SampleValue

// decodeUse returns the use by node. asked is the scheduler's time of the query. The engine's activity counts where a
// GPU has both readings; a node without the time of its samples is not measured. Of two values of one GPU, which differ
// in their host label only, the larger one stays.
func decodeUse(vector model.Vector, asked time.Time, from origin) (map[string]Use, int) {
	nodes, taken, dropped := map[string]readings{}, map[string]time.Time{}, 0
	for _, sample := range vector {
		node, known := from.node(sample.Metric)
		id, ofGPU := gpuOf(sample.Metric)
		kind := sample.Metric[labelReading]
		age, timed := ageOf(sample.Timestamp, sample.Value)
		switch largest, isValue := largestReading[kind]; {
		case known && kind == readingTime && timed:
			taken[node] = older(taken[node], asked.Add(-age))
		case known && isValue && ofGPU && inBounds(sample.Value, largest):
			if nodes[node] == nil {
				nodes[node] = readings{}
			}
			if nodes[node][kind] == nil {
				nodes[node][kind] = map[GPUID]model.SampleValue{}
			}
			nodes[node][kind][id] = max(nodes[node][kind][id], sample.Value)
		default:
			dropped++
		}
	}
	decoded := make(map[string]Use, len(nodes))
	for node, of := range nodes {
		if gpus := of.gpus(); !taken[node].IsZero() && len(gpus) > 0 {
			decoded[node] = Use{Time: taken[node], MeanMilli: meanOf(gpus), GPUs: gpus}
		}
	}
	return decoded, dropped
}

// gpus returns the GPUs whose utilization is known.
func (r readings) gpus() []GPUUse {
	milli := map[GPUID]int{}
	for id, value := range r[readingUtil] {
		milli[id] = milliOf(value, largestReading[readingUtil])
	}
	for id, value := range r[readingEngine] {
		milli[id] = milliOf(value, largestReading[readingEngine])
	}
	gpus := make([]GPUUse, 0, len(milli))
	for id, busy := range milli {
		gpu := GPUUse{GPUID: id, Milli: busy}
		used, usedKnown := r[readingUsed][id]
		free, freeKnown := r[readingFree][id]
		if usedKnown && freeKnown {
			gpu.UsedMiB, gpu.FreeMiB = mebibytesOf(used), mebibytesOf(free)
		}
		gpus = append(gpus, gpu)
	}
	slices.SortFunc(gpus, func(a, b GPUUse) int { return compareGPUs(a.GPUID, b.GPUID) })
	return gpus
}

func meanOf(gpus []GPUUse) int {
	sum := 0
	for _, gpu := range gpus {
		sum += gpu.Milli
	}
	return sum / len(gpus)
}

func older(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}
