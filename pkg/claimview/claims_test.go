package claimview

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

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
	"berth.dev/berth/pkg/gpuview"
	"berth.dev/berth/test/harness/await"
)

const gpuDriver, nicDriver = "gpu.nvidia.com", "nic.example.com"

// world is a scheduler's knowledge of devices, on a simulated API.
type world struct {
	client *fake.Clientset
	dra    fwk.SharedDRAManager
	claims *GPUs
}

// newWorld waits until all objects are known. Searches have a minute, so that those that end do so on a busy machine,
// too.
func newWorld(t *testing.T, objects ...runtime.Object) *world {
	t.Helper()
	w := &world{client: fake.NewClientset(objects...)}
	factory := informers.NewSharedInformerFactory(w.client, 0)
	cached := assumecache.NewAssumeCache(klog.Logger{}, factory.Resource().V1().ResourceClaims().Informer(),
		"ResourceClaim", "", nil)
	slices, err := tracker.StartTracker(t.Context(), tracker.Options{
		EnableDeviceTaintRules: true, EnableConsumableCapacity: true, SliceInformer: factory.Resource().V1().ResourceSlices(),
		TaintInformer: factory.Resource().V1().DeviceTaintRules(), KubeClient: w.client,
	})
	if err != nil {
		t.Fatal(err)
	}
	w.dra = dynamicresources.NewDRAManager(t.Context(), cached, slices, factory)
	if w.claims, err = GPUsOf(t.Context(), factory, w.dra, gpuview.DefaultKeys().Drivers); err != nil {
		t.Fatal(err)
	}
	w.claims.nodeWithin, w.claims.kindsWithin = time.Minute, time.Minute
	factory.StartWithContext(t.Context())
	t.Cleanup(factory.Shutdown) // the context has ended by then
	factory.WaitForCacheSync(t.Context().Done())
	await.Until(t, "all objects are known", func() bool {
		for _, o := range objects {
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
				if _, err := w.claims.nodes.Get(o.Name); err != nil {
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

// state is the state of this moment.
func (w *world) state(t *testing.T) *State {
	t.Helper()
	s, err := w.claims.Now(t.Context())
	if err != nil || s == nil {
		t.Fatalf("state %v, error %v", s, err)
	}
	return s
}

// pod reads a pod with the claim "c".
func (w *world) pod() *Pod { return w.claims.Pod(podWith("c")) }

func podWith(claim string) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "default"}, Spec: v1.PodSpec{
		ResourceClaims: []v1.PodResourceClaim{{Name: "devices", ResourceClaimName: &claim}},
	}}
}

func nodeNamed(name string, labels map[string]string) *v1.Node {
	return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
}

func infoOf(node *v1.Node) fwk.NodeInfo {
	info := framework.NewNodeInfo()
	info.SetNode(node)
	return info
}

// classOf selects the devices of a driver.
func classOf(name, driver string) *resourcev1.DeviceClass {
	return &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourcev1.DeviceClassSpec{
		Selectors: []resourcev1.DeviceSelector{
			{CEL: &resourcev1.CELDeviceSelector{Expression: fmt.Sprintf("device.driver == %q", driver)}}},
	}}
}

// claimNamed is a claim for a number of devices of each class.
func claimNamed(name string, count int64, classes ...string) *resourcev1.ResourceClaim {
	c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID(name)}}
	for _, class := range classes {
		c.Spec.Devices.Requests = append(c.Spec.Devices.Requests,
			resourcev1.DeviceRequest{Name: class, Exactly: &resourcev1.ExactDeviceRequest{
				DeviceClassName: class, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: count,
			}})
	}
	return c
}

// sliceOf is a pool of devices on a node, each behind a PCIe root of its own.
func sliceOf(driver, node string, n int, memory string) *resourcev1.ResourceSlice {
	s := &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: node + "-" + driver, UID: types.UID(node + driver)},
		Spec: resourcev1.ResourceSliceSpec{
			Driver: driver, NodeName: ptr.To(node), Pool: resourcev1.ResourcePool{Name: node, Generation: 1,
				ResourceSliceCount: 1},
		},
	}
	for i := range n {
		s.Spec.Devices = append(s.Spec.Devices, resourcev1.Device{
			Name: fmt.Sprint("d", i),
			Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
				"resource.kubernetes.io/pcieRoot": {StringValue: ptr.To(fmt.Sprint("root-", i))},
				"productName":                     {StringValue: ptr.To("Tesla T4")},
			},
			Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse(memory)}},
		})
	}
	return s
}

