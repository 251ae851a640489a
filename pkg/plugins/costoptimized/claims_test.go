package costoptimized

import (
	"context"
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/dynamic-resource-allocation/resourceslice/tracker"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"k8s.io/kubernetes/pkg/scheduler/util/assumecache"
	"k8s.io/utils/ptr"

	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/pkg/clusterstate"
	"berth.dev/berth/pkg/kubeview"
	"berth.dev/berth/pkg/price"
)

// claimDriver is one of a site, which the args name.
const claimDriver = "gpu.example.com"

// claimedWorld is what a plugin knows of devices that are claimed.
func claimedWorld(t *testing.T, drivers []string, objects ...runtime.Object) (*clusterstate.GPUClaims, fwk.SharedDRAManager) {
	t.Helper()
	client := fake.NewClientset(objects...)
	factory := informers.NewSharedInformerFactory(client, 0)
	claims := assumecache.NewAssumeCache(klog.Logger{}, factory.Resource().V1().ResourceClaims().Informer(), "ResourceClaim", "", nil)
	slices, err := tracker.StartTracker(t.Context(), tracker.Options{SliceInformer: factory.Resource().V1().ResourceSlices(), KubeClient: client})
	if err != nil {
		t.Fatal(err)
	}
	dra := dynamicresources.NewDRAManager(t.Context(), claims, slices, factory)
	g, err := clusterstate.GPUClaimsOf(t.Context(), factory, dra, drivers)
	if err != nil {
		t.Fatal(err)
	}
	factory.StartWithContext(t.Context())
	factory.WaitForCacheSync(t.Context().Done())
	return g, dra
}

// TestPricesCountGPUsThatAreClaimed charges pods on a node whose GPUs stand in a slice, as on one with a device plugin.
func TestPricesCountGPUsThatAreClaimed(t *testing.T) {
	t.Parallel()
	bare := node("dra", "22.976")
	delete(bare.Status.Allocatable, "nvidia.com/gpu")
	delete(bare.Status.Capacity, "nvidia.com/gpu")
	slice := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "dra"}, Spec: resourcev1.ResourceSliceSpec{
		Driver: claimDriver, NodeName: ptr.To("dra"), Pool: resourcev1.ResourcePool{Name: "dra", Generation: 1, ResourceSliceCount: 1},
	}}
	for i := range 8 {
		slice.Spec.Devices = append(slice.Spec.Devices, resourcev1.Device{
			Name: fmt.Sprint("gpu-", i), Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse("80Gi")}},
		})
	}
	class := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}, Spec: resourcev1.DeviceClassSpec{
		Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: `device.driver == "gpu.example.com"`}}},
	}}
	claim := func(name string, n int64) *resourcev1.ResourceClaim {
		return &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID(name)},
			Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{Name: "gpus",
				Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: n}}}}}}
	}
	held := claim("held", 1)
	held.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{
		{Request: "gpus", Driver: claimDriver, Pool: "dra", Device: "gpu-0"},
	}}}
	args := &config.CostOptimizedArgs{GPUNames: config.GPUNames{DeviceDrivers: []string{claimDriver}}}
	config.SetDefaultsCostOptimizedArgs(args)
	settings, err := readArgs(args, profile)
	if err != nil {
		t.Fatal(err)
	}
	claims, dra := claimedWorld(t, settings.drivers, bare, slice, class, claim("mine", 2), held)

	keys := kubeview.DefaultGPUKeys()
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "default"}, Spec: v1.PodSpec{
		Containers:     []v1.Container{{Resources: v1.ResourceRequirements{Requests: v1.ResourceList{"cpu": resource.MustParse("8"), "memory": resource.MustParse("8Gi")}}}},
		ResourceClaims: []v1.PodResourceClaim{{Name: "gpus", ResourceClaimName: ptr.To("mine")}},
	}}
	info := framework.NewNodeInfo()
	info.SetNode(bare)
	var view *nodeView
	var asked kubeview.PricedPod
	err = wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		if _, err := claims.Now(ctx); err != nil {
			return false, err
		}
		view = settings.view(bare, market{}, claims)
		asked = claims.Asked(ctx, keys.ReadPricedPod(pod), pod)
		taken, err := dra.ResourceClaims().ListAllAllocatedDevices()
		return err == nil && len(taken) == 1 && asked.WantsGPU() && view.offers.Allocatable.MilliGPU > 0, nil
	})
	if err != nil {
		t.Fatalf("the node offers %+v, the pod asks for GPUs: %t (%v)", view.offers.Allocatable, asked.WantsGPU(), err)
	}
	plugin := keys.ReadPricedNode(node("plugin", "22.976"))
	if view.offers.Allocatable != plugin.Allocatable {
		t.Errorf("the node offers %+v, want what one with a device plugin does: %+v", view.offers.Allocatable, plugin.Allocatable)
	}
	if got, want := view.offers.Request(&asked), (price.Capacity{MilliCPU: 8000, MemoryMiB: 8192, MilliGPU: 2000}); got != want {
		t.Errorf("the pod takes %+v, want %+v", got, want)
	}
	if got := keys.FreeMilliGPU(&view.offers, info, claims.Left(&view.offers, info)); got != 7000 {
		t.Errorf("%d thousandths of a GPU are free, want 7000", got)
	}

	// A pod that takes all of the CPU strands the seven GPUs that are free, at two dollars each.
	hog := st.MakePod().Name("hog").UID("hog").Node("dra").Req(map[v1.ResourceName]string{"cpu": "96"}).Obj()
	p := &Plugin{settings: settings}
	request := price.Capacity{MilliCPU: 96_000, MemoryMiB: 1}
	if got := p.stranded(view, kubeview.FreeHost(info), request, func() int64 { return keys.FreeMilliGPU(&view.offers, info, claims.Left(&view.offers, info)) }); got != 7000 {
		t.Errorf("%d thousandths of a GPU are stranded, want 7000", got)
	}
	info.AddPod(hog)
	sum := &bill{byCapacity: map[kubeview.CapacityType]price.MicroDollars{}}
	(&biller{settings: settings, nodes: &nodeViews{settings: settings, claims: claims}}).add(sum, view, info)
	if sum.idleGPU != 14*price.Dollar || sum.strandedGPU != 14*price.Dollar {
		t.Errorf("idle GPUs cost %s, stranded ones %s, want 14 dollars each", sum.idleGPU, sum.strandedGPU)
	}
}
