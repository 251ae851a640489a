package work

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/pkg/wellknown"
)

// BenchmarkVictimsOfLargeGangs orders the eight pods of each of 100 nodes by what their evictions lose, as a cycle of
// the scheduler's own preemption does. All are members of one gang of 1,000, and each tells of its checkpoints.
func BenchmarkVictimsOfLargeGangs(b *testing.B) {
	const members, nodes, perNode = 1000, 100, 8
	now := t0.Add(time.Hour)
	pods := make([]*v1.Pod, members)
	for i := range pods {
		meta := says(wellknown.LastCheckpointKey, t0.Add(time.Duration(i)*time.Second).Format(time.RFC3339))
		meta.Name = fmt.Sprintf("member-%d", i)
		pods[i] = runs(meta)
		pods[i].Spec.Containers = []v1.Container{{Resources: v1.ResourceRequirements{
			Requests: v1.ResourceList{"cpu": resource.MustParse("8"), "memory": resource.MustParse("64Gi")}}}}
	}
	l := &Loss{Limits: Limits{Unsaved: 24 * time.Hour}, GPUs: &gpuview.ProfileKeys{},
		Gangs: &one{gang.ID{Name: "g"}, nil, pods}}
	for b.Loop() {
		m := l.At(now)
		for n := range nodes {
			on := slices.Clone(pods[n*perNode : (n+1)*perNode])
			slices.SortFunc(on, func(x, y *v1.Pod) int { return cmp.Compare(m.Lost(y), m.Lost(x)) })
		}
	}
}
