package coscheduling_test

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/lab/simulation"
	"berth.dev/berth/pkg/schedulerconfig"
)

// BenchmarkPlan measures for how long the plan of a gang holds the leader's cycle, on 2,000 nodes with 8 GPUs: members
// of one GPU that are alike, of a whole node, and of one GPU with labels that all differ.
func BenchmarkPlan(b *testing.B) {
	for _, kind := range []struct {
		name     string
		gpus     int
		distinct bool
	}{{"alike", 1, false}, {"whole", 8, false}, {"distinct", 1, true}} {
		for _, members := range []int{64, 512, 1600} {
			b.Run(fmt.Sprintf("%s/members=%d", kind.name, members), func(b *testing.B) {
				var took time.Duration
				for range b.N {
					took += planOnce(b, 2000, members, kind.gpus, kind.distinct)
				}
				b.ReportMetric(float64(took.Milliseconds())/float64(b.N), "ms/plan")
			})
		}
	}
}

func planOnce(b *testing.B, nodes, members, gpus int, distinct bool) time.Duration {
	b.Helper()
	const profile = "gang-scheduler"
	objects := []runtime.Object{read.NewPodGroup("default", "g", members)}
	for i := range nodes {
		objects = append(objects, st.MakeNode().Name(fmt.Sprintf("n%d", i)).Label("nvidia.com/gpu.product", "NVIDIA-A100").
			Label("kubernetes.io/hostname", fmt.Sprintf("n%d", i)).
			Label("topology.kubernetes.io/zone", fmt.Sprintf("z%d", i%4)).
			Capacity(map[v1.ResourceName]string{"cpu": "96", "memory": "1Ti", "pods": "110", "nvidia.com/gpu": "8"}).Obj())
	}
	var pods []*v1.Pod
	for i := range members {
		pod := st.MakePod().Namespace("default").Name(fmt.Sprintf("p%d", i)).UID(fmt.Sprintf("p%d", i)).
			SchedulerName(profile).Req(map[v1.ResourceName]string{"cpu": "4",
			"nvidia.com/gpu": fmt.Sprint(gpus)}).Obj()
		read.Join(pod, "g")
		if distinct {
			pod.Labels["example.com/n"] = fmt.Sprint(i)
		}
		pods, objects = append(pods, pod), append(objects, pod)
	}
	configuration, err := schedulerconfig.Shipped()
	if err != nil {
		b.Fatal(err)
	}
	w := simulation.NewWorld()
	copied := func(obj runtime.Object) runtime.Object { return obj.DeepCopyObject() }
	if err := w.Fill(objects, copied); err != nil {
		b.Fatal(err)
	}
	defer w.Stop()
	if err := w.Start(simulation.Setup{Config: configuration, Parallelism: 2}); err != nil {
		b.Fatal(err)
	}
	ctx, fw := b.Context(), w.AllNodes[profile]
	for range 200 {
		for _, pod := range pods {
			ready := true
			for _, plugin := range fw.PreEnqueuePlugins() {
				ready = ready && plugin.PreEnqueue(ctx, pod).IsSuccess()
			}
			if !ready {
				continue
			}
			if _, err := w.Nodes(); err != nil {
				b.Fatal(err)
			}
			began := time.Now()
			result, status, _ := fw.RunPreFilterPlugins(ctx, framework.NewCycleState(), pod)
			took := time.Since(began)
			if !status.IsSuccess() || result.AllNodes() {
				b.Fatalf("the leader is not planned: %v", status)
			}
			return took
		}
		time.Sleep(100 * time.Millisecond) //nolint:forbidigo // the loop invites the gang in a moment
	}
	b.Fatal("no member leads")
	return 0
}
