package plugins_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/test/harness/box"
	"berth.dev/berth/test/harness/objects"
)

// sharedFleet is a shared node of two GPUs, one with a label that cannot be read, and one whose GPUs are claimed.
const sharedFleet = `shapes:
- {name: shared, count: 2, labels: {berth.dev/gpu-mode: shared, nvidia.com/gpu.product: Tesla-T4, nvidia.com/gpu.count: "2"}, allocatable: {cpu: "16", memory: 64Gi, nvidia.com/gpu: "2"}}
- {name: mislabelled, count: 1, labels: {nvidia.com/gpu.product: Tesla-T4, nvidia.com/gpu.memory: lots}, allocatable: {cpu: "16", memory: 64Gi, nvidia.com/gpu: "1"}}
- {name: claimed, count: 1, allocatable: {cpu: "16", memory: 64Gi}}
`

// gpus is a test's part of a control plane with the shipped configuration.
type gpus struct{ *box.Box }

// gpuPod makes a pod of one CPU with these requests and annotations besides.
func gpuPod(name string, requests, annotations strs) *v1.Pod {
	return pod(name, "gpu-aware-scheduler", asking(strs{"cpu": "1"}), asking(requests), annotated(annotations))
}

// settled waits until every pod is bound or known not to fit, and returns them.
func (g *gpus) settled(t *testing.T, count int) []*v1.Pod {
	t.Helper()
	var settled []*v1.Pod
	g.AwaitPods(t, fmt.Sprintf("%d pods to settle", count), func(pods []*v1.Pod) (bool, error) {
		settled = pods
		return decided(pods) == count, nil
	})
	return settled
}

// decided is how many pods have a node or a reason why not.
func decided(pods []*v1.Pod) int {
	n := 0
	for _, pod := range pods {
		if pod.Spec.NodeName != "" || box.Reason(pod) != "" {
			n++
		}
	}
	return n
}

// refused waits until it is known that the pod finds no free share, and fails if it is bound.
func (g *gpus) refused(t *testing.T, name string) {
	t.Helper()
	g.Pending(t, name, "free GPU share (need ")
}

// said waits for one event of a reason on a pod.
func (g *gpus) said(t *testing.T, pod, reason string) {
	t.Helper()
	g.Told(t, pod, reason)
	if n, err := g.Events(t.Context(), pod, reason); n != 1 || err != nil {
		t.Errorf("%d events %s on pod %s, %v", n, reason, pod, err)
	}
}

// edit takes the requests and the answers away from all pods that run, and waits until that is said of one.
func (g *gpus) edit(t *testing.T) {
	t.Helper()
	defer g.Steady()()
	// One that another test's kill has just started may first see the pods as they are after the edit.
	g.Await(t, "the scheduler to know the cluster", func(ctx context.Context) (bool, error) {
		_, err := g.SchedulerPage(ctx, "/readyz", nil)
		return err == nil, nil
	})
	edited := ""
	for _, pod := range g.settled(t, 10) {
		if pod.Spec.NodeName == "" {
			continue
		}
		g.Patch(t, pod.Name, `{"metadata":{"annotations":{"alibabacloud.com/gpu-milli":null,"alibabacloud.com/gpu-index":null,
			"gpu-fraction":null,"runai-gpu":null}}}`)
		edited = pod.Name
	}
	g.said(t, edited, "GrantEdited")
}

// testShares runs the built scheduler with the rights of the shipped ClusterRole, over kills of it.
func testShares(t *testing.T, b *box.Box) {
	g := &gpus{b.Part(t, "shares", sharedFleet)}

	t.Run("shares are promised once, over a kill of the scheduler", func(t *testing.T) {
		for i := range 5 { // 6 of 600 would need more GPUs than the four there are
			g.Create(t, gpuPod(fmt.Sprintf("early-%d", i), nil, strs{"alibabacloud.com/gpu-milli": "600"}))
		}
		g.KillScheduler(t)
		for i := range 5 {
			g.Create(t, gpuPod(fmt.Sprintf("late-%d", i), nil, strs{"gpu-fraction": "0.4"}))
		}
		used, refused := map[string]int{}, 0
		for _, pod := range g.settled(t, 10) {
			if pod.Spec.NodeName == "" {
				refused++
				if !strings.Contains(box.Reason(pod), "free GPU share (need ") {
					t.Errorf("pod %s is pending with %q", pod.Name, box.Reason(pod))
				}
				continue
			}
			milli := 600
			if strings.HasPrefix(pod.Name, "late") {
				milli = 400
			}
			devices := gpuview.AssignedDevices(pod)
			if len(devices) != 1 {
				t.Errorf("pod %s on %s was told the devices %v", pod.Name, pod.Spec.NodeName, devices)
				continue
			}
			used[fmt.Sprint(pod.Spec.NodeName, "/", devices[0])] += milli
		}
		if refused == 0 {
			t.Errorf("nothing was refused of 5×600 and 5×400 milli-GPU on four GPUs: %v", used)
		}
		for device, milli := range used {
			if milli > 1000 {
				t.Errorf("device %s carries %d milli-GPU", device, milli)
			}
		}
	})

	t.Run("an edit of a request frees nothing, over a kill of the scheduler", func(t *testing.T) {
		g.edit(t)
		g.Create(t, gpuPod("before", nil, strs{"alibabacloud.com/gpu-milli": "900"}))
		g.refused(t, "before")
		g.KillScheduler(t)
		g.Create(t, gpuPod("after", nil, strs{"alibabacloud.com/gpu-milli": "901"}))
		g.refused(t, "after")
	})

	t.Run("what cannot be read is said on the object", func(t *testing.T) {
		g.Create(t, gpuPod("malformed", nil, strs{"gpu-fraction": "half"}))
		g.Pending(t, "malformed", `pod annotation gpu-fraction: "half" is not a decimal fraction of a GPU above 0 and up to 1`)
		g.Told(t, "mislabelled-0", `node label nvidia.com/gpu.memory: "lots" is not the memory of one GPU`)
	})

	t.Run("a pod that asks for GPUs is served by claims", func(t *testing.T) {
		const node, driver = "claimed-0", "gpu.nvidia.com"
		g.deviceClass(t, &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: driver},
			Spec: resourcev1.DeviceClassSpec{
				ExtendedResourceName: ptr.To("nvidia.com/gpu"), Selectors: objects.Selectors(`device.driver == "gpu.nvidia.com" && device.attributes["gpu.nvidia.com"].type == "gpu"`)}})
		// Two GPUs, and a slice of one, which the class does not select.
		devices := append(objects.GPUs(2, nil), objects.GPUs(1, strs{"type": "mig"})...)
		devices[2].Name = "mig-0"
		for i := range devices {
			devices[i].Attributes["architecture"] = resourcev1.DeviceAttribute{StringValue: ptr.To("Ampere")}
			devices[i].Attributes["cudaComputeCapability"] = resourcev1.DeviceAttribute{VersionValue: ptr.To("8.0.0")}
		}
		g.slice(t, node+"-gpus", resourcev1.ResourceSliceSpec{Driver: driver, NodeName: ptr.To(node),
			Pool: resourcev1.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: 1}, Devices: devices})
		g.Create(t, gpuPod("by-claim", strs{"nvidia.com/gpu": "2"}, strs{"berth.dev/gpu-memory-min": "40Gi"}))
		g.Create(t, gpuPod("too-many", strs{"nvidia.com/gpu": "3"}, strs{"berth.dev/gpu-memory-min": "40Gi"}))
		g.Bound(t, "by-claim", node)
		g.Pending(t, "too-many", "too few GPUs (need 3, have 2)")
	})
}
