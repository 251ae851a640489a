package gpuview

import (
	"strings"
	"testing"
)

func TestConditionsOfHAMisSchedulerAreNeverIgnored(t *testing.T) {
	t.Parallel()
	keys := DefaultKeys()
	share := strs{"nvidia.com/gpu": "1", hamiMemoryResource: "3000"}
	for _, tc := range []struct {
		name                  string
		requests, annotations strs
		want                  string
	}{
		{"types that it accepts", share, strs{hamiUseTypeKey: "A100"},
			`pod annotation nvidia.com/use-gputype: "A100" is not supported by this scheduler: name the products in annotation berth.dev/gpu-models`},
		{"types that it refuses", share, strs{hamiNoTypeKey: "T4"},
			`pod annotation nvidia.com/nouse-gputype: "T4" is not supported by this scheduler: name the accepted products in annotation berth.dev/gpu-models`},
		{"devices that it accepts", share, strs{hamiUseUUIDKey: "GPU-a"},
			`pod annotation nvidia.com/use-gpuuuid: "GPU-a" is not supported by this scheduler: remove the annotation`},
		{"devices that it refuses", share, strs{hamiNoUUIDKey: "GPU-a"},
			`pod annotation nvidia.com/nouse-gpuuuid: "GPU-a" is not supported by this scheduler: remove the annotation`},
		{"devices of one NUMA node", share, strs{hamiNUMAKey: "true"},
			`pod annotation nvidia.com/numa-bind: "true" is not supported by this scheduler: remove the annotation`},
		{"MIG slices", share, strs{hamiModeKey: "mig"}, `pod annotation nvidia.com/vgpu-mode: "mig" is not hami-core, the only mode that is served`},
		{"a whole GPU", strs{"nvidia.com/gpu": "1"}, strs{hamiUseTypeKey: "A100"}, "berth.dev/gpu-models"},
		{"no binding to a NUMA node", share, strs{hamiNUMAKey: "false"}, ""},
		{"a binding that HAMi cannot read", share, strs{hamiNUMAKey: "yes"}, ""},
		{"the mode that is served", share, strs{hamiModeKey: "hami-core"}, ""},
		{"a pod without GPUs", nil, strs{hamiUseTypeKey: "A100"}, ""},
		{"GPUs of another maker", strs{"amd.com/gpu": "1"}, strs{hamiUseTypeKey: "A100"}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			_, err := keys.PodGPURequest(gpuPod(tc.requests, tc.annotations))
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error = %v\nwant    %q", err, tc.want)
			}
		})
	}
}
