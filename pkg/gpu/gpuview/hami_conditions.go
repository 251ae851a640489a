package gpuview

import (
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/wellknown"
)

// Annotations by which a pod narrows, for HAMi's own scheduler, the GPUs that it accepts.
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

// refuseHAMiConditions refuses what HAMi's scheduler would keep to and this one does not: a pod that must not run on
// some GPUs is better pending than there. HAMi's device plugin checks none of it.
func refuseHAMiConditions(k *Keys, pod *v1.Pod, r *Request) error {
	if r.Count == 0 || r.Resource != k.Resources[0] {
		return nil
	}
	for _, key := range hamiConditions {
		value, ok := pod.Annotations[key]
		if !ok {
			continue
		}
		allowed := "kept to by this scheduler: remove the annotation"
		switch key {
		case hamiUseTypeKey:
			allowed = "kept to by this scheduler: name the products in annotation " + wellknown.GPUModelsKey
		case hamiNoTypeKey:
			allowed = "kept to by this scheduler: name the products that the pod accepts in annotation " + wellknown.GPUModelsKey
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
		return &wellknown.BadValue{Object: "pod", Kind: "annotation", Key: key, Value: value, Allowed: allowed}
	}
	return nil
}
