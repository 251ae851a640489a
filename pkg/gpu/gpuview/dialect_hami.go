package gpuview

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/wellknown"
)

// Keys of HAMi. Its device plugin enforces a share: it reads the list of devices when the kubelet asks it for those of
// a container.
const (
	hamiMemoryResource  = "nvidia.com/gpumem"
	hamiPercentResource = "nvidia.com/gpumem-percentage"
	hamiCoresResource   = "nvidia.com/gpucores"

	// hamiAllocatedKey lists all devices of the pod. hamiAllocateKey lists those that the plugin has yet to give out; it
	// strikes them off one container at a time.
	hamiAllocatedKey = "hami.io/vgpu-devices-allocated"
	hamiAllocateKey  = "hami.io/vgpu-devices-to-allocate"
	HAMiNodeKey      = "hami.io/vgpu-node"
	hamiTimeKey      = "hami.io/vgpu-time"
	hamiBindTimeKey  = "hami.io/bind-time"
	hamiPhaseKey     = "hami.io/bind-phase"

	hamiRegisterKey = "hami.io/node-nvidia-register"
)

// HAMiLockKey is the annotation of a node by which HAMi keeps the binding of one pod apart from that of the next: its
// device plugin serves the pod that the lock names, and removes it.
const HAMiLockKey = "hami.io/mutex.lock"

// Values of hamiPhaseKey: the scheduler writes the first, the plugin the second when it could not give a container its
// devices.
const (
	hamiAllocating = "allocating"
	hamiFailed     = "failed"
)

// hamiDeviceType is what HAMi calls the GPUs of this vendor in its lists.
const hamiDeviceType = "NVIDIA"

var hami = dialect{
	resources: []string{hamiMemoryResource, hamiPercentResource, hamiCoresResource},
	refused:   hamiConditions[:],
	answers:   []string{hamiAllocatedKey, HAMiNodeKey},
	passing:   []string{hamiAllocateKey, hamiTimeKey, hamiBindTimeKey, hamiPhaseKey},
	onNode:    []string{hamiRegisterKey},
	read:      readHAMi, tell: tellHAMi, told: toldHAMi,
}

// ServedByHAMi reports whether HAMi's device plugin gives the pod its GPUs, where it registered them: the kubelet asks
// it for whole GPUs too.
func (r *Request) ServedByHAMi(a Assignment) bool {
	return r.Count > 0 && r.Resource != "" && a.Registered
}

// RefusedByHAMi reports whether HAMi's device plugin says that it could not give the pod its devices.
func RefusedByHAMi(pod *v1.Pod) bool { return pod.Annotations[hamiPhaseKey] == hamiFailed }

// hamiShare is what one container asks for, of each of its GPUs.
type hamiShare struct{ memMiB, percent, cores int64 }

func hamiShareOf(c *v1.Container) hamiShare {
	requests := c.Resources.Requests
	return hamiShare{
		quantity(requests, hamiMemoryResource), quantity(requests, hamiPercentResource), quantity(requests,
			hamiCoresResource),
	}
}

// readHAMi reads the limits of memory and cores that stand beside the number of GPUs in each container. A container
// without a limit of memory may use all of it; one without a limit of cores shares them freely.
func readHAMi(k *Keys, pod *v1.Pod, ask gpuAsk, r *Request) error {
	if !ask.hami {
		return nil
	}
	var share hamiShare
	first := true
	for c := range containersInOrder(pod) {
		s := hamiShareOf(c)
		if s == (hamiShare{}) && quantity(c.Resources.Requests, k.Resources[0]) == 0 {
			continue
		}
		if !first && s != share {
			return &wellknown.BadValue{Object: "pod", Kind: "resource", Key: hamiMemoryResource,
				Value:   fmt.Sprintf("%d in container %s", s.memMiB, c.Name),
				Allowed: "equal in all containers: the GPUs of one pod must have equal shares"}
		}
		share, first = s, false
	}
	percent := func(key string, value int64) error {
		return &wellknown.BadValue{Object: "pod", Kind: "resource", Key: key, Value: fmt.Sprint(value),
			Allowed: "a whole number from 1 to 100"}
	}
	switch {
	case share.memMiB > 0 && share.percent > 0:
		return &wellknown.BadValue{Object: "pod", Kind: "resource", Key: hamiPercentResource,
			Value:   fmt.Sprint(share.percent),
			Allowed: "allowed together with " + hamiMemoryResource}
	case share.percent > 100:
		return percent(hamiPercentResource, share.percent)
	case share.cores > 100:
		return percent(hamiCoresResource, share.cores)
	case share.memMiB > 1<<30:
		return &wellknown.BadValue{Object: "pod", Kind: "resource", Key: hamiMemoryResource, Value: fmt.Sprint(share.memMiB),
			Allowed: "memory in MiB"}
	}
	r.Dialect, r.Shared, r.ByAgent = DialectHAMi, true, true
	r.Count, r.Resource = ask.count, ask.resource
	r.ShareMemMiB = int(share.memMiB)
	switch {
	case share.cores == 0:
		r.Milli = int(share.percent) * gpu.WholeMilli / 100
	case share.memMiB > 0:
		r.Milli = int(share.cores) * gpu.WholeMilli / 100
	default:
		r.Milli, r.ShareMemMilli = int(share.cores)*gpu.WholeMilli/100, gpu.WholeMilli
		if share.percent > 0 {
			r.ShareMemMilli = int(share.percent) * gpu.WholeMilli / 100
		}
	}
	return nil
}

