package gpuview

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/gpu/catalog"
	"berth.dev/berth/pkg/wellknown"
)

// registeredGPU is one device of HAMi's register.
type registeredGPU struct {
	uuid    string
	memMiB  int
	healthy bool
	// tasks is how many containers may use it, 0 for any number.
	tasks int
}

// hamiSliced is the mode of a device that HAMi cuts into MIG slices as pods come. Its own scheduler chooses the slice;
// no pod can have the GPU itself.
const hamiSliced = "mig"

// maxTasks is how many containers a device may be registered for.
const maxTasks = 1 << 20

// limit sets how many containers may use the device. A device that none may use counts as unhealthy.
func (d *registeredGPU) limit(count int) error {
	if count < 0 || count > maxTasks {
		return fmt.Errorf("device %q for %d tasks: want 0 to %d", d.uuid, count, maxTasks)
	}
	d.tasks, d.healthy = count, d.healthy && count > 0
	return nil
}

// register fills in the devices that the node's agent lists.
func (g *Node) register(devices []registeredGPU) {
	// HAMi's device plugin counts by what it registers, which may be more than there is.
	registered, unlike := leastMemory(devices)
	if registered > 0 {
		g.empty.MemMiB = registered
	}
	g.empty.Devices = gpu.NewDevices(len(devices), g.empty.MemMiB)
	for i, d := range devices {
		device := &g.empty.Devices[i]
		device.Unhealthy, device.TaskLimit = !d.healthy, d.tasks
		if unlike {
			device.FreeMemMiB, device.MemMiB = d.memMiB, d.memMiB
		}
		g.uuids = append(g.uuids, d.uuid)
	}
}

// leastMemory is the memory that each of the devices has, and whether some have more. An unknown one is 0.
func leastMemory(devices []registeredGPU) (leastMiB int, unlike bool) {
	leastMiB = devices[0].memMiB
	mostMiB := leastMiB
	for _, d := range devices {
		leastMiB, mostMiB = min(leastMiB, d.memMiB), max(mostMiB, d.memMiB)
	}
	return leastMiB, leastMiB > 0 && mostMiB > leastMiB
}

// registered reads the devices that HAMi's agent lists on the node, in either of its two formats: records
// "uuid,count,MiB,cores,type,numa,healthy", newer ones with ",index,mode", ended by colons, or a JSON list. If the list
// is empty, as while the agent cannot reach the driver, or cannot be read, the node still counts as shared: the pods
// that share its GPUs continue to run.
func (b *nodeReader) registered() (devices []registeredGPU, byAgent bool) {
	value, byAgent := b.node.Annotations[hamiRegisterKey]
	if !byAgent {
		return nil, false
	}
	var err error
	if strings.HasPrefix(strings.TrimSpace(value), "[") {
		devices, err = parseRegisterJSON(value)
	} else {
		devices, err = parseRegisterRecords(value)
	}
	if err != nil || len(devices) == 0 || len(devices) > MaxGPUs || listedTwice(devices) {
		b.reject("annotation", hamiRegisterKey, value, "a list of one device or more, each once, as HAMi writes it")
		b.bad[len(b.bad)-1].Effect = "no GPU of the node is given out"
		return nil, true
	}
	return devices, true
}

func listedTwice(devices []registeredGPU) bool {
	seen := map[string]bool{}
	for _, d := range devices {
		seen[d.uuid] = true
	}
	return len(seen) < len(devices)
}

func parseRegisterJSON(value string) ([]registeredGPU, error) {
	var list []struct {
		ID     string `json:"id"`
		Count  *int   `json:"count"`
		DevMem int    `json:"devmem"`
		Health bool   `json:"health"`
		Mode   string `json:"mode"`
	}
	if err := json.Unmarshal([]byte(value), &list); err != nil {
		return nil, fmt.Errorf("parsing device list: %w", err)
	}
	devices := make([]registeredGPU, 0, len(list))
	for _, d := range list {
		if d.ID == "" || d.DevMem < 0 || d.DevMem > 1<<30 {
			return nil, fmt.Errorf("device %q with %d MiB", d.ID, d.DevMem)
		}
		device := registeredGPU{uuid: d.ID, memMiB: d.DevMem, healthy: d.Health && d.Mode != hamiSliced}
		if d.Count != nil {
			if err := device.limit(*d.Count); err != nil {
				return nil, err
			}
		}
		devices = append(devices, device)
	}
	return devices, nil
}

