package coscheduling

import (
	"cmp"

	v1 "k8s.io/api/core/v1"

	gpudomain "berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/gpuview"
)

// gpuRequests says how many GPUs pods ask for.
type gpuRequests struct{ names *gpuview.ProfileKeys }

// milli is how much of GPUs the pod asks for. A part of one that depends on its memory counts as the whole.
func (g gpuRequests) milli(pod *v1.Pod) int64 {
	r := g.of(pod)
	return int64(cmp.Or(r.TotalMilli(0), r.Count*gpudomain.WholeMilli))
}

// of is what the pod asks for of GPUs, by the names that the first of the profiles knows it by.
func (g gpuRequests) of(pod *v1.Pod) gpuview.Request {
	for _, keys := range g.names.All() {
		if r, err := keys.PodGPURequest(pod); err == nil && (r.Count > 0 || len(r.Slices) > 0) {
			return r
		}
	}
	return gpuview.Request{}
}
