package waitlist

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gangplan"
	"berth.dev/berth/pkg/podview"
)

// MinResources returns what has to be free before the gang of the PodGroup, which may be nil, is tried, in thousandths
// of a CPU and in units of everything else.
func MinResources(pg *schedulingv1alpha1.PodGroup) map[v1.ResourceName]int64 {
	if pg == nil {
		return nil
	}
	return podview.Amounts(pg.Spec.MinResources)
}

// DescribeAmount writes an amount of a resource as users do.
func DescribeAmount(name string, n int64) string {
	switch v1.ResourceName(name) {
	case v1.ResourceCPU:
		return resource.NewMilliQuantity(n, resource.DecimalSI).String()
	case v1.ResourceMemory, v1.ResourceEphemeralStorage:
		return resource.NewQuantity(n, resource.BinarySI).String()
	default:
		return resource.NewQuantity(n, resource.DecimalSI).String()
	}
}

// Missing is the resources that a gang wants to be free and that are not.
type Missing struct {
	Of    gang.ID
	Short []gangplan.Amount
}

// String says how much of each is wanted, and how much is free.
func (m Missing) String() string {
	parts := make([]string, len(m.Short))
	for i, a := range m.Short {
		parts[i] = fmt.Sprintf("%s %s, the cluster has %s free",
			a.Resource, DescribeAmount(a.Resource, a.Wanted), DescribeAmount(a.Resource, a.Free))
	}
	return fmt.Sprintf("gang %s needs minResources %s", m.Of, strings.Join(parts, "; "))
}

// Kind names the resources.
func (m Missing) Kind() string {
	names := make([]string, len(m.Short))
	for i, a := range m.Short {
		names[i] = a.Resource
	}
	return "gang needs minResources " + strings.Join(names, ", ")
}