func parseRegisterRecords(value string) ([]registeredGPU, error) {
	var devices []registeredGPU
	for record := range strings.SplitSeq(strings.TrimSuffix(value, ":"), ":") {
		fields := strings.Split(record, ",")
		if len(fields) < 7 || fields[0] == "" {
			return nil, fmt.Errorf("device record %q: want at least 7 fields", record)
		}
		mem, err := strconv.ParseUint(fields[2], 10, 30)
		if err != nil {
			return nil, fmt.Errorf("parsing memory of device %q: %w", fields[0], err)
		}
		healthy, err := strconv.ParseBool(fields[6])
		if err != nil {
			return nil, fmt.Errorf("parsing health of device %q: %w", fields[0], err)
		}
		count, err := strconv.Atoi(fields[1])
		if err != nil {
			return nil, fmt.Errorf("parsing count of device %q: %w", fields[0], err)
		}
		sliced := len(fields) > 8 && fields[8] == hamiSliced
		device := registeredGPU{uuid: fields[0], memMiB: int(mem), healthy: healthy && !sliced}
		if err := device.limit(count); err != nil {
			return nil, err
		}
		devices = append(devices, device)
	}
	return devices, nil
}

// links fills in the interconnect: from the matrix if there is one whose indices are those of the devices, else from
// the label, else from the product.
func (b *nodeReader) links(inv *gpu.Inventory, product catalog.Product, indexed bool) {
	n := len(inv.Devices)
	if n < 2 {
		return
	}
	if value, ok := b.node.Annotations[wellknown.GPULinksKey]; ok && indexed {
		links, err := parseLinks(value, n)
		if err == nil {
			inv.Links = links
			return
		}
		b.reject("annotation", wellknown.GPULinksKey, value,
			`links among the node's GPUs such as {"links":[[0,1,"NV12"],[0,2,"SYS"]]}: `+err.Error())
	}
	if strings.EqualFold(b.first(b.keys.InterconnectLabels), "nvlink") || product.NVLinkMesh {
		inv.Links = gpu.Mesh(n)
	}
}

// Link is the connection of two GPUs, named as by nvidia-smi topo -m.
type Link struct {
	A, B int
	Name string
}

// EncodeLinks is the value of GPULinksKey. It leaves out pairs that are connected through the system only, which is the
// default.
func EncodeLinks(links []Link) (string, error) {
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
	return string(encoded), nil
}

// parseLinks reads {"links":[[i,j,"NV12"],…]}.
func parseLinks(value string, n int) (*gpu.Links, error) {
	var doc struct {
		Links [][]json.RawMessage `json:"links"`
	}
	if err := json.Unmarshal([]byte(value), &doc); err != nil {
		return nil, fmt.Errorf("parsing JSON: %w", err)
	}
	if n > gpu.MaxLinked {
		return nil, fmt.Errorf("a node of %d GPUs: links are read of at most %d", n, gpu.MaxLinked)
	}
	pairs := make([]gpu.Pair, 0, len(doc.Links))
	for _, entry := range doc.Links {
		if len(entry) != 3 {
			return nil, fmt.Errorf("an entry of %d elements: want two indices and a link", len(entry))
		}
		var i, j int
		var name string
		for k, into := range []any{&i, &j, &name} {
			if err := json.Unmarshal(entry[k], into); err != nil {
				return nil, fmt.Errorf("parsing element %s: %w", entry[k], err)
			}
		}
		link, err := gpu.ParseLink(name)
		if err != nil {
			return nil, err
		}
		pairs = append(pairs, gpu.Pair{A: i, B: j, Link: link})
	}
	return gpu.NewLinks(n, pairs)
}
