package gpuview

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/gpu/catalog"
	"berth.dev/berth/pkg/wellknown"
)

// nodeReader reads one node and collects the values that it cannot use.
type nodeReader struct {
	keys *Keys
	node *v1.Node
	// offers are the GPU resources of the node, offer the one that is read.
	offers []gpuOffer
	offer  gpuOffer
	bad    []*wellknown.BadValue
}

func (b *nodeReader) reject(kind, key, value, allowed string) {
	if slices.ContainsFunc(b.bad, func(known *wellknown.BadValue) bool { return known.Key == key }) {
		return // reported for another resource of the node
	}
	b.bad = append(b.bad, &wellknown.BadValue{Object: "node", Kind: kind, Key: key, Value: value, Allowed: allowed})
}

// first is the value of the first label of the list that the node carries.
func (b *nodeReader) first(keys []string) string {
	for _, key := range keys {
		if v := b.node.Labels[key]; v != "" && !b.ofAnother(key) {
			return v
		}
	}
	return ""
}

// maker is the domain of a resource or label, which identifies the maker of the GPUs.
func maker(key string) string {
	domain, _, _ := strings.Cut(key, "/")
	return domain
}

// ofAnother reports whether a label describes other GPUs of the node, of another maker.
func (b *nodeReader) ofAnother(key string) bool {
	return maker(key) != maker(b.offer.resource) &&
		slices.ContainsFunc(b.offers, func(o gpuOffer) bool { return maker(o.resource) == maker(key) })
}

// oneOfSeveral reports whether the GPUs of the maker are behind several resources.
func (b *nodeReader) oneOfSeveral() bool {
	n := 0
	for _, o := range b.offers {
		if maker(o.resource) == maker(b.offer.resource) {
			n++
		}
	}
	return n > 1
}

// number is the first label of the list with a usable number, 0 without one.
func (b *nodeReader) number(keys []string, high int) int {
	for _, key := range keys {
		value, ok := b.node.Labels[key]
		if !ok || b.ofAnother(key) {
			continue
		}
		n, err := strconv.Atoi(value)
		if err == nil && n >= 0 && n <= high {
			return n
		}
		b.reject("label", key, value, fmt.Sprintf("a whole number from 0 to %d", high))
	}
	return 0
}

func (b *nodeReader) mode(registered bool) gpu.Mode {
	value, ok := b.node.Labels[wellknown.GPUModeKey]
	switch value {
	case "device-plugin":
		return gpu.ModeDevicePlugin
	case "shared":
		return gpu.ModeShared
	case "dra":
		return gpu.ModeDRA
	}
	if ok {
		b.reject("label", wellknown.GPUModeKey, value, "device-plugin, shared or dra")
	}
	if registered {
		return gpu.ModeShared
	}
	return gpu.ModeDevicePlugin
}

func (b *nodeReader) model() string {
	return canonicalModel(catalog.BaseModel(b.first(b.keys.ProductLabels)))
}

// memory is the memory of each GPU in MiB.
func (b *nodeReader) memory() int {
	for _, key := range b.keys.MemoryLabels {
		value, ok := b.node.Labels[key]
		if !ok || b.ofAnother(key) {
			continue
		}
		if key == intelMemoryLabel {
			if mib, ok := b.intelMemory(value); ok {
				return mib
			}
			b.reject("label", key, value, "the memory of all GPUs of the node in bytes")
			continue
		}
		if mib, ok := parseMemoryMiB(value, strings.HasSuffix(key, "-gb")); ok {
			return mib
		}
		b.reject("label", key, value,
			"the memory of one GPU: a whole number of MiB (of GiB under a key that ends in -gb), or with a unit M, Mi, G or Gi")
	}
	return 0
}

// parseMemoryMiB reads a number of MiB, of GiB, or with a unit. Decimal units are read as binary ones: makers label
// a GPU of 192 GiB "192G", and one that has no memory of its own "0".
func parseMemoryMiB(value string, inGiB bool) (int, bool) {
	shift := 0
	if inGiB {
		shift = 10
	}
	digits := strings.TrimSuffix(strings.TrimSuffix(value, "B"), "i")
	if cut, ok := strings.CutSuffix(digits, "G"); ok {
		digits, shift = cut, 10
	} else if cut, ok := strings.CutSuffix(digits, "M"); ok {
		digits, shift = cut, 0
	} else if digits != value {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 31)
	if err != nil || n<<shift > 1<<30 {
		return 0, false
	}
	return int(n << shift), true
}

// generation is the compute capability times ten.
func (b *nodeReader) generation() int {
	for _, key := range b.keys.GenerationLabels {
		value, ok := b.node.Labels[key]
		if !ok || b.ofAnother(key) {
			continue
		}
		if g, ok := catalog.GenerationOf(value); ok {
			return g
		}
		if f, err := strconv.ParseFloat(value, 64); err == nil && f >= 1 && f < 100 {
			g := int(math.Round(f * 10))
			if minor, err := strconv.Atoi(b.node.Labels[computeMinorLabel]); key == computeMajorLabel && err == nil &&
				minor >= 0 && minor < 10 {
				g += minor
			}
			return g
		}
		b.reject("label", key, value, "a compute capability such as 9 or 9.0, or a family such as hopper")
	}
	return 0
}

// intelMemory is the memory of each GPU in MiB, from the sum over the node's GPUs in bytes.
func (b *nodeReader) intelMemory(value string) (int, bool) {
	total, err := strconv.ParseUint(value, 10, 63)
	count := b.intelCount()
	if count == 0 {
		count = int(min(max(b.offer.units, 1), MaxGPUs))
	}
	mib := total >> 20 / uint64(count)
	return int(mib), err == nil && mib <= 1<<30
}

// intelCount is the number of Intel GPUs; the labeller gives a thousand millicores each; 0 when unknown.
func (b *nodeReader) intelCount() int {
	millicores, err := strconv.Atoi(b.node.Labels[intelMillicoresLabel])
	if err != nil || millicores < 0 || millicores > MaxGPUs*1000 || b.ofAnother(intelMillicoresLabel) {
		return 0
	}
	return millicores / 1000
}

// replicas is into how many time slices each GPU is cut, 1 for none.
func (b *nodeReader) replicas(count int, partition string, p *provided) int {
	if b.oneOfSeveral() && !b.offer.shared {
		return 1 // time slices have a resource of their own here
	}
	strategy := b.node.Labels[sharingStrategyLabel]
	labelled := b.number(b.keys.ReplicasLabels, maxUnits)
	if strategy == "" && labelled == 0 && partition == "" && p.count > 0 {
		// More units than the machine has GPUs are parts of GPUs, and nothing says of what kind.
		strategy, count = "parts", p.count
	}
	replicas := max(labelled, p.replicas)
	switch {
	case strategy == "none":
		return 1
	case p.partition == "" && (strategy != "" || replicas > 1) && count > 0:
		return max(replicas, ceil(b.offer.units, count)) // a label of the number that is out of date makes no GPUs
	}
	return replicas
}

// ceil is how many parts of that size the units are, the last of them perhaps smaller.
func ceil(units int64, size int) int { return int((units + int64(size) - 1) / int64(size)) }
