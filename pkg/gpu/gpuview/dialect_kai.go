package gpuview

import (
	"time"

	v1 "k8s.io/api/core/v1"
)

// Keys of the KAI scheduler. Its own binder enforces its shares, with pods that reserve the GPU and a ConfigMap. Here
// they are only a way to write a request.
const (
	kaiFractionKey = "gpu-fraction"
	kaiMemoryKey   = "gpu-memory"
	kaiDevicesKey  = "gpu-fraction-num-devices"
	kaiIndexKey    = "runai-gpu"
)

var kai = dialect{
	asks: []string{kaiFractionKey, kaiMemoryKey, kaiDevicesKey}, answers: []string{kaiIndexKey},
	read: readKAI, encode: encodeKAI, decode: indicesUnder(kaiIndexKey, ","),
}

// readKAI reads gpu-fraction or gpu-memory (MiB), and on how many devices.
func readKAI(_ *Keys, pod *v1.Pod, ask gpuAsk, r *Request) error {
	fraction, hasFraction := pod.Annotations[kaiFractionKey]
	memory, hasMemory := pod.Annotations[kaiMemoryKey]
	devices, hasDevices := pod.Annotations[kaiDevicesKey]
	key, text := kaiFractionKey, fraction
	switch {
	case hasFraction && hasMemory:
		return badAnnotation(kaiMemoryKey, memory, "allowed together with annotation "+kaiFractionKey)
	case hasMemory:
		key, text = kaiMemoryKey, memory
	case !hasFraction && hasDevices:
		return badAnnotation(kaiDevicesKey, devices, "allowed without annotation "+kaiFractionKey+" or "+kaiMemoryKey)
	case !hasFraction:
		return nil
	}
	if err := refuseWhole(key, text, ask, r); err != nil {
		return err
	}
	count := 1
	var err error
	if hasDevices {
		if count, err = parseCount(kaiDevicesKey, devices, 1, MaxGPUs); err != nil {
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

func encodeKAI(_ *v1.Pod, _ *Request, a Assignment, _ time.Time) (map[string]string, error) {
	return map[string]string{kaiIndexKey: joinIndices(a.Devices, ",")}, nil
}
