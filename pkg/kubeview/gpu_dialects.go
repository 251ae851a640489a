package kubeview

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/gpu"
)

// refuseWhole says that a share was asked for beside whole GPUs or in two dialects.
func refuseWhole(key, value string, ask gpuAsk, r *GPURequest) error {
	var other string
	switch {
	case ask.count > 0:
		other = fmt.Sprintf("resource %s: %d", ask.resource, ask.count)
	case len(r.Slices) > 0:
		other = "resource " + r.Slices[0].Resource
	case r.Dialect == DialectOpenb:
		other = "annotation " + openbMilliKey
	default:
		return nil
	}
	return &BadValue{Object: "pod", Kind: "annotation", Key: key, Value: value, Allowed: "allowed together with " + other}
}

// readOpenb reads gpu-milli (compute of each GPU) and gpu-count (1 when absent).
func readOpenb(pod *v1.Pod, ask gpuAsk, r *GPURequest) error {
	milliText, hasMilli := pod.Annotations[openbMilliKey]
	countText, hasCount := pod.Annotations[openbCountKey]
	if !hasMilli && !hasCount {
		return nil
	}
	milli, count := gpu.WholeMilli, 1
	var err error
	if hasMilli {
		if milli, err = parseCount(openbMilliKey, milliText, 0, gpu.WholeMilli); err != nil {
			return err
		}
	}
	if hasCount {
		if count, err = parseCount(openbCountKey, countText, 0, maxGPUs); err != nil {
			return err
		}
	}
	if milli == 0 || count == 0 {
		if hasMilli && hasCount && milli != count {
			return &BadValue{Object: "pod", Kind: "annotation", Key: openbMilliKey, Value: milliText,
				Allowed: "allowed together with " + openbCountKey + ": " + countText + "; both or neither must be 0"}
		}
		return nil
	}
	key, text := openbMilliKey, milliText
	if !hasMilli {
		key, text = openbCountKey, countText
	}
	if err := refuseWhole(key, text, ask, r); err != nil {
		return err
	}
	r.Dialect, r.Shared, r.Count, r.Milli = DialectOpenb, true, count, milli
	return nil
}

// readKAI reads gpu-fraction or gpu-memory (MiB), and on how many devices.
func readKAI(pod *v1.Pod, ask gpuAsk, r *GPURequest) error {
	fraction, hasFraction := pod.Annotations[kaiFractionKey]
	memory, hasMemory := pod.Annotations[kaiMemoryKey]
	devices, hasDevices := pod.Annotations[kaiDevicesKey]
	key, text := kaiFractionKey, fraction
	switch {
	case hasFraction && hasMemory:
		return &BadValue{Object: "pod", Kind: "annotation", Key: kaiMemoryKey, Value: memory,
			Allowed: "allowed together with annotation " + kaiFractionKey}
	case hasMemory:
		key, text = kaiMemoryKey, memory
	case !hasFraction && hasDevices:
		return &BadValue{Object: "pod", Kind: "annotation", Key: kaiDevicesKey, Value: devices,
			Allowed: "allowed without annotation " + kaiFractionKey + " or " + kaiMemoryKey}
	case !hasFraction:
		return nil
	}
	if err := refuseWhole(key, text, ask, r); err != nil {
		return err
	}
	count := 1
	var err error
	if hasDevices {
		if count, err = parseCount(kaiDevicesKey, devices, 1, maxGPUs); err != nil {
			return err
		}
	}
	if hasMemory {
		r.ShareMemMiB, err = parseCount(kaiMemoryKey, memory, 1, 1<<30)
	} else {
		r.Milli, err = parseFraction(kaiFractionKey, fraction)
	}
	if err != nil {
		return err
	}
	r.Dialect, r.Shared, r.Count = DialectKAI, true, count
	return nil
}

// hamiShare is what one container asks for, of each of its GPUs.
type hamiShare struct{ memMiB, percent, cores int64 }

// readHAMi reads the memory and core limits that stand beside the number of GPUs in each container.
func readHAMi(pod *v1.Pod, k *GPUKeys, r *GPURequest) error {
	var share hamiShare
	count := int64(0)
	for _, containers := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			requests := containers[i].Resources.Requests
			n := quantity(requests, k.Resources[0])
			s := hamiShare{quantity(requests, hamiMemoryResource), quantity(requests, hamiPercentResource), quantity(requests, hamiCoresResource)}
			if n == 0 && s == (hamiShare{}) {
				continue
			}
			if count > 0 && s != share {
				return &BadValue{Object: "pod", Kind: "resource", Key: hamiMemoryResource, Value: fmt.Sprintf("%d in container %s", s.memMiB, containers[i].Name),
					Allowed: "equal in all containers: the GPUs of one pod must have equal shares"}
			}
			share = s
			count += n
		}
	}
	switch {
	case share.memMiB > 0 && share.percent > 0:
		return &BadValue{Object: "pod", Kind: "resource", Key: hamiPercentResource, Value: fmt.Sprint(share.percent),
			Allowed: "allowed together with " + hamiMemoryResource}
	case share.percent > 100:
		return &BadValue{Object: "pod", Kind: "resource", Key: hamiPercentResource, Value: fmt.Sprint(share.percent), Allowed: "a whole number from 1 to 100"}
	case share.cores > 100:
		return &BadValue{Object: "pod", Kind: "resource", Key: hamiCoresResource, Value: fmt.Sprint(share.cores), Allowed: "a whole number from 1 to 100"}
	case share.memMiB > 1<<30:
		return &BadValue{Object: "pod", Kind: "resource", Key: hamiMemoryResource, Value: fmt.Sprint(share.memMiB), Allowed: "memory in MiB"}
	}
	r.Dialect, r.Shared = DialectHAMi, true
	r.Count, r.Resource = int(min(count, maxGPUs)), k.Resources[0]
	r.ShareMemMiB = int(share.memMiB)
	switch {
	case share.cores > 0:
		r.Milli = int(share.cores) * gpu.WholeMilli / 100
		if share.percent > 0 {
			r.Milli = max(r.Milli, int(share.percent)*gpu.WholeMilli/100)
		}
	case share.percent > 0:
		r.Milli = int(share.percent) * gpu.WholeMilli / 100
	}
	return nil
}

func quantity(list v1.ResourceList, name string) int64 {
	q, ok := list[v1.ResourceName(name)]
	if !ok {
		return 0
	}
	return max(0, q.Value())
}
