package gpuaware

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/gpu/gpuview"
)

// settings are the plugin's args of one profile, with what is read and judged by them.
type settings struct {
	args    *config.GPUAwareArgs
	keys    *gpuview.Keys
	weights gpu.Weights
	spread  bool
}

// readArgs checks and converts the plugin's args of one profile.
func readArgs(obj runtime.Object, profile string) (*settings, error) {
	args, err := config.Checked[*config.GPUAwareArgs](obj, profile, Name)
	if err != nil {
		return nil, err
	}
	w, keys := args.Weights, &gpuview.Keys{GPUNames: args.GPUNames}
	keys.TrustAnnotations = *args.UnassignedShares == config.UnassignedSharesAnnotated
	return &settings{args: args, keys: keys, spread: *args.Strategy == config.GPUStrategySpread, weights: gpu.Weights{
		Packing:     float64(*w.PackingPercent) / 100,
		BestFit:     float64(*w.BestFit),
		Opening:     float64(*w.Opening),
		Hosts:       float64(*w.HostsPercent) / 100,
		Scarcity:    float64(*w.Scarcity),
		Links:       float64(*w.LinksPercent) / 100,
		Utilization: float64(*w.Utilisation),
		ForeignUse:  float64(*w.ForeignUse),
		Framebuffer: float64(*w.Framebuffer),
		Capability:  gpu.DefaultWeights().Capability,
	}}, nil
}

// request reads what a pod asks of GPUs, and adds what the profile asks for all its pods.
func (s *settings) request(pod *v1.Pod) (gpuview.Request, error) {
	r, err := s.keys.PodGPURequest(pod)
	if err != nil {
		return r, err
	}
	if r.WantsGPU() {
		r.MinMemMiB = max(r.MinMemMiB, int(*s.args.MinMemoryMiB))
	}
	if r.AvoidsGPUNode {
		r.MinNodeCPUMilli = *s.args.CPUIntensiveMinMilliCPU
	}
	return r, nil
}