// partitioned cuts eight GPUs in twelve ways each; no two fit on one GPU together.
func partitioned(node string) []runtime.Object {
	counters := &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: node + "-counters", UID: types.UID(node + "counters")},
		Spec: resourcev1.ResourceSliceSpec{
			Driver: gpuDriver, NodeName: ptr.To(node), Pool: resourcev1.ResourcePool{Name: node, Generation: 1,
				ResourceSliceCount: 2},
		},
	}
	devices := sliceOf(gpuDriver, node, 8*12, "48Gi")
	devices.Spec.Pool.ResourceSliceCount = 2
	for i := range 8 {
		counters.Spec.SharedCounters = append(counters.Spec.SharedCounters, resourcev1.CounterSet{
			Name: fmt.Sprint("gpu-", i), Counters: map[string]resourcev1.Counter{"memory": {Value: resource.MustParse("80Gi")}},
		})
	}
	for i := range devices.Spec.Devices {
		devices.Spec.Devices[i].ConsumesCounters = []resourcev1.DeviceCounterConsumption{{
			CounterSet: fmt.Sprint("gpu-", i/12),
			Counters:   map[string]resourcev1.Counter{"memory": {Value: resource.MustParse("48Gi")}},
		}}
	}
	return []runtime.Object{counters, devices}
}

// Nine parts, if one fits on each of eight GPUs, keep an exhaustive search busy forever.
func TestASearchThatTakesTooLongIsGivenUp(t *testing.T) {
	t.Parallel()
	node := nodeNamed("n", nil)
	w := newWorld(t, append(partitioned("n"), node, classOf("gpu", gpuDriver), claimNamed("c", 9, "gpu"))...)
	w.claims.nodeWithin, w.claims.kindsWithin = searchNodeWithin, searchKindsWithin
	done := make(chan struct{})
	go func() {
		defer close(done)
		if r, ok := w.claims.Demand(t.Context(), w.pod()); ok {
			t.Errorf("nine parts of eight GPUs are %+v", r)
		}
		state := w.state(t)
		for range 2 * maxLate {
			if o, err := state.Allocate(t.Context(), infoOf(node), w.pod()); err == nil {
				t.Errorf("outcome %+v without an error", o)
			}
		}
	}()
	await.Next(t, done, "the allocator")
	if _, known := w.claims.demands.Get(w.pod().Shape()); known {
		t.Error("a demand that is not known is remembered")
	}
	if known := w.claims.remembered(w.pod().Shape()).load("n"); known.outcome != nil {
		t.Errorf("outcome %+v is remembered", known.outcome)
	}
}

func TestAnErrorIsNotRemembered(t *testing.T) {
	t.Parallel()
	node := nodeNamed("n", nil)
	w := newWorld(t, node, classOf("gpu", gpuDriver), sliceOf(gpuDriver, "n", 2, "16Gi"), claimNamed("c", 2, "gpu"))
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if r, ok := w.claims.Demand(over, w.pod()); ok {
		t.Fatalf("demand %+v of a search that was cancelled", r)
	}
	if r, ok := w.claims.Demand(t.Context(), w.pod()); !ok || r.Count != 2 {
		t.Errorf("demand %+v, known %t, want two GPUs", r, ok)
	}
	state := w.state(t)
	if _, err := state.Allocate(over, infoOf(node), w.pod()); !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v of a search that was cancelled", err)
	}
	if o, err := state.Allocate(t.Context(), infoOf(node), w.pod()); err != nil || !o.OK || len(o.Granted) != 2 {
		t.Errorf("outcome %+v (%v), want two GPUs", o, err)
	}
}

// closeTogether asks for a GPU and a network device behind one PCIe root.
func closeTogether() *resourcev1.ResourceClaim {
	c := claimNamed("c", 1, "gpu", "nic")
	c.Spec.Devices.Constraints = []resourcev1.DeviceConstraint{{
		Requests:       []string{"gpu", "nic"},
		MatchAttribute: ptr.To(resourcev1.FullyQualifiedName("resource.kubernetes.io/pcieRoot")),
	}}
	return c
}

