package gpuaware

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/test/harness/require"
)

func toldPod(annotations map[string]string, conditions ...v1.PodCondition) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "p", ResourceVersion: "5", Annotations: annotations},
		Status:     v1.PodStatus{Conditions: conditions},
	}
}

func TestTheAssignmentIsWrittenWithTheStatus(t *testing.T) {
	t.Parallel()
	got, err := assignmentPatch(toldPod(nil), &gpuview.Request{}, gpuview.Assignment{
		Node: "n", Devices: []int{1}, Share: gpu.Share{Milli: 300, MemMiB: 4915},
	}, time.Unix(1_700_000_000, 5))
	require.NoError(t, err)
	var patched v1.Pod
	require.NoError(t, json.Unmarshal(got, &patched))
	const record = `{"pod":"p","node":"n","devices":[1],"milli":300,"memMiB":4915}`
	want := v1.PodCondition{
		Type: "berth.dev/GPUsAssigned", Status: v1.ConditionTrue, Reason: "DevicesAssigned", Message: record,
		LastTransitionTime: metav1.Unix(1_700_000_000, 0),
	}
	if diff := cmp.Diff([]v1.PodCondition{want}, patched.Status.Conditions); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
	if patched.UID != "p" || patched.ResourceVersion != "5" || patched.Annotations["berth.dev/gpu-assigned"] != record {
		t.Errorf("the patch is %s", got)
	}
}

func TestThePatchRemovesStaleAnswers(t *testing.T) {
	t.Parallel()
	told := map[string]string{"runai-gpu": "0", "gpu-fraction": "0.5"}
	const annotations = `{"metadata":{"annotations":{"runai-gpu":null},"resourceVersion":"5","uid":"p"}`
	for _, tc := range []struct {
		name string
		pod  *v1.Pod
		want string
	}{
		{"a pod that was told nothing", toldPod(map[string]string{"gpu-fraction": "0.5"}), ""},
		{"answers", toldPod(told), annotations + `}`},
		{"answers and a grant from a binding that failed",
			toldPod(told, v1.PodCondition{Type: gpuview.GPUsAssigned, Status: v1.ConditionTrue}),
			annotations + `,"status":{"conditions":[{"$patch":"delete","type":"berth.dev/GPUsAssigned"}]}}`},
	} {
		got, err := staleAnswersPatch(tc.pod)
		if string(got) != tc.want || err != nil {
			t.Errorf("%s: got %s (%v), want %s", tc.name, got, err, tc.want)
		}
	}
}
