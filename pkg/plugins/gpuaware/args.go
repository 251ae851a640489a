package gpuaware

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/gpu/gpuview"
)

// settings are the plugin's args as domain values.
type settings struct {
	keys    *gpuview.Keys
	weights gpu.Weights
	spread  bool
	signals *config.GPUSignals
	// minMemMiB is the least memory of each GPU, and minNodeCPUMilli the least CPU of a node for CPU-intensive pods.
	minMemMiB       int
	minNodeCPUMilli int64
	// candidates is how many of the best nodes the framework gets, 0 for all.
	candidates int
}

// readArgs checks and converts the plugin's args of one profile.
func readArgs(obj runtime.Object, profile string) (*settings, error) {
	args, err := config.Checked[*config.GPUAwareArgs](obj, profile, Name)
	if err != nil {
		return nil, err
	}
	w, keys := args.Weights, &gpuview.Keys{GPUNames: args.GPUNames}
	keys.TrustAnnotations = *args.UnassignedShares == config.UnassignedSharesAnnotated
	return &settings{
		keys: keys,
		weights: gpu.Weights{
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
		},
		spread:  *args.Strategy == config.GPUStrategySpread,
		signals: args.Signals,

		minMemMiB:       int(*args.MinMemoryMiB),
		minNodeCPUMilli: *args.CPUIntensiveMinMilliCPU,

		candidates: int(*args.Candidates),
	}, nil
}

// request reads what a pod asks of GPUs, and adds what the profile asks for all its pods.
func (s *settings) request(pod *v1.Pod) (gpuview.Request, error) {
	r, err := s.keys.PodGPURequest(pod)
	if err != nil {
		return r, err
	}
	if r.WantsGPU() {
		r.MinMemMiB = max(r.MinMemMiB, s.minMemMiB)
	}
	if r.AvoidsGPUNode {
		r.MinNodeCPUMilli = s.minNodeCPUMilli
	}
	return r, nil
}
