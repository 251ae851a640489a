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
	// removes them one container at a time.
	hamiAllocatedKey = "hami.io/vgpu-devices-allocated"
	hamiAllocateKey  = "hami.io/vgpu-devices-to-allocate"
	HAMiNodeKey      = "hami.io/vgpu-node"
	hamiTimeKey      = "hami.io/vgpu-time"
	hamiBindTimeKey  = "hami.io/bind-time"
	hamiPhaseKey     = "hami.io/bind-phase"

	hamiRegisterKey = "hami.io/node-nvidia-register"
)

// HAMiLockKey is the annotation of a node by which HAMi binds one pod at a time: its device plugin serves the pod that
// the lock names, and removes the lock.
const HAMiLockKey = "hami.io/mutex.lock"

// Values of hamiPhaseKey: the scheduler writes the first, the plugin the second when it could not give a container its
// devices.
const (
	hamiAllocating = "allocating"
	hamiFailed     = "failed"
)

// hamiDeviceType is HAMi's name for the GPUs of this vendor in its lists.
const hamiDeviceType = "NVIDIA"

var hami = dialect{
	resources: []string{hamiMemoryResource, hamiPercentResource, hamiCoresResource},
	refused:   hamiConditions[:],
	answers:   []string{hamiAllocatedKey, HAMiNodeKey},
	passing:   []string{hamiAllocateKey, hamiTimeKey, hamiBindTimeKey, hamiPhaseKey},
	onNode:    []string{hamiRegisterKey},
	read:      readHAMi, encode: encodeHAMi, decode: decodeHAMi,
}

// ServedByHAMi reports whether HAMi's device plugin gives the pod its GPUs. Where it registered them, the kubelet asks
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

