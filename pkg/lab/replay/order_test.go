package replay

import (
	"testing"

	"berth.dev/berth/pkg/lab/trace"
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
