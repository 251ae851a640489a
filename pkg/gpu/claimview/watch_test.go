package claimview

import (
	"testing"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/test/harness/await"
)

func TestADeviceTaintRuleIsSeen(t *testing.T) {
	t.Parallel()
	node := nodeNamed("n")
	w := newWorld(t, node, sliceOf(gpuDriver, "n", 2, "16Gi"))
	seen, _ := (&gpuview.Keys{}).ReadGPUNode(node)
	healthy := func() int {
		inventory := w.claims.Recent().Inventory(seen, infoOf(node))
		if inventory == nil {
			return -1
		}
		return inventory.Healthy()
	}
	await.Until(t, "all is read that was there at the start", func() bool {
		return healthy() == 2 && time.Since(time.Unix(0, w.claims.event.Load())) > 2*settleFor
	})
	rule := &resourcev1.DeviceTaintRule{ObjectMeta: metav1.ObjectMeta{Name: "broken"},
		Spec: resourcev1.DeviceTaintRuleSpec{
			DeviceSelector: &resourcev1.DeviceTaintSelector{Driver: ptr.To(gpuDriver), Pool: ptr.To("n"),
				Device: ptr.To("gpu-1")},
			Taint: resourcev1.DeviceTaint{Key: "broken", Effect: resourcev1.DeviceTaintEffectNoSchedule},
		}}
	if _, err := w.client.ResourceV1().DeviceTaintRules().Create(t.Context(), rule, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	await.Until(t, "the device is tainted", func() bool { return healthy() == 1 })
}
