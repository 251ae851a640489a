package claimview

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/pkg/wellknown"
)

func TestClaimsServeTheGPUsThatTheKubeletDoesNotOffer(t *testing.T) {
	t.Parallel()
	slice := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Spec: resourcev1.ResourceSliceSpec{
		Driver: testDriver, NodeName: ptr.To("n"), Pool: resourcev1.ResourcePool{Name: "n"},
	}}
	for i := range 8 {
		slice.Spec.Devices = append(slice.Spec.Devices, draDevice(fmt.Sprint("gpu-", i),
			texts{"type": "gpu", "productName": "NVIDIA H100 80GB HBM3", "uuid": fmt.Sprint("GPU-", i)}, mem80))
	}
	read := NoSlices([]string{testDriver}).Read([]*resourcev1.ResourceSlice{slice})
	const register = "GPU-a,10,16384,100,NVIDIA-Tesla T4,0,true:"
	keys := gpuview.DefaultKeys()
	h100 := texts{v1.LabelInstanceTypeStable: "p5.48xlarge"}
	for _, tc := range []struct {
		name                             string
		allocatable, labels, annotations texts
		claims                           bool
	}{
		{"an instance type with GPUs", nil, h100, nil, true},
		{"the labels of Karpenter", nil, texts{"karpenter.k8s.aws/instance-gpu-name": "h100",
			"karpenter.k8s.aws/instance-gpu-count": "8"}, nil, true},
		{"the labels of feature discovery", nil, texts{"nvidia.com/gpu.count": "8"}, nil, true},
		{"a resource that is offered no longer", texts{"nvidia.com/gpu": "0"}, h100, nil, true},
		{"no label at all", nil, nil, nil, true},
		{"GPUs of the device plugin", texts{"nvidia.com/gpu": "8"}, h100, nil, false},
		{"time slices of the device plugin", texts{"nvidia.com/gpu.shared": "8"}, h100, nil, false},
		{"MIG slices of the device plugin", texts{"nvidia.com/mig-1g.10gb": "7"}, h100, nil, false},
		{"GPUs that HAMi registered", nil, h100, texts{"hami.io/node-nvidia-register": register}, false},
		{"claims by the label of the mode", texts{"nvidia.com/gpu": "8"}, texts{wellknown.GPUModeKey: "dra"}, nil, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			object := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: tc.labels, Annotations: tc.annotations}}
			object.Status.Allocatable = v1.ResourceList{v1.ResourceCPU: resource.MustParse("64")}
			for name, q := range tc.allocatable {
				object.Status.Allocatable[v1.ResourceName(name)] = resource.MustParse(q)
			}
			node, bad := keys.ReadGPUNode(object)
			if len(bad) > 0 {
				t.Fatal(bad)
			}
			sole := read.Sole(node)
			if (sole != nil) != tc.claims {
				t.Fatalf("claims have the GPUs: %t, want %t", sole != nil, tc.claims)
			}
			if sole == nil {
				return
			}
			claimable := sole.GPUNode(node)
			if inv := claimable.Empty(); claimable.GPUs() != 8 || inv.Healthy() != 8 || inv.Model != "NVIDIA-H100-80GB-HBM3" {
				t.Errorf("%d × %s, %d healthy; want 8 healthy H100", claimable.GPUs(), inv.Model, inv.Healthy())
			}
		})
	}
}