// readHAMi reads the limits of memory and cores beside the number of GPUs in each container. A container without a
// limit of memory may use all of it; one without a limit of cores shares them freely.
func readHAMi(k *Keys, pod *v1.Pod, ask gpuAsk, r *Request) error {
	if !ask.hami {
		return nil
	}
	share, err := commonHAMiShare(k, pod)
	if err != nil {
		return err
	}
	if err := share.check(); err != nil {
		return err
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

// commonHAMiShare is the share that all containers with GPUs ask for.
func commonHAMiShare(k *Keys, pod *v1.Pod) (hamiShare, error) {
	var share hamiShare
	first := true
	for c := range containersInOrder(pod) {
		s := hamiShareOf(c)
		if s == (hamiShare{}) && quantity(c.Resources.Requests, k.Resources[0]) == 0 {
			continue
		}
		if !first && s != share {
			return share, badResource(hamiMemoryResource, fmt.Sprintf("%d in container %s", s.memMiB, c.Name),
				"equal in all containers: the GPUs of one pod must have equal shares")
		}
		share, first = s, false
	}
	return share, nil
}

// check refuses amounts that contradict each other or are out of range.
func (s hamiShare) check() error {
	percent := func(key string, value int64) error {
		return badResource(key, fmt.Sprint(value), "a whole number from 1 to 100")
	}
	switch {
	case s.memMiB > 0 && s.percent > 0:
		return badResource(hamiPercentResource, fmt.Sprint(s.percent), "allowed together with "+hamiMemoryResource)
	case s.percent > 100:
		return percent(hamiPercentResource, s.percent)
	case s.cores > 100:
		return percent(hamiCoresResource, s.cores)
	case s.memMiB > 1<<30:
		return badResource(hamiMemoryResource, fmt.Sprint(s.memMiB), "memory in MiB")
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

// encodeHAMi lists the devices container by container, in the number that the kubelet will ask for: each as
// "uuid,NVIDIA,MiB,cores:", with ";" after a container. Cores are 0, without limit, unless the container asks for them.
func encodeHAMi(pod *v1.Pod, r *Request, a Assignment, now time.Time) (map[string]string, error) {
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

// decodeHAMi reads such a list, with the share of each device: HAMi's own scheduler gives containers of one pod
// different shares, on the same device too.
func decodeHAMi(pod *v1.Pod, node *Node, _ int, _ gpu.Share) []deviceShare {
	if on, ok := pod.Annotations[HAMiNodeKey]; ok && pod.Spec.NodeName != "" && on != pod.Spec.NodeName {
		return nil
	}
	lists := strings.Split(strings.TrimSuffix(pod.Annotations[hamiAllocatedKey], ";"), ";")
	// Older schedulers list the containers only, not those that initialize the pod.
	withInit := len(lists) == len(pod.Spec.InitContainers)+len(pod.Spec.Containers)
	var used []deviceShare
	for i, list := range lists {
		if !withInit || !endsFirst(pod, i) {
			if !addHAMiList(&used, list, node, func(a, b int) int { return a + b }) {
				return nil
			}
		}
	}
	// A container that ends before the others start adds only what it asks for beyond them.
	for i, list := range lists {
		if withInit && endsFirst(pod, i) && !addHAMiList(&used, list, node, func(a, b int) int { return max(a, b) }) {
			return nil
		}
	}
	return used
}

// addHAMiList adds the devices of one container to those that the pod uses; false when they cannot be read.
func addHAMiList(used *[]deviceShare, list string, node *Node, add func(a, b int) int) bool {
	for record := range strings.SplitSeq(strings.TrimSuffix(list, ":"), ":") {
		if record == "" {
			continue
		}
		device, share, ok := readHAMiRecord(record, node)
		if !ok {
			return false
		}
		at := slices.IndexFunc(*used, func(d deviceShare) bool { return d.device == device })
		if at < 0 {
			at = len(*used)
			*used = append(*used, deviceShare{device: device})
		}
		had := &(*used)[at].share
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

// Annotations that restrict, for HAMi's own scheduler, the GPUs that a pod accepts.
const (
	hamiUseTypeKey = "nvidia.com/use-gputype"
	hamiNoTypeKey  = "nvidia.com/nouse-gputype"
	hamiUseUUIDKey = "nvidia.com/use-gpuuuid"
	hamiNoUUIDKey  = "nvidia.com/nouse-gpuuuid"
	hamiModeKey    = "nvidia.com/vgpu-mode"
	hamiNUMAKey    = "nvidia.com/numa-bind"
)

// hamiCore is the mode in which HAMi's library enforces a share, the only one that is served here.
const hamiCore = "hami-core"

var hamiConditions = [...]string{hamiUseTypeKey, hamiNoTypeKey, hamiUseUUIDKey, hamiNoUUIDKey, hamiModeKey, hamiNUMAKey}

// refuseHAMiConditions returns an error for restrictions that HAMi's scheduler supports and this one does not: the pod
// stays pending rather than run on GPUs that it must not use. HAMi's device plugin checks none of them.
func refuseHAMiConditions(k *Keys, pod *v1.Pod, r *Request) error {
	if r.Count == 0 || r.Resource != k.Resources[0] {
		return nil
	}
	for _, key := range hamiConditions {
		value, ok := pod.Annotations[key]
		if !ok {
			continue
		}
		allowed := "supported by this scheduler: remove the annotation"
		switch key {
		case hamiUseTypeKey:
			allowed = "supported by this scheduler: name the products in annotation " + wellknown.GPUModelsKey
		case hamiNoTypeKey:
			allowed = "supported by this scheduler: name the accepted products in annotation " + wellknown.GPUModelsKey
		case hamiModeKey:
			if strings.Contains(value, hamiCore) {
				continue
			}
			allowed = hamiCore + ", the only mode that is served"
		case hamiNUMAKey:
			if bind, err := strconv.ParseBool(value); err != nil || !bind {
				continue // HAMi takes it so
			}
		}
		return badAnnotation(key, value, allowed)
	}
	return nil
}
