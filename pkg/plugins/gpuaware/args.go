package gpuaware

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/kubeview"
)

// settings are the plugin's args as domain values.
type settings struct {
	keys    *kubeview.GPUKeys
	drivers []string
	weights gpu.Weights
	spread  bool
	signals *config.GPUSignals
	// candidates is how many of the best nodes the framework looks at, 0 for all.
	candidates int
}

// readArgs checks and converts the plugin's args of one profile.
func readArgs(obj runtime.Object, profile string) (*settings, error) {
	args, ok := obj.(*config.GPUAwareArgs)
	if !ok {
		return nil, fmt.Errorf("reading args of profile %s: want GPUAwareArgs, got %T", profile, obj)
	}
	path := field.NewPath("profiles").Key(profile).Child("pluginConfig").Key(Name).Child("args")
	if err := config.ValidateGPUAwareArgs(path, args); err != nil {
		return nil, err
	}
	l, w := args.Labels, args.Weights
	return &settings{
		drivers: args.DeviceDrivers,
		keys: &kubeview.GPUKeys{
			Resources:          args.Resources,
			SharedResources:    args.SharedResources,
			SlicePrefixes:      args.SlicePrefixes,
			ProductLabels:      l.Product,
			MemoryLabels:       l.Memory,
			CountLabels:        l.Count,
			ReplicasLabels:     l.Replicas,
			GenerationLabels:   l.Generation,
			InterconnectLabels: l.Interconnect,
			CliqueLabels:       l.Clique,
		},
		weights: gpu.Weights{
			Packing:          float64(*w.PackingPercent) / 100,
			BestFit:          float64(*w.BestFit),
			Sliver:           float64(*w.Sliver),
			Opening:          float64(*w.Opening),
			Hosts:            float64(*w.HostsPercent) / 100,
			Scarcity:         float64(*w.Scarcity),
			Links:            float64(*w.LinksPercent) / 100,
			OverProvisioning: float64(*w.OverProvisioning),
			Utilization:      float64(*w.Utilisation),
			Avoid:            float64(*w.AvoidGPUNodes),
		},
		spread:  *args.Strategy == config.GPUStrategySpread,
		signals: args.Signals,

		candidates: int(*args.Candidates),
	}, nil
}
