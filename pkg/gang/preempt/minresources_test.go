package preempt

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gang"
)

func TestMinResources(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		list v1.ResourceList
		want map[v1.ResourceName]int64
	}{
		{"nothing", nil, map[v1.ResourceName]int64{}},
		{"CPU in thousandths, the rest in units", v1.ResourceList{"cpu": resource.MustParse("1500m"),
			"memory": resource.MustParse("2Gi"), "nvidia.com/gpu": resource.MustParse("8")},
			map[v1.ResourceName]int64{"cpu": 1500, "memory": 2 << 30, "nvidia.com/gpu": 8}},
		{"what is zero or negative asks for nothing", v1.ResourceList{"cpu": resource.MustParse("0"),
			"memory": resource.MustParse("-1Gi")}, map[v1.ResourceName]int64{}},
		{"a fraction of a GPU is a whole one", v1.ResourceList{"nvidia.com/gpu": resource.MustParse("100m")},
			map[v1.ResourceName]int64{"nvidia.com/gpu": 1}},
		{"more CPU than can be counted is the most that can be", v1.ResourceList{"cpu": resource.MustParse("9E")},
			map[v1.ResourceName]int64{"cpu": math.MaxInt64}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got := minResources(&schedulingv1alpha1.PodGroup{Spec: schedulingv1alpha1.PodGroupSpec{MinResources: tc.list}})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if got := minResources(nil); got != nil {
		t.Errorf("no PodGroup asks for %v", got)
	}
}

func TestMissingResourcesAreNamedWithTheirAmounts(t *testing.T) {
	t.Parallel()
	id := gang.ID{Namespace: "ns", Name: "one"}
	for _, tc := range []struct {
		name  string
		short []Shortage
		want  string
		kind  string
	}{
		{"one resource is short", []Shortage{{Resource: "cpu", Wanted: 40_500, Free: 32_000}},
			"gang ns/one needs minResources cpu 40500m, the cluster has 32 free", "gang needs minResources cpu"},
		{"each that is short is named", []Shortage{{Resource: "cpu", Wanted: 40_000, Free: 32_000},
			{Resource: "memory", Wanted: 1 << 30}},
			"gang ns/one needs minResources cpu 40, the cluster has 32 free; memory 1Gi, the cluster has 0 free",
			"gang needs minResources cpu, memory"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			m := Missing{Of: id, Short: tc.short}
			if m.String() != tc.want {
				t.Errorf("got %q, want %q", m, tc.want)
			}
			if m.Kind() != tc.kind {
				t.Errorf("kind %q, want %q", m.Kind(), tc.kind)
			}
		})
	}
}
