package gpuview

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/wellknown"
	"berth.dev/berth/test/harness/require"
)

func TestTheGrantIsWrittenInEveryDialectAndOthersAreRemoved(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 5)
	a := Assignment{Node: "n", Devices: []int{1}, Share: gpu.Share{Milli: 300, MemMiB: 4915}}
	for name, tc := range map[string]struct {
		annotations strs
		want        map[string]any
	}{
		"openb": {strs{OpenbMilliKey: "300"}, map[string]any{openbIndexKey: "1", openbTimeKey: "1700000000000000005"}},
		"KAI":   {strs{kaiFractionKey: "0.3"}, map[string]any{kaiIndexKey: "1"}},
	} {
		pod, keys := gpuPod(nil, tc.annotations), DefaultKeys()
		request, err := keys.PodGPURequest(pod)
		require.NoError(t, err)
		got, record, err := Answers(pod, &request, a, now)
		require.NoError(t, err)
		if record != grantOf1 {
			t.Errorf("%s: the record is %s", name, record)
		}
		tc.want[wellknown.GPUAssignedKey] = grantOf1
		for _, key := range answerKeys {
			if _, ok := tc.want[key]; !ok {
				tc.want[key] = nil
			}
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
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
		"all agree":                  {grantOf1, strs{wellknown.GPUAssignedKey: grantOf1, openbIndexKey: "1"}, false},
		"the annotation is gone":     {grantOf1, strs{openbIndexKey: "1"}, true},
		"the annotation was changed": {grantOf1, strs{wellknown.GPUAssignedKey: grantOfB}, true},
		"the index was changed":      {grantOf1, strs{wellknown.GPUAssignedKey: grantOf1, openbIndexKey: "0"}, true},
		"the index cannot be read":   {grantOf1, strs{wellknown.GPUAssignedKey: grantOf1, kaiIndexKey: "x"}, true},
		"HAMi's list agrees": {grantOfB, strs{wellknown.GPUAssignedKey: grantOfB,
			hamiAllocatedKey: "GPU-b,NVIDIA,4915,0:;"}, false},
		"HAMi's list names another device": {grantOfB, strs{wellknown.GPUAssignedKey: grantOfB,
			hamiAllocatedKey: "GPU-a,NVIDIA,4915,0:;"}, true},
	} {
		pod := granted(gpuPod(nil, tc.annotations), tc.grant)
		pod.Spec.NodeName = "n"
		a, ok := Granted(pod)
		if got := GrantDisputed(pod, a); !ok || got != tc.want {
			t.Errorf("%s: GrantDisputed = %v, want %v (granted %v)", name, got, tc.want, ok)
		}
	}
}