func TestOutcomesDependOnTheNodesDevicesOfAllDrivers(t *testing.T) {
	t.Parallel()
	node := nodeNamed("n", nil)
	w := newWorld(t, node, classOf("gpu", gpuDriver), classOf("nic", nicDriver), closeTogether(),
		sliceOf(gpuDriver, "n", 2, "16Gi"), sliceOf(nicDriver, "n", 2, "1Gi"))
	granted := func() []gpu.Grant {
		o, err := w.state(t).Allocate(t.Context(), infoOf(node), w.pod())
		if err != nil {
			t.Fatal(err)
		}
		if !o.OK {
			return nil
		}
		return o.Granted
	}
	stamp := w.state(t).LocalStamp("n")
	if got := granted(); len(got) != 1 || got[0].Device != 0 {
		t.Fatalf("granted %+v, want GPU 0", got)
	}
	for i, want := range []int{1, -1} {
		taken := claimNamed(fmt.Sprint("taken-", i), 1, "nic")
		taken.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{
			Results: []resourcev1.DeviceRequestAllocationResult{
				{Request: "nic", Driver: nicDriver, Pool: "n", Device: fmt.Sprint("d", i)},
			}}}
		if _, err := w.client.ResourceV1().ResourceClaims("default").Create(t.Context(), taken,
			metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		await.Until(t, "the network device is allocated", func() bool {
			all, err := w.dra.ResourceClaims().ListAllAllocatedDevices()
			return err == nil && len(all) == i+1
		})
		if now := w.state(t).LocalStamp("n"); now == stamp {
			t.Error("the stamp is that of before the network device was taken")
		}
		got := granted()
		if want < 0 && got != nil || want >= 0 && (len(got) != 1 || got[0].Device != want) {
			t.Errorf("granted %+v with %d network devices taken, want GPU %d", got, i+1, want)
		}
	}
}

func TestDemandIsTriedOnAllKindsOfNodes(t *testing.T) {
	t.Parallel()
	large := claimNamed("c", 1, "gpu")
	large.Spec.Devices.Requests[0].Exactly.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{
		Expression: `device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("29Gi")) >= 0`,
	}}}
	var many []runtime.Object
	for i := range 20 {
		name := fmt.Sprint("n", i)
		many = append(many, nodeNamed(name, nil), sliceOf(gpuDriver, name, 1, fmt.Sprint(10+i, "Gi")))
	}
	reached := sliceOf(nicDriver, "rack", 1, "1Gi")
	reached.Spec.NodeName, reached.Spec.NodeSelector = nil, &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{
		{MatchExpressions: []v1.NodeSelectorRequirement{{Key: "rack", Operator: v1.NodeSelectorOpIn, Values: []string{"7"}}}},
	}}
	for name, tc := range map[string]struct {
		claim   *resourcev1.ResourceClaim
		objects []runtime.Object
	}{
		"the twentieth kind alone serves it": {large, many},
		"a node like another has a network device beside": {closeTogether(), []runtime.Object{
			nodeNamed("a", nil), sliceOf(gpuDriver, "a", 1, "16Gi"),
			nodeNamed("b", nil), sliceOf(gpuDriver, "b", 1, "16Gi"), sliceOf(nicDriver, "b", 1, "1Gi"),
		}},
		"its labels let a node reach a device": {claimNamed("c", 1, "gpu", "nic"), []runtime.Object{
			nodeNamed("a", map[string]string{"rack": "7"}), sliceOf(gpuDriver, "a", 1, "16Gi"), reached,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects := []runtime.Object{classOf("gpu", gpuDriver), classOf("nic", nicDriver), tc.claim}
			for _, o := range tc.objects {
				objects = append(objects, o.DeepCopyObject())
			}
			w := newWorld(t, objects...)
			if r, ok := w.claims.Demand(t.Context(), w.pod()); !ok || r.Count != 1 {
				t.Errorf("demand %+v, known %t, want one GPU", r, ok)
			}
		})
	}
}

func TestWhatNoNodeServesIsTriedAgainWhenANodeChanges(t *testing.T) {
	t.Parallel()
	claim := claimNamed("c", 1, "gpu")
	claim.Spec.Devices.Requests[0].Exactly.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{
		Expression: `"rack" in device.attributes["gpu.nvidia.com"]`,
	}}}
	slice := sliceOf(gpuDriver, "n", 1, "16Gi")
	w := newWorld(t, nodeNamed("n", nil), classOf("gpu", gpuDriver), claim, slice)
	if r, ok := w.claims.Demand(t.Context(), w.pod()); ok {
		t.Fatalf("demand %+v of what no node serves", r)
	}
	slice = slice.DeepCopy()
	slice.Spec.Devices[0].Attributes["rack"] = resourcev1.DeviceAttribute{StringValue: ptr.To("7")}
	if _, err := w.client.ResourceV1().ResourceSlices().Update(t.Context(), slice, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	await.Until(t, "the demand is known", func() bool { _, ok := w.claims.Demand(t.Context(), w.pod()); return ok })
}
