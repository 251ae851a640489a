package gpuview

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/wellknown"
)

// AgentKeys are the annotations of a node that its agent writes, and no other key.
var AgentKeys = []string{wellknown.GPUDevicesKey, wellknown.GPULinksKey, wellknown.GPUsInUseKey,
	wellknown.GPUsInUseAtKey}

// maxPublished bounds the annotations of the agent in bytes: 64 GPUs need 12,000 for the devices and 31,000 for the
// links.
const maxPublished = 64 << 10

// PublishedGPU is one GPU of a node as its agent publishes it.
type PublishedGPU struct {
	// Index is that of nvidia-smi, in the order of PCI addresses.
	Index int    `json:"index"`
	UUID  string `json:"uuid"`
	// Model is the product in the form of nvidia.com/gpu.product, with hyphens for spaces.
	Model  string `json:"model,omitempty"`
	MemMiB int    `json:"memMiB,omitempty"`
	// Healthy is false for a GPU that the kubelet does not give out, or that the driver calls broken.
	Healthy bool `json:"healthy"`
	// MIG is set for a GPU that is given out in hardware slices only.
	MIG bool `json:"mig,omitempty"`
	// Replicas is as how many devices the kubelet gives the GPU out, if that is more than one.
	Replicas int `json:"replicas,omitempty"`
}

// PublishedLink is the connection of two GPUs, named as by nvidia-smi topo -m.
type PublishedLink struct {
	A, B int
	Name string
}

// EncodeGPUs is the value of GPUDevicesKey.
func EncodeGPUs(devices []PublishedGPU) (string, error) {
	encoded, err := json.Marshal(devices)
	if err != nil {
		return "", fmt.Errorf("encoding devices: %w", err)
	}
	if _, err := parseGPUs(string(encoded)); err != nil {
		return "", fmt.Errorf("encoding devices: %w", err)
	}
	return string(encoded), nil
}

// EncodeLinks is the value of GPULinksKey for n GPUs. Pairs that are connected through the system only are left out:
// they are what a reader assumes.
func EncodeLinks(links []PublishedLink, n int) (string, error) {
	entries := [][3]any{}
	for _, l := range links {
		if l.Name != "SYS" {
			entries = append(entries, [3]any{l.A, l.B, l.Name})
		}
	}
	encoded, err := json.Marshal(map[string]any{"links": entries})
	if err != nil {
		return "", fmt.Errorf("encoding links: %w", err)
	}
	if _, err := parseLinks(string(encoded), n); err != nil {
		return "", fmt.Errorf("encoding links: %w", err)
	}
	return string(encoded), nil
}

// EncodeInUse is the value of GPUsInUseKey.
func EncodeInUse(indices []int) string {
	sorted := slices.Clone(indices)
	slices.Sort(sorted)
	texts := make([]string, 0, len(sorted))
	for _, i := range slices.Compact(sorted) {
		texts = append(texts, strconv.Itoa(i))
	}
	return strings.Join(texts, ",")
}

// parseGPUs reads the value of GPUDevicesKey and returns the devices in index order.
func parseGPUs(value string) ([]PublishedGPU, error) {
	if len(value) > maxPublished {
		return nil, fmt.Errorf("%d bytes: at most %d are read", len(value), maxPublished)
	}
	var devices []PublishedGPU
	if err := json.Unmarshal([]byte(value), &devices); err != nil {
		return nil, fmt.Errorf("parsing JSON: %w", err)
	}
	seen := map[string]bool{}
	indices := map[int]bool{}
	for _, d := range devices {
		switch {
		case d.Index < 0 || d.Index >= MaxGPUs || indices[d.Index]:
			return nil, fmt.Errorf("index %d: want each once, from 0 to %d", d.Index, MaxGPUs-1)
		case d.UUID == "" || seen[d.UUID]:
			return nil, fmt.Errorf("uuid %q of GPU %d: want one of its own", d.UUID, d.Index)
		case d.MemMiB < 0 || d.MemMiB > 1<<30:
			return nil, fmt.Errorf("memMiB %d of GPU %d: want 0 to %d", d.MemMiB, d.Index, 1<<30)
		case d.Replicas < 0 || d.Replicas > maxReplicas:
			return nil, fmt.Errorf("replicas %d of GPU %d: want 0 to %d", d.Replicas, d.Index, maxReplicas)
		}
		indices[d.Index] = true
		seen[d.UUID] = true
	}
	slices.SortFunc(devices, func(a, b PublishedGPU) int { return a.Index - b.Index })
	return devices, nil
}

