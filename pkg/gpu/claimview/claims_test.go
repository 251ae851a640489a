package claimview

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/dynamic-resource-allocation/resourceslice/tracker"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/kubernetes/pkg/scheduler/util/assumecache"
	"k8s.io/utils/ptr"

	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/test/harness/await"
	"berth.dev/berth/test/harness/objects"
	"berth.dev/berth/test/harness/require"
)

const gpuDriver, nicDriver = "gpu.nvidia.com", "nic.example.com"

// world is a scheduler's knowledge of devices, on a simulated API.
type world struct {
	client *fake.Clientset
	dra    fwk.SharedDRAManager
	claims *GPUs
}

// newWorld waits until all objects are known.
func newWorld(t *testing.T, all ...runtime.Object) *world {
	t.Helper()
	w := &world{client: fake.NewClientset(all...)}
	factory := informers.NewSharedInformerFactory(w.client, 0)
	cached := assumecache.NewAssumeCache(klog.Logger{}, factory.Resource().V1().ResourceClaims().Informer(),
		"ResourceClaim", "", nil)
	slices, err := tracker.StartTracker(t.Context(), tracker.Options{
		EnableDeviceTaintRules: true, EnableConsumableCapacity: true, SliceInformer: factory.Resource().V1().ResourceSlices(),
		TaintInformer: factory.Resource().V1().DeviceTaintRules(), KubeClient: w.client,
	})
	require.NoError(t, err)
	w.dra = dynamicresources.NewDRAManager(t.Context(), cached, slices, factory)
	if w.claims, err = GPUsOf(factory, w.dra, gpuview.DefaultKeys().Drivers); err != nil {
		t.Fatal(err)
	}
	nodes := factory.Core().V1().Nodes().Lister()
	factory.StartWithContext(t.Context())
	t.Cleanup(factory.Shutdown) // the context has ended by then
	factory.WaitForCacheSync(t.Context().Done())
	await.Until(t, "all objects are known", func() bool {
		for _, o := range all {
			switch o := o.(type) {
			case *resourcev1.ResourceClaim:
				if _, err := w.dra.ResourceClaims().Get(o.Namespace, o.Name); err != nil {
					return false
				}
			case *resourcev1.DeviceClass:
				if _, err := w.dra.DeviceClasses().Get(o.Name); err != nil {
					return false
				}
			case *v1.Node:
				if _, err := nodes.Get(o.Name); err != nil {
					return false
				}
			case *resourcev1.ResourceSlice:
				list, err := w.dra.ResourceSlices().ListWithDeviceTaintRules()
				found := false
				for _, s := range list {
					found = found || s.Name == o.Name
				}
				if err != nil || !found {
					return false
				}
			}
		}
		return true
	})
	return w
}

// demand is what a pod with the claim "c" asks of GPUs.
func (w *world) demand(t *testing.T) (gpu.Request, bool) {
	t.Helper()
	if c := w.claims.Pod(t.Context(), objects.UseClaim(objects.Pod("p").Container("c").Obj(), "c")); c != nil {
		return c.Request()
	}
	return gpu.Request{}, false
}

func nodeNamed(name string) *v1.Node {
	return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func infoOf(node *v1.Node) fwk.NodeInfo {
	info := framework.NewNodeInfo()
	info.SetNode(node)
	return info
}

// sliceOf is a pool of devices on a node, each behind a PCIe root of its own.
func sliceOf(driver, node string, n int, memory string) *resourcev1.ResourceSlice {
	devices := objects.GPUs(n, map[string]string{"productName": "Tesla T4"})
	for i := range devices {
		devices[i].Attributes["resource.kubernetes.io/pcieRoot"] = resourcev1.DeviceAttribute{
			StringValue: ptr.To(fmt.Sprint("root-", i))}
		devices[i].Capacity["memory"] = resourcev1.DeviceCapacity{Value: resource.MustParse(memory)}
	}
	slice := objects.Slice(driver, node, devices...)
	slice.Name, slice.UID = node+"-"+driver, types.UID(node+driver)
	return slice
}

// closeTogether asks for a GPU and a network device behind one PCIe root.
func closeTogether() *resourcev1.ResourceClaim {
	c := objects.ClaimOf("c", objects.Request("gpu", "gpu", 1), objects.Request("nic", "nic", 1))
	c.Spec.Devices.Constraints = []resourcev1.DeviceConstraint{{
		Requests:       []string{"gpu", "nic"},
		MatchAttribute: ptr.To(resourcev1.FullyQualifiedName("resource.kubernetes.io/pcieRoot")),
	}}
	return c
}

func TestDemandIsFoundAmongAllKindsOfDevices(t *testing.T) {
	t.Parallel()
	large := objects.ClaimOf("c", objects.Request("gpu", "gpu", 1,
		objects.Matching(`device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("29Gi")) >= 0`)))
	var many []runtime.Object
	for i := range 20 {
		name := fmt.Sprint("n", i)
		many = append(many, nodeNamed(name), sliceOf(gpuDriver, name, 1, fmt.Sprint(10+i, "Gi")))
	}
	for name, tc := range map[string]struct {
		claim   *resourcev1.ResourceClaim
		objects []runtime.Object
	}{
		"the twentieth kind alone serves it": {large, many},
		"a network device beside counts for nothing": {closeTogether(), []runtime.Object{
			nodeNamed("a"), sliceOf(gpuDriver, "a", 1, "16Gi"),
			nodeNamed("b"), sliceOf(gpuDriver, "b", 1, "16Gi"), sliceOf(nicDriver, "b", 1, "1Gi"),
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := []runtime.Object{objects.DeviceClass("gpu", gpuDriver), objects.DeviceClass("nic", nicDriver), tc.claim}
			for _, o := range tc.objects {
				all = append(all, o.DeepCopyObject())
			}
			w := newWorld(t, all...)
			if r, ok := w.demand(t); !ok || r.Count != 1 {
				t.Errorf("demand %+v, known %t, want one GPU", r, ok)
			}
		})
	}
}

func TestDemandIsKnownWhenANodeCanServeIt(t *testing.T) {
	t.Parallel()
	claim := objects.ClaimOf("c", objects.Request("gpu", "gpu", 1,
		objects.Matching(`"rack" in device.attributes["gpu.nvidia.com"]`)))
	slice := sliceOf(gpuDriver, "n", 1, "16Gi")
	w := newWorld(t, nodeNamed("n"), objects.DeviceClass("gpu", gpuDriver), claim, slice)
	if r, ok := w.demand(t); ok {
		t.Fatalf("demand %+v of what no node serves", r)
	}
	slice = slice.DeepCopy()
	slice.Spec.Devices[0].Attributes["rack"] = resourcev1.DeviceAttribute{StringValue: ptr.To("7")}
	if _, err := w.client.ResourceV1().ResourceSlices().Update(t.Context(), slice, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	await.Until(t, "the demand is known", func() bool { _, ok := w.demand(t); return ok })
}
