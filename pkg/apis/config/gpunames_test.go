package config

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"berth.dev/berth/pkg/wellknown"
)

// TestBothPluginsReadGPUsByTheSameArgs reads one text as the args of either plugin.
func TestBothPluginsReadGPUsByTheSameArgs(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"defaults": "{}",
		"names of a site": "resources: [example.com/gpu]\nsharedResources: []\nslicePrefixes: [example.com/slice-]\n" +
			"deviceDrivers: [gpu.example.com]\nlabels: {product: [example.com/model], memory: []}",
	} {
		var gpu GPUAwareArgs
		var cost CostOptimizedArgs
		for _, into := range []any{&gpu, &cost} {
			if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		gpu.SetDefaults()
		cost.SetDefaults()
		if diff := cmp.Diff(gpu.GPUNames, cost.GPUNames); diff != "" {
			t.Errorf("%s: keys of GPUAware and CostOptimized (-GPUAware +CostOptimized):\n%s", name, diff)
		}
		if defaults := wellknown.DefaultGPUNames(); (name == "defaults") != cmp.Equal(gpu.GPUNames, defaults) {
			t.Errorf("%s: keys are %+v, the defaults %+v", name, gpu.GPUNames, defaults)
		}
	}
}
