package gpuaware

import (
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/test/harness/require"
)

// squatter is a pod that a tenant puts on a node without a scheduler.
func squatter(name, node string, annotations strs) *v1.Pod {
	pod := podObject(name, nil, annotations)
	pod.Spec.NodeName = node
	return pod
}

// TestAnnotationsAloneTakeNothingFromOthers puts pods on a shared node by spec.nodeName and has others schedule all
// that it has beside them. What such a pod holds by what it says is in pkg/gpu/gpuview.
func TestAnnotationsAloneTakeNothingFromOthers(t *testing.T) {
	t.Parallel()
	forged := `{"pod":"squatter","node":"n","devices":[0,1],"milli":1000,"memMiB":16384}`
	trusting := defaultArgs(func(a *config.GPUAwareArgs) {
		trust := config.UnassignedSharesAnnotated
		a.UnassignedShares = &trust
	})
	for _, tc := range []struct {
		name        string
		args        *config.GPUAwareArgs
		annotations strs
		// fit is how many shares of 1000 fit beside it.
		fit int
	}{
		{"a forged grant", nil, strs{"berth.dev/gpu-assigned": forged}, 2},
		{"where annotations are trusted, a share", trusting, strs{"alibabacloud.com/gpu-milli": "1000",
			"alibabacloud.com/gpu-index": "1"}, 1},
		{"where annotations are trusted, a grant", trusting, strs{"berth.dev/gpu-assigned": forged}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			args := tc.args
			if args == nil {
				args = defaultArgs()
			}
			h := newHarness(t, alone(args), sharedNode("n", 2), squatter("squatter", "n", tc.annotations))
			fit := 0
			for i := range 3 {
				if _, err := h.place(t, h.add(t,
					podObject(fmt.Sprint("p", i), nil, strs{"alibabacloud.com/gpu-milli": "1000"}))); err == nil {
					fit++
				}
			}
			if fit != tc.fit {
				t.Errorf("%d GPUs were given to others, want %d", fit, tc.fit)
			}
		})
	}
}

// TestADeviceThatIsClaimedIsTakenLast has a share go where no pod claims anything, as long as there is such a device.
func TestADeviceThatIsClaimedIsTakenLast(t *testing.T) {
	t.Parallel()
	h := newHarness(t, alone(defaultArgs()), sharedNode("n", 2),
		squatter("squatter", "n", strs{"alibabacloud.com/gpu-milli": "600", "alibabacloud.com/gpu-index": "0"}))
	for i, want := range []string{"1", "0"} {
		bound, err := h.place(t, h.add(t, podObject(fmt.Sprint("p", i), nil, strs{"alibabacloud.com/gpu-milli": "700"})))
		require.NoError(t, err)
		if got := bound.Annotations["alibabacloud.com/gpu-index"]; got != want {
			t.Errorf("share %d is on GPU %s, want %s", i, got, want)
		}
	}
}

func TestAPodThatClaimsGPUsIsToldThatItHasNone(t *testing.T) {
	t.Parallel()
	h := newHarness(t, alone(defaultArgs()), sharedNode("n", 2),
		squatter("squatter", "n", strs{"gpu-fraction": "0.5"}))
	if said := <-h.Recorder.Events; !strings.Contains(said, "DevicesNotAssigned") ||
		!strings.Contains(said, "gpu-fraction") {
		t.Errorf("event %q, want one that names the annotation", said)
	}
}

// TestWhatWasEditedWhileNobodyLookedIsSaid starts on a pod whose index is another than its status says.
func TestWhatWasEditedWhileNobodyLookedIsSaid(t *testing.T) {
	t.Parallel()
	pod := assignedTo(podObject("p", nil, strs{"gpu-fraction": "0.7", "runai-gpu": "1"}), "n", 0, 700, 11468)
	h := newHarness(t, alone(defaultArgs()), sharedNode("n", 2), pod)
	if said := <-h.Recorder.Events; !strings.Contains(said, "GrantEdited") {
		t.Errorf("event %q, want GrantEdited", said)
	}
}
