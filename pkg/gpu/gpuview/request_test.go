package gpuview

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/wellknown"
	"berth.dev/berth/test/harness/require"
)

// gpuPod makes a pod of one container with these requests and annotations.
func gpuPod(requests, annotations map[string]string) *v1.Pod {
	list := v1.ResourceList{}
	for name, q := range requests {
		list[v1.ResourceName(name)] = resource.MustParse(q)
	}
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "default", UID: "p", Annotations: annotations},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{Requests: list}}}},
	}
}

type strs = map[string]string

func TestPodGPURequest(t *testing.T) {
	t.Parallel()
	keys := DefaultKeys()
	for _, tc := range []struct {
		name        string
		requests    strs
		annotations strs
		labels      strs
		want        Request
	}{
		{"a pod without GPUs", strs{"cpu": "2"}, nil, nil, Request{Request: gpu.Request{CPUMilli: 2000}}},
		{"whole GPUs", strs{"nvidia.com/gpu": "4", "cpu": "8"}, nil, nil,
			Request{Request: gpu.Request{Resource: "nvidia.com/gpu", Count: 4, Milli: 1000, CPUMilli: 8000}}},
		{"GPUs of another maker", strs{"amd.com/gpu": "1"}, nil, nil,
			Request{Request: gpu.Request{Resource: "amd.com/gpu", Count: 1, Milli: 1000}}},
		{"a request of zero is none", strs{"nvidia.com/gpu": "0"}, nil, nil, Request{}},
		{"an absurd number stays a number", strs{"nvidia.com/gpu": "9223372036854775807"}, nil, nil,
			Request{Request: gpu.Request{Resource: "nvidia.com/gpu", Count: MaxGPUs, Milli: 1000}}},
		{"time slices by name", strs{"nvidia.com/gpu.shared": "1"}, nil, nil,
			Request{Request: gpu.Request{Resource: "nvidia.com/gpu.shared", Count: 1, Milli: 1000,
				Sharing: gpu.SharingAllowed}}},
		{"MIG slices", strs{"nvidia.com/mig-2g.10gb": "1", "nvidia.com/mig-1g.5gb": "3"}, nil, nil,
			Request{Request: gpu.Request{
				Slices: []gpu.SliceCount{{Resource: "nvidia.com/mig-1g.5gb", Count: 3, Milli: 142},
					{Resource: "nvidia.com/mig-2g.10gb", Count: 1, Milli: 285}}}}},
		{"an openb share", nil, strs{OpenbMilliKey: "460", OpenbCountKey: "1"}, nil,
			Request{Request: gpu.Request{Count: 1, Milli: 460, Shared: true}, Dialect: DialectOpenb}},
		{"an openb share of one GPU without a count", nil, strs{OpenbMilliKey: "460"}, nil,
			Request{Request: gpu.Request{Count: 1, Milli: 460, Shared: true}, Dialect: DialectOpenb}},
		{"openb whole GPUs", nil, strs{OpenbMilliKey: "1000", OpenbCountKey: "8"}, nil,
			Request{Request: gpu.Request{Count: 8, Milli: 1000, Shared: true}, Dialect: DialectOpenb}},
		{"openb says none by zeros", nil, strs{OpenbMilliKey: "0", OpenbCountKey: "0"}, nil, Request{}},
		{"openb models", nil, strs{OpenbMilliKey: "460", openbModelKey: "V100M32|V100M16"}, nil,
			Request{Request: gpu.Request{Count: 1, Milli: 460, Shared: true, Models: []string{"V100M16", "V100M32"}},
				Dialect: DialectOpenb}},
		{"openb any model", nil, strs{OpenbMilliKey: "460", openbModelKey: ""}, nil,
			Request{Request: gpu.Request{Count: 1, Milli: 460, Shared: true}, Dialect: DialectOpenb}},
		{"a KAI fraction", nil, strs{kaiFractionKey: "0.5"}, nil,
			Request{Request: gpu.Request{Count: 1, Milli: 500, Shared: true}, Dialect: DialectKAI}},
		{"a KAI fraction is rounded down, so that three thirds fit", nil, strs{kaiFractionKey: "0.3333"}, nil,
			Request{Request: gpu.Request{Count: 1, Milli: 333, Shared: true}, Dialect: DialectKAI}},
		{"a KAI fraction of less than a thousandth", nil, strs{kaiFractionKey: "0.0001"}, nil,
			Request{Request: gpu.Request{Count: 1, Milli: 1, Shared: true}, Dialect: DialectKAI}},
		{"a KAI fraction that floats do not hold exactly", nil, strs{kaiFractionKey: "0.57"}, nil,
			Request{Request: gpu.Request{Count: 1, Milli: 570, Shared: true}, Dialect: DialectKAI}},
		{"KAI fractions of several devices", nil, strs{kaiFractionKey: "0.5", kaiDevicesKey: "2"}, nil,
			Request{Request: gpu.Request{Count: 2, Milli: 500, Shared: true}, Dialect: DialectKAI}},
		{"KAI memory", nil, strs{kaiMemoryKey: "4096"}, nil,
			Request{Request: gpu.Request{Count: 1, ShareMemMiB: 4096, Shared: true}, Dialect: DialectKAI}},
		{"HAMi memory", strs{"nvidia.com/gpu": "2", hamiMemoryResource: "3000"}, nil, nil,
			Request{Request: gpu.Request{Resource: "nvidia.com/gpu", Count: 2, ShareMemMiB: 3000, Shared: true, ByAgent: true},
				Dialect: DialectHAMi}},
		{"HAMi memory and cores", strs{"nvidia.com/gpu": "1", hamiMemoryResource: "3000", hamiCoresResource: "30"}, nil, nil,
			Request{Request: gpu.Request{Resource: "nvidia.com/gpu", Count: 1, Milli: 300, ShareMemMiB: 3000, Shared: true,
				ByAgent: true}, Dialect: DialectHAMi}},
		{"HAMi percentage", strs{"nvidia.com/gpu": "1", hamiPercentResource: "50"}, nil, nil,
			Request{Request: gpu.Request{Resource: "nvidia.com/gpu", Count: 1, Milli: 500, Shared: true, ByAgent: true},
				Dialect: DialectHAMi}},
		{"HAMi cores alone take all of the memory", strs{"nvidia.com/gpu": "1", hamiCoresResource: "30"}, nil, nil,
			Request{Request: gpu.Request{Resource: "nvidia.com/gpu", Count: 1, Milli: 300, ShareMemMilli: 1000, Shared: true,
				ByAgent: true}, Dialect: DialectHAMi}},
		{"HAMi cores and a percentage", strs{"nvidia.com/gpu": "1", hamiCoresResource: "30", hamiPercentResource: "50"}, nil,
			nil, Request{Request: gpu.Request{Resource: "nvidia.com/gpu", Count: 1, Milli: 300, ShareMemMilli: 500, Shared: true,
				ByAgent: true}, Dialect: DialectHAMi}},
		{"HAMi limits of zero are none", strs{"nvidia.com/gpu": "1", hamiCoresResource: "0", hamiPercentResource: "0"}, nil,
			nil, Request{Request: gpu.Request{Resource: "nvidia.com/gpu", Count: 1, Milli: 1000}}},
		{"constraints", strs{"nvidia.com/gpu": "2"},
			strs{wellknown.GPUMemoryMinKey: "40Gi", wellknown.GPUModelsKey: "B| A |B", wellknown.GPUInterconnectKey: "required",
				wellknown.GPUSharingKey: "exclusive"}, nil,
			Request{Request: gpu.Request{Resource: "nvidia.com/gpu", Count: 2, Milli: 1000, MinMemMiB: 40960,
				Models:       []string{"A", "B"},
				Interconnect: gpu.InterconnectRequired, Sharing: gpu.SharingExclusive}}},
		{"memory is rounded up", strs{"nvidia.com/gpu": "1"}, strs{wellknown.GPUMemoryMinKey: "40000M",
			wellknown.GPUInterconnectKey: "preferred", wellknown.GPUSharingKey: "shared"}, nil,
			Request{Request: gpu.Request{Resource: "nvidia.com/gpu", Count: 1, Milli: 1000, MinMemMiB: 38147,
				Interconnect: gpu.InterconnectPreferred, Sharing: gpu.SharingAllowed}}},
		{"a GPU-intensive pod without a request", nil, nil, strs{WorkloadTypeLabel: "GPU-intensive"},
			Request{Request: gpu.Request{NeedsGPUNode: true}}},
		{"a CPU-intensive pod", nil, nil, strs{WorkloadTypeLabel: "CPU-intensive"},
			Request{Request: gpu.Request{AvoidsGPUNode: true}}},
		{"a CPU-intensive pod with a GPU keeps it", strs{"nvidia.com/gpu": "1"}, nil,
			strs{WorkloadTypeLabel: "CPU-intensive"},
			Request{Request: gpu.Request{Resource: "nvidia.com/gpu", Count: 1, Milli: 1000}}},
		{"somebody else's workload type", nil, nil, strs{WorkloadTypeLabel: "web"}, Request{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			pod := gpuPod(tc.requests, tc.annotations)
			pod.Labels = tc.labels
			got, err := keys.PodGPURequest(pod)
			require.NoError(t, err)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("PodGPURequest (-want +got):\n%s", diff)
			}
			if got.WantsGPU() && !keys.MayUseGPU(pod) {
				t.Error("MayUseGPU = false for a pod that uses GPUs")
			}
		})
	}
}

