package plugins_test

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"berth.dev/berth/test/harness/box"
	"berth.dev/berth/test/harness/objects"
)

// testLargeClaims has a tenant create a gang of members with a claim each, so large that what is reserved for them when
// its plan goes on costs more than a slice of a plan may.
func testLargeClaims(t *testing.T, b *box.Box) {
	const size, devicesPerNode, driver = 600, 100, "devices.example.com"
	api, g := b.Client.ResourceV1(), &gpus{b}
	g.deviceClass(t, &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "many"}, Spec: resourcev1.DeviceClassSpec{
		Selectors: objects.Selectors(fmt.Sprintf("device.driver == %q", driver))}})
	for _, name := range numbered("one-gang", 10) {
		spec := resourcev1.ResourceSliceSpec{Driver: driver, NodeName: ptr.To(name), Pool: resourcev1.ResourcePool{Name: name,
			ResourceSliceCount: 1}}
		for d := range devicesPerNode {
			spec.Devices = append(spec.Devices, resourcev1.Device{Name: fmt.Sprintf("device-%d", d)})
		}
		g.slice(t, name, spec)
	}
	for i := range size {
		name := fmt.Sprintf("claims-%d", i)
		claim := objects.ClaimOf(name, objects.Request("one", "many", 1))
		claim.Namespace = b.Namespace
		if _, err := api.ResourceClaims(b.Namespace).Create(t.Context(), claim, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		member(t, b, name, "claims", size, func(pod *v1.Pod) {
			objects.UseClaim(pod, name)
		})
	}
	b.BoundPods(t, "claims-", size)
	claims, err := api.ResourceClaims(b.Namespace).List(t.Context(), metav1.ListOptions{})
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