// containersInOrder are the containers in the order of HAMi's lists, in which the kubelet asks for their devices.
func containersInOrder(pod *v1.Pod) func(func(*v1.Container) bool) {
	return func(yield func(*v1.Container) bool) {
		for _, containers := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
			for i := range containers {
				if !yield(&containers[i]) {
					return
				}
			}
		}
	}
}

// endsFirst reports whether container number i of that order ends before the containers after it start, which may then
// have its devices.
func endsFirst(pod *v1.Pod, i int) bool {
	if i >= len(pod.Spec.InitContainers) {
		return false
	}
	policy := pod.Spec.InitContainers[i].RestartPolicy
	return policy == nil || *policy != v1.ContainerRestartPolicyAlways
}

// tellHAMi lists the devices container by container, as many for each as the kubelet will ask for:
// "uuid,NVIDIA,MiB,cores:" each, and ";" after a container. Cores are 0, without limit, unless the container asks for
// them.
func tellHAMi(pod *v1.Pod, r *Request, a Assignment, now time.Time) (map[string]string, error) {
	var list strings.Builder
	next, i := 0, 0
	for c := range containersInOrder(pod) {
		n := int(min(quantity(c.Resources.Requests, r.Resource), MaxGPUs))
		if next+n > len(a.UUIDs) {
			return nil, fmt.Errorf("listing the devices of container %s: it asks for %d, %d of the pod's %d are left",
				c.Name, n, len(a.UUIDs)-next, len(a.UUIDs))
		}
		for at, uuid := range a.UUIDs[next : next+n] {
			memMiB := a.Share.MemMiB
			if a.WholeMiB != nil {
				memMiB = a.WholeMiB[next+at]
			}
			fmt.Fprintf(&list, "%s,%s,%d,%d:", uuid, hamiDeviceType, memMiB, hamiShareOf(c).cores)
		}
		list.WriteByte(';')
		if !endsFirst(pod, i) {
			next += n
		}
		i++
	}
	seconds := strconv.FormatInt(now.Unix(), 10)
	return map[string]string{
		HAMiNodeKey: a.Node, hamiTimeKey: seconds, hamiBindTimeKey: seconds, hamiPhaseKey: hamiAllocating,
		hamiAllocateKey: list.String(), hamiAllocatedKey: list.String(),
	}, nil
}

// toldHAMi reads such a list. It holds the shares as well: HAMi's own scheduler gives containers of one pod different
// ones, on the same device too.
func toldHAMi(pod *v1.Pod, node *Node, _ int, _ gpu.Share) []deviceShare {
	if on, ok := pod.Annotations[HAMiNodeKey]; ok && pod.Spec.NodeName != "" && on != pod.Spec.NodeName {
		return nil
	}
	lists := strings.Split(strings.TrimSuffix(pod.Annotations[hamiAllocatedKey], ";"), ";")
	// Older schedulers list the containers only, not those that initialize the pod.
	withInit := len(lists) == len(pod.Spec.InitContainers)+len(pod.Spec.Containers)
	var held []deviceShare
	for i, list := range lists {
		if !withInit || !endsFirst(pod, i) {
			if !addHAMiList(&held, list, node, func(a, b int) int { return a + b }) {
				return nil
			}
		}
	}
	// What ends before the others start needs no more than these, unless it asks for more.
	for i, list := range lists {
		if withInit && endsFirst(pod, i) && !addHAMiList(&held, list, node, func(a, b int) int { return max(a, b) }) {
			return nil
		}
	}
	return held
}

// addHAMiList adds the devices of one container to what the pod holds; false when they cannot be read.
func addHAMiList(held *[]deviceShare, list string, node *Node, add func(a, b int) int) bool {
	for record := range strings.SplitSeq(strings.TrimSuffix(list, ":"), ":") {
		if record == "" {
			continue
		}
		device, share, ok := readHAMiRecord(record, node)
		if !ok {
			return false
		}
		at := slices.IndexFunc(*held, func(d deviceShare) bool { return d.device == device })
		if at < 0 {
			at = len(*held)
			*held = append(*held, deviceShare{device: device})
		}
		had := &(*held)[at].share
		had.Milli, had.MemMiB = min(add(had.Milli, share.Milli), gpu.WholeMilli), add(had.MemMiB, share.MemMiB)
		had.Tasks = add(had.Tasks, 1)
	}
	return true
}

// readHAMiRecord reads "uuid,NVIDIA,MiB,cores". Compute counts in proportion to the memory unless cores are limited;
// with neither, the pod has all of the GPU.
func readHAMiRecord(record string, node *Node) (device int, share gpu.Share, ok bool) {
	fields := strings.Split(record, ",")
	if len(fields) < 4 || fields[0] == "" {
		return 0, share, false
	}
	device = slices.Index(node.uuids, fields[0])
	mem, memErr := strconv.Atoi(fields[2])
	cores, coresErr := strconv.Atoi(fields[3])
	if device < 0 || memErr != nil || coresErr != nil || mem < 0 || mem > 1<<30 || cores < 0 || cores > 100 {
		return 0, share, false
	}
	share = gpu.Share{Milli: gpu.WholeMilli, MemMiB: mem}
	switch total := node.empty.MemoryOf(device); {
	case cores > 0:
		share.Milli = cores * gpu.WholeMilli / 100
	case mem > 0 && total > 0:
		share.Milli = gpu.MilliOf(mem, total)
	case mem == 0:
		share.MemMiB = total
	}
	return device, share, true
}
