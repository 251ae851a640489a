package coscheduling_test

import (
	"context"
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// testClaims has a tenant create a gang of members with a claim each, so large that what is reserved for them when its plan goes
// on costs more than a slice of a plan may.
func (a *attack) testClaims(t *testing.T) {
	const size, devicesPerNode, driver = 600, 100, "devices.example.com"
	api := a.Client.ResourceV1()
	class := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "many"}, Spec: resourcev1.DeviceClassSpec{
		Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: fmt.Sprintf("device.driver == %q", driver)}}}}}
	if _, err := api.DeviceClasses().Create(t.Context(), class, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	nodes, err := a.Client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range nodes.Items {
		name := nodes.Items[i].Name
		slice := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourcev1.ResourceSliceSpec{
			Driver: driver, NodeName: ptr.To(name), Pool: resourcev1.ResourcePool{Name: name, ResourceSliceCount: 1}}}
		for d := range devicesPerNode {
			slice.Spec.Devices = append(slice.Spec.Devices, resourcev1.Device{Name: fmt.Sprintf("device-%d", d)})
		}
		if _, err := api.ResourceSlices().Create(t.Context(), slice, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range size {
		name := fmt.Sprintf("claims-%d", i)
		claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{
			Requests: []resourcev1.DeviceRequest{{Name: "one", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: class.Name}}}}}}
		if _, err := api.ResourceClaims("mallory").Create(t.Context(), claim, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		a.member("mallory", name, "claims", size, func(pod *v1.Pod) {
			pod.Spec.ResourceClaims = []v1.PodResourceClaim{{Name: "device", ResourceClaimName: ptr.To(name)}}
			pod.Spec.Containers[0].Resources.Claims = []v1.ResourceClaim{{Name: "device"}}
		})
	}
	a.Await(t, "the gang with claims to start", func(ctx context.Context) (bool, error) {
		pods, err := a.Client.CoreV1().Pods("mallory").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName!=",
			LabelSelector: "pod-group.scheduling.sigs.k8s.io/name=claims"})
		return err == nil && len(pods.Items) == size, err
	})
	claims, err := api.ResourceClaims("mallory").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	held := map[string]string{}
	for i := range claims.Items {
		for _, r := range claims.Items[i].Status.Allocation.Devices.Results {
			device := r.Pool + "/" + r.Device
			if other := held[device]; other != "" {
				t.Errorf("device %s is held by %s and %s", device, other, claims.Items[i].Name)
			}
			held[device] = claims.Items[i].Name
		}
	}
	if len(held) != size {
		t.Errorf("%d devices are held, want %d", len(held), size)
	}
}