func TestPodGPURequestRefuses(t *testing.T) {
	t.Parallel()
	keys := DefaultKeys()
	for _, tc := range []struct {
		name        string
		requests    strs
		annotations strs
		want        string
	}{
		{"a fraction beside whole GPUs", strs{"nvidia.com/gpu": "2"}, strs{kaiFractionKey: "0.5"},
			`pod annotation gpu-fraction: "0.5" is not allowed together with resource nvidia.com/gpu: 2`},
		{"an openb share beside whole GPUs", strs{"nvidia.com/gpu": "1"}, strs{OpenbMilliKey: "500"},
			`pod annotation alibabacloud.com/gpu-milli: "500" is not allowed together with resource nvidia.com/gpu: 1`},
		{"two dialects", nil, strs{OpenbMilliKey: "500", kaiFractionKey: "0.5"},
			`pod annotation gpu-fraction: "0.5" is not allowed together with annotation alibabacloud.com/gpu-milli`},
		{"fraction and memory", nil, strs{kaiMemoryKey: "500", kaiFractionKey: "0.5"},
			`pod annotation gpu-memory: "500" is not allowed together with annotation gpu-fraction`},
		{"a share of a slice", strs{"nvidia.com/mig-1g.5gb": "1"}, strs{kaiFractionKey: "0.5"},
			`pod annotation gpu-fraction: "0.5" is not allowed together with resource nvidia.com/mig-1g.5gb`},
		{"GPUs of two makers", strs{"nvidia.com/gpu": "1", "amd.com/gpu": "2"}, nil,
			`pod resource amd.com/gpu: "2" is not allowed together with nvidia.com/gpu: ask for GPUs of one kind`},
		{"more than a whole GPU", nil, strs{OpenbMilliKey: "1001"},
			`pod annotation alibabacloud.com/gpu-milli: "1001" is not a whole number from 0 to 1000`},
		{"a negative share", nil, strs{OpenbMilliKey: "-1"}, `pod annotation alibabacloud.com/gpu-milli: "-1" is not a whole number from 0 to 1000`},
		{"a share in words", nil, strs{OpenbMilliKey: "half"}, `pod annotation alibabacloud.com/gpu-milli: "half" is not a whole number from 0 to 1000`},
		{"an empty share", nil, strs{OpenbMilliKey: ""}, `pod annotation alibabacloud.com/gpu-milli: "" is not a whole number from 0 to 1000`},
		{"GPUs without a share of them", nil, strs{OpenbMilliKey: "0", OpenbCountKey: "2"},
			`pod annotation alibabacloud.com/gpu-milli: "0" is not allowed together with alibabacloud.com/gpu-count: 2; both or neither must be 0`},
		{"a huge count", nil, strs{OpenbCountKey: "99999999999999999999"}, `pod annotation alibabacloud.com/gpu-count: "99999999999999999999" is not a whole number from 0 to 16384`},
		{"a fraction of zero", nil, strs{kaiFractionKey: "0"}, `pod annotation gpu-fraction: "0" is not a decimal fraction of a GPU above 0 and up to 1, such as 0.5`},
		{"a fraction that is no number", nil, strs{kaiFractionKey: "NaN"}, `pod annotation gpu-fraction: "NaN" is not a decimal fraction of a GPU above 0 and up to 1, such as 0.5`},
		{"a fraction above one", nil, strs{kaiFractionKey: "1.5"}, `pod annotation gpu-fraction: "1.5" is not a decimal fraction of a GPU above 0 and up to 1, such as 0.5`},
		{"memory with a unit", nil, strs{kaiMemoryKey: "4Gi"}, `pod annotation gpu-memory: "4Gi" is not a whole number from 1 to 1073741824`},
		{"devices without a fraction", nil, strs{kaiDevicesKey: "2"},
			`pod annotation gpu-fraction-num-devices: "2" is not allowed without annotation gpu-fraction or gpu-memory`},
		{"no devices", nil, strs{kaiFractionKey: "0.5", kaiDevicesKey: "0"}, `pod annotation gpu-fraction-num-devices: "0" is not a whole number from 1 to 16384`},
		{"HAMi memory without GPUs", strs{hamiMemoryResource: "3000"}, nil,
			`pod resource nvidia.com/gpumem or nvidia.com/gpucores: "set" is not allowed without nvidia.com/gpu, which says of how many GPUs`},
		{"HAMi memory twice", strs{"nvidia.com/gpu": "1", hamiMemoryResource: "3000", hamiPercentResource: "30"}, nil,
			`pod resource nvidia.com/gpumem-percentage: "30" is not allowed together with nvidia.com/gpumem`},
		{"HAMi cores above all", strs{"nvidia.com/gpu": "1", hamiCoresResource: "101"}, nil, `pod resource nvidia.com/gpucores: "101" is not a whole number from 1 to 100`},
		{"memory in bytes by mistake", strs{"nvidia.com/gpu": "1"}, strs{wellknown.GPUMemoryMinKey: "40000"},
			`pod annotation berth.dev/gpu-memory-min: "40000" is not a quantity of memory per GPU of 1Mi or more, such as 40Gi or 40000Mi`},
		{"memory that is no quantity", nil, strs{wellknown.GPUMemoryMinKey: "lots"},
			`pod annotation berth.dev/gpu-memory-min: "lots" is not a quantity of memory per GPU of 1Mi or more, such as 40Gi or 40000Mi`},
		{"an empty model", nil, strs{wellknown.GPUModelsKey: "A||B"}, `pod annotation berth.dev/gpu-models: "A||B" is not a list of GPU products joined by |, such as Tesla-T4|NVIDIA-A10`},
		{"models that disagree", nil, strs{wellknown.GPUModelsKey: "A", openbModelKey: "B"},
			`pod annotation alibabacloud.com/gpu-card-model: "B" is not allowed together with a different berth.dev/gpu-models`},
		{"an unknown interconnect", nil, strs{wellknown.GPUInterconnectKey: "nvlink"}, `pod annotation berth.dev/gpu-interconnect: "nvlink" is not required or preferred`},
		{"an unknown sharing", nil, strs{wellknown.GPUSharingKey: "yes"}, `pod annotation berth.dev/gpu-sharing: "yes" is not exclusive or shared`},
		{"an exclusive share", nil, strs{kaiFractionKey: "0.5", wellknown.GPUSharingKey: "exclusive"},
			`pod annotation berth.dev/gpu-sharing: "exclusive" is not allowed together with a request for a part of a GPU`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			_, err := keys.PodGPURequest(gpuPod(tc.requests, tc.annotations))
			var bad *wellknown.BadValue
			if !errors.As(err, &bad) || err.Error() != tc.want {
				t.Errorf("error = %v\nwant    %s", err, tc.want)
			}
		})
	}
}

