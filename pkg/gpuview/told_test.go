package gpuview

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/wellknown"
)

func TestTheGrantIsWrittenInEveryDialectAndOthersAreRemoved(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 5)
	a := Assignment{Node: "n", Devices: []int{1}, Share: gpu.Share{Milli: 300, MemMiB: 4915}}
	for name, tc := range map[string]struct {
		annotations strs
		want        map[string]any
	}{
		"openb": {strs{openbMilliKey: "300"}, map[string]any{openbIndexKey: "1", openbTimeKey: "1700000000000000005"}},
		"KAI":   {strs{kaiFractionKey: "0.3"}, map[string]any{kaiIndexKey: "1"}},
	} {
		pod, keys := gpuPod(nil, tc.annotations), DefaultKeys()
		pod.ResourceVersion = "5"
		request, err := keys.PodGPURequest(pod)
		if err != nil {
			t.Fatal(err)
		}
		got, err := AssignmentPatch(pod, &request, a, now)
		if err != nil {
			t.Fatal(err)
		}
		tc.want[wellknown.GPUAssignedKey] = grantOf1
		for _, key := range answerKeys {
			if _, ok := tc.want[key]; !ok {
				tc.want[key] = nil
			}
		}
		want := map[string]any{
			"metadata": map[string]any{"uid": "p", "resourceVersion": "5", "annotations": tc.want},
			"status": map[string]any{"conditions": []any{map[string]any{
				"type": "berth.dev/GPUsAssigned", "status": "True", "reason": "DevicesAssigned", "message": grantOf1,
				"lastTransitionTime": "2023-11-14T22:13:20Z",
			}}},
		}
		if diff := cmp.Diff(want, decoded(t, got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func decoded(t *testing.T, patch []byte) map[string]any {
	t.Helper()
	var fields map[string]any
	if err := json.Unmarshal(patch, &fields); err != nil {
		t.Fatal(err)
	}
	return fields
}

// annotationsOf are those that a patch sets, and nil for those that it removes.
func annotationsOf(t *testing.T, patch []byte) map[string]any {
	t.Helper()
	metadata, _ := decoded(t, patch)["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	return annotations
}

func TestStaleAnswersAreRemoved(t *testing.T) {
	t.Parallel()
	told := strs{kaiIndexKey: "0", hamiPhaseKey: "success", kaiFractionKey: "0.5"}
	removed := map[string]any{"uid": "p", "resourceVersion": "5", "annotations": map[string]any{kaiIndexKey: nil, hamiPhaseKey: nil}}
	for _, tc := range []struct {
		name string
		pod  *v1.Pod
		want map[string]any
	}{
		{"answers", gpuPod(nil, told), map[string]any{"metadata": removed}},
		{"answers and a grant from a binding that failed", granted(gpuPod(nil, told), grantOf1), map[string]any{"metadata": removed,
			"status": map[string]any{"conditions": []any{map[string]any{"$patch": "delete", "type": "berth.dev/GPUsAssigned"}}}}},
	} {
		tc.pod.ResourceVersion = "5"
		got, err := StaleAnswersPatch(tc.pod)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, decoded(t, got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
	if got, err := StaleAnswersPatch(gpuPod(nil, strs{kaiFractionKey: "0.5"})); got != nil || err != nil {
		t.Errorf("a pod that was told nothing: patch %s, %v", got, err)
	}
}

func TestAGrantIsDisputedByWhatTellsOtherDevices(t *testing.T) {
	t.Parallel()
	const grantOfB = `{"pod":"p","node":"n","devices":[1],"uuids":["GPU-b"],"milli":300,"memMiB":4915}`
	for name, tc := range map[string]struct {
		grant       string
		annotations strs
		want        bool
	}{
		"all agree":                        {grantOf1, strs{wellknown.GPUAssignedKey: grantOf1, openbIndexKey: "1"}, false},
		"the annotation is gone":           {grantOf1, strs{openbIndexKey: "1"}, true},
		"the annotation was changed":       {grantOf1, strs{wellknown.GPUAssignedKey: grantOfB}, true},
		"the index was changed":            {grantOf1, strs{wellknown.GPUAssignedKey: grantOf1, openbIndexKey: "0"}, true},
		"the index cannot be read":         {grantOf1, strs{wellknown.GPUAssignedKey: grantOf1, kaiIndexKey: "x"}, true},
		"HAMi's list agrees":               {grantOfB, strs{wellknown.GPUAssignedKey: grantOfB, hamiAllocatedKey: "GPU-b,NVIDIA,4915,0:;"}, false},
		"HAMi's list names another device": {grantOfB, strs{wellknown.GPUAssignedKey: grantOfB, hamiAllocatedKey: "GPU-a,NVIDIA,4915,0:;"}, true},
	} {
		pod := granted(gpuPod(nil, tc.annotations), tc.grant)
		pod.Spec.NodeName = "n"
		a, ok := Granted(pod)
		if got := GrantDisputed(pod, a); !ok || got != tc.want {
			t.Errorf("%s: GrantDisputed = %v, want %v (granted %v)", name, got, tc.want, ok)
		}
	}
}
