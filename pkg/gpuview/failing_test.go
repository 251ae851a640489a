package gpuview

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/pkg/wellknown"
)

func TestWhoHoldsAGPUThatDoesNotWork(t *testing.T) {
	t.Parallel()
	// Of four GPUs the third does not work.
	const listed = `[{"index":0,"uuid":"a","healthy":true},{"index":1,"uuid":"b","healthy":true},` +
		`{"index":2,"uuid":"c","healthy":false},{"index":3,"uuid":"d","healthy":true}]`
	for name, test := range map[string]struct {
		annotations map[string]string
		want        Failing
		// held are the numbers of GPUs with which a pod is sure to hold it.
		held []int
	}{
		"no agent":                   {},
		"a list that cannot be read": {annotations: map[string]string{wellknown.GPUDevicesKey: "?"}},
		"all may be in use": {annotations: map[string]string{wellknown.GPUDevicesKey: listed},
			want: Failing{UUIDs: []string{"c"}, Healthy: 3}, held: []int{4}},
		"it is one of two in use": {annotations: map[string]string{wellknown.GPUDevicesKey: listed,
			wellknown.GPUsInUseKey: "1,2"}, want: Failing{UUIDs: []string{"c"}, Healthy: 1}, held: []int{2, 3, 4}},
		"it is not in use": {annotations: map[string]string{wellknown.GPUDevicesKey: listed,
			wellknown.GPUsInUseKey: "0,1"}, want: Failing{Healthy: 2}},
		"GPUs that are cut into slices": {annotations: map[string]string{wellknown.GPUDevicesKey: `[{"index":0,"uuid":"a","healthy":false,"mig":true}]`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := FailingGPUs(&v1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: test.annotations}})
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("failing (-want +got):\n%s", diff)
			}
			var held []int
			for gpus := range 5 {
				if got.HeldBy(gpus) {
					held = append(held, gpus)
				}
			}
			if diff := cmp.Diff(test.held, held); diff != "" {
				t.Errorf("held by pods with this number (-want +got):\n%s", diff)
			}
		})
	}
}