func TestHAMiContainersMustAgree(t *testing.T) {
	t.Parallel()
	keys := DefaultKeys()
	pod := gpuPod(strs{"nvidia.com/gpu": "1", hamiMemoryResource: "3000"}, nil)
	second := gpuPod(strs{"nvidia.com/gpu": "1", hamiMemoryResource: "3000"}, nil).Spec.Containers[0]
	pod.Spec.Containers = append(pod.Spec.Containers, second)
	got, err := keys.PodGPURequest(pod)
	if err != nil || got.Count != 2 || got.ShareMemMiB != 3000 {
		t.Errorf("two equal containers: %+v, %v, want 2 GPUs of 3000 MiB each", got, err)
	}
	pod.Spec.Containers[1].Resources.Requests[hamiMemoryResource] = resource.MustParse("4000")
	if _, err = keys.PodGPURequest(pod); err == nil || !strings.Contains(err.Error(), "equal in all containers") {
		t.Errorf("error = %v, want one about containers that differ", err)
	}
}

func FuzzPodGPURequest(f *testing.F) {
	for _, seed := range []string{"", "0.5", "1000", "-1", "1e309", "NaN", "A|B", "40Gi", "required", "\x00",
		"99999999999999999999"} {
		f.Add(seed, seed, seed, seed)
	}
	keys := DefaultKeys()
	f.Fuzz(func(t *testing.T, a, b, c, d string) {
		for _, annotations := range []strs{
			{OpenbMilliKey: a, OpenbCountKey: b, openbModelKey: c, wellknown.GPUMemoryMinKey: d},
			{kaiFractionKey: a, kaiDevicesKey: b, wellknown.GPUModelsKey: c, wellknown.GPUInterconnectKey: d},
			{kaiMemoryKey: a, wellknown.GPUSharingKey: b},
		} {
			pod := gpuPod(nil, annotations)
			r, err := keys.PodGPURequest(pod)
			var bad *wellknown.BadValue
			if err != nil && !errors.As(err, &bad) {
				t.Fatalf("error %v is no BadValue", err)
			}
			if err == nil && (r.Count < 0 || r.Milli < 0 || r.Milli > gpu.WholeMilli || r.ShareMemMiB < 0 || r.MinMemMiB < 0) {
				t.Fatalf("request out of range: %+v", r)
			}
			if held := keys.claimedGPUs(pod); held.Count < 0 || held.Count > MaxGPUs || held.Milli < 0 ||
				held.Milli > gpu.WholeMilli {
				t.Fatalf("the pod holds %+v", held)
			}
			if backed := keys.backedGPUs(pod); backed.WantsGPU() {
				t.Fatalf("annotations alone stand behind %+v", backed)
			}
		}
	})
}
