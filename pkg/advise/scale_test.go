package advise

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"berth.dev/berth/pkg/process/schedulerconfig"
)

// fleetOf are nodes of 8 GPUs that are nearly full of pods of 1, 2 and 4 GPUs, and pods of 4 GPUs that wait.
func fleetOf(nodes, waiting int) []runtime.Object {
	var objects []runtime.Object
	for i := range nodes {
		name := fmt.Sprintf("n%d", i)
		objects = append(objects, node(name, "8", "10"), pod(name+"-a", name, "4"), pod(name+"-b", name, "1"))
		if i%10 != 0 {
			objects = append(objects, pod(name+"-c", name, "2", bare))
		} else {
			objects = append(objects, pod(name+"-c", name, "1"))
		}
	}
	for i := range waiting {
		objects = append(objects, pod(fmt.Sprintf("p%d", i), "", "4"))
	}
	return objects
}

func BenchmarkAdvice(b *testing.B) {
	c, err := schedulerconfig.Shipped()
	if err != nil {
		b.Fatal(err)
	}
	for _, nodes := range []int{500, 5000} {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			objects := fleetOf(nodes, 10)
			for b.Loop() {
				a, err := Cluster(Question{Configuration: c, Objects: objects, Now: now, Most: 5})
				if err != nil {
					b.Fatal(err)
				}
				plans := 0
				for _, p := range a.Pending {
					if p.Plan != nil {
						plans++
					}
				}
				b.ReportMetric(float64(plans), "plans")
				b.ReportMetric(float64(len(a.GiveBack)), "given-back")
				b.ReportMetric(float64(len(a.Limits)), "limits")
			}
		})
	}
}
