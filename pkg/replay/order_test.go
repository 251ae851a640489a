package replay

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/trace"
)

func TestSaturateMeetsTheTarget(t *testing.T) {
	t.Parallel()
	jobs := []trace.Job{
		{Name: "b", Pods: 1, GPUs: 1, GPUMilli: 500},
		{Name: "a", Pods: 2, GPUs: 2, GPUMilli: 1000},
		{Name: "c", Pods: 1},
	}
	for _, target := range []int64{1000, 4500, 50_000} {
		list := saturate(jobs, target, 7)
		sum, names := int64(0), map[string]bool{}
		for _, j := range list {
			sum += j.MilliGPU() * int64(j.Pods)
			if names[j.Name] {
				t.Errorf("target %d: %s is there twice", target, j.Name)
			}
			names[j.Name] = true
		}
		if sum > target || sum < target-4000 {
			t.Errorf("target %d: the jobs ask for %d", target, sum)
		}
	}
}

func TestMainReason(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ message, heldBack, want string }{
		"the reason of the most nodes": {
			"0/40 nodes are available: 10 node(s) had untolerated taint(s), 30 Insufficient cpu. preemption: 0/40 nodes are available: 40 No preemption victims found for incoming pod.",
			"",
			"Insufficient cpu",
		},
		"a comma within a reason": {
			"0/40 nodes are available: 30 node(s) with too few free GPUs (need 8, have 4), 10 Insufficient cpu.", "", "node(s) with too few free GPUs",
		},
		"a gang that does not fit": {
			"0/9 nodes are available: gang ns/g needs 8 × 4 nvidia.com/gpu, fits 6: 3 nodes with too few GPUs (need 4, have 0), 1 tainted node.", "",
			"gang does not fit: nodes with too few GPUs",
		},
		"a gang of which part fits everywhere":      {"gang ns/g needs 9 × 1 nvidia.com/gpu, fits 8", "", "gang does not fit"},
		"what holds it back now precedes old words": {"0/40 nodes are available: 40 Insufficient cpu.", "gang ns/g has 2 of 3", "gang has 2 of 3"},
		"no word at all": {"", "", notDecided},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := &v1.Pod{Status: v1.PodStatus{Conditions: []v1.PodCondition{{Type: v1.PodScheduled, Status: v1.ConditionFalse, Message: tt.message}}}}
			if got := mainReason(pod, tt.heldBack); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
