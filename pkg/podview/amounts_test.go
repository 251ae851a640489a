package podview

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestAllocatableOf(t *testing.T) {
	t.Parallel()
	node := &v1.Node{}
	node.Status.Capacity = v1.ResourceList{"example.com/reserved": resource.MustParse("1")}
	node.Status.Allocatable = v1.ResourceList{
		v1.ResourceCPU:         resource.MustParse("1500m"),
		v1.ResourceMemory:      resource.MustParse("2Gi"),
		"nvidia.com/gpu":       resource.MustParse("8"),
		"example.com/part":     resource.MustParse("100m"),
		"example.com/none":     resource.MustParse("0"),
		"example.com/negative": resource.MustParse("-1"),
	}
	want := map[v1.ResourceName]int64{v1.ResourceCPU: 1500, v1.ResourceMemory: 2 << 30, "nvidia.com/gpu": 8,
		"example.com/part": 1}
	if diff := cmp.Diff(want, AllocatableOf(node)); diff != "" {
		t.Errorf("allocatable (-want +got):\n%s", diff)
	}
	large := Amounts(v1.ResourceList{v1.ResourceCPU: *resource.NewQuantity(math.MaxInt64, resource.DecimalSI)})
	if got := large[v1.ResourceCPU]; got != math.MaxInt64 {
		t.Errorf("more CPUs than can be counted in thousandths are %d, want the largest number", got)
	}
}

func TestAmountsAreWrittenAsUsersDo(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		resource v1.ResourceName
		amount   int64
		want     string
	}{
		{"cpu", 40000, "40"},
		{"cpu", 1500, "1500m"},
		{"memory", 3 << 30, "3Gi"},
		{"nvidia.com/gpu", 12, "12"},
	} {
		if got := Quantity(tc.resource, tc.amount).String(); got != tc.want {
			t.Errorf("%d of %s is written %q, want %q", tc.amount, tc.resource, got, tc.want)
		}
	}
}