// published are the GPUs that the node's agent lists, and whether these are all; nil without a list that can be used.
// The kubelet's count stands above the list: one that has fewer GPUs than the kubelet offers is out of date, and tells
// no more than which GPU has which index.
func (b *nodeReader) published(allocatable int64) (devices []PublishedGPU, all bool) {
	value, ok := b.node.Annotations[wellknown.GPUDevicesKey]
	if !ok {
		return nil, false
	}
	devices, err := parseGPUs(value)
	if err != nil {
		b.reject("annotation", wellknown.GPUDevicesKey, value,
			`a list of GPUs such as [{"index":0,"uuid":"GPU-…","healthy":true}]: `+err.Error())
		return nil, false
	}
	whole, most := 0, int64(0)
	for _, d := range devices {
		if !d.MIG {
			whole++
			most += int64(max(1, d.Replicas))
		}
	}
	switch {
	case whole == 0:
		return nil, false // the kubelet gives out slices, whatever it calls them
	case allocatable > most:
		b.reject("annotation", wellknown.GPUDevicesKey, value,
			fmt.Sprintf("up to date: the kubelet offers %d, the list has %d", allocatable, most))
		return devices, false
	}
	return devices, true
}

// placeUUIDs returns the UUIDs of n devices by their indices, empty for those that the list does not have; nil without
// a list.
func placeUUIDs(listed []PublishedGPU, n int) []string {
	if len(listed) == 0 {
		return nil
	}
	uuids := make([]string, n)
	for _, d := range listed {
		if d.Index < n {
			uuids[d.Index] = d.UUID
		}
	}
	return uuids
}

// publishedReplicas is into how many time slices the kubelet cuts each GPU, 1 for none.
func publishedReplicas(devices []PublishedGPU) int {
	replicas := 1
	for _, d := range devices {
		replicas = max(replicas, d.Replicas)
	}
	return replicas
}

// publishedCount is how many GPUs the list tells apart: those up to the highest index.
func publishedCount(devices []PublishedGPU) int {
	if len(devices) == 0 {
		return 0
	}
	return devices[len(devices)-1].Index + 1
}

// markAbsent marks as many devices as the kubelet does not offer. The list says which they are: first what it does not
// have, then GPUs that are cut into slices, then those that it calls unhealthy. The kubelet does not say which, so that
// without a list it is the last ones.
func markAbsent(devices []gpu.Device, listed []PublishedGPU, offered int) {
	rank := make([]int, len(devices))
	for i := range rank {
		rank[i] = 3
		if len(listed) == 0 {
			rank[i] = 0
		}
	}
	for _, d := range listed {
		switch {
		case d.Index >= len(rank):
		case d.MIG:
			rank[d.Index] = 2
		case !d.Healthy:
			rank[d.Index] = 1
		default:
			rank[d.Index] = 0
		}
	}
	absent := len(devices) - offered
	for worst := 3; worst >= 0; worst-- {
		for i := len(devices) - 1; i >= 0 && absent > 0; i-- {
			if rank[i] == worst {
				devices[i].Unhealthy = true
				absent--
			}
		}
	}
}

// SameUse reports whether the agents of two states of a node saw the same GPUs in use.
func (g *Node) SameUse(other *Node) bool {
	return (g.inUse == nil) == (other.inUse == nil) && slices.Equal(g.inUse, other.inUse)
}

// HAMiRegistered reports whether HAMi's agent has registered the devices of the node.
func HAMiRegistered(node *v1.Node) bool {
	_, registered := node.Annotations[hamiRegisterKey]
	return registered
}

// AgentAnnotations returns what the agent of a node has written there.
func AgentAnnotations(node *v1.Node) map[string]string {
	written := map[string]string{}
	for _, key := range AgentKeys {
		if value, ok := node.Annotations[key]; ok {
			written[key] = value
		}
	}
	return written
}
