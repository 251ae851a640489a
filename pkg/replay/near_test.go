package replay

import (
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"berth.dev/berth/pkg/replay/replayed"
	"berth.dev/berth/pkg/trace"
)

// TestAGangIsInOneRackWithoutAWordInIt has racks that are in use to different degrees, and a pod whose annotation
// cannot be read.
func TestAGangIsInOneRackWithoutAWordInIt(t *testing.T) {
	t.Parallel()
	var nodes []trace.Node
	var jobs []trace.Job
	racks := map[string]string{}
	for i := range 32 {
		n := trace.Node{Name: fmt.Sprintf("n%02d", i), CPUMilli: 32_000, MemoryMiB: 65_536, GPUs: 8, Model: "Tesla-T4",
			Rack: fmt.Sprint("r", i%4)}
		nodes = append(nodes, n)
		racks[n.Name] = n.Rack
	}
	for i := range 10 {
		jobs = append(jobs, trace.Job{Name: fmt.Sprint("single-", i), Pods: 1, CPUMilli: 8000, MemoryMiB: 1024, GPUs: 8,
			GPUMilli: 1000})
	}
	for i := range 3 {
		jobs = append(jobs, trace.Job{Name: fmt.Sprint("gang-", i), Pods: 4, CPUMilli: 8000, MemoryMiB: 1024, GPUs: 8,
			GPUMilli: 1000, Gang: true,
			Arrival: time.Duration(i+1) * time.Minute})
	}
	in := NewInput("racks", nodes, jobs)
	in.Objects = append(in.Objects, &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "bad", UID: "bad",
			Annotations: map[string]string{"berth.dev/near": "app=cache 5GB"}},
		Spec: v1.PodSpec{SchedulerName: "berth-scheduler", Containers: []v1.Container{{Name: "c", Image: "i"}}},
	})
	r := mustRun(t, shipped, in, Options{Mode: replayed.VirtualTime, Horizon: time.Hour})
	for i := range 3 {
		used := map[string]bool{}
		for member := range 4 {
			used[racks[r.Placements[fmt.Sprintf("replay/gang-%d-%d", i, member)]]] = true
		}
		if len(used) != 1 || used[""] {
			t.Errorf("gang %d is in racks %v, want one", i, used)
		}
	}
	if len(r.PendingByReason) != 1 || !strings.HasPrefix(r.PendingByReason[0].Reason, `pod annotation berth.dev/near: "app=cache 5GB" is not a list`) {
		t.Errorf("pods are pending because of %v, want the annotation", r.PendingByReason)
	}
}

// TestAGangGoesWhereItsPeersAre has racks that are alike but for a cache in one of them.
func TestAGangGoesWhereItsPeersAre(t *testing.T) {
	t.Parallel()
	var nodes []trace.Node
	racks := map[string]string{}
	for i := range 32 {
		n := trace.Node{Name: fmt.Sprintf("n%02d", i), CPUMilli: 32_000, MemoryMiB: 65_536, GPUs: 8, Model: "Tesla-T4",
			Rack: fmt.Sprint("r", i%4)}
		nodes = append(nodes, n)
		racks[n.Name] = n.Rack
	}
	for _, tc := range []struct {
		name, near, want string
		// gpus are those that run in the rack of the cache: fit counts more than nearness.
		gpus int64
	}{
		{"a gang that names nobody", "", "r0", 0},
		{"a gang that names the cache", "app=cache", "r2", 0},
		{"a gang that names what does not run", "app=queue", "r0", 0},
		{"a gang that does not fit where the cache is", "app=cache", "r0", 8},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			in := NewInput("racks", nodes, nil)
			in.Objects = append(in.Objects, &v1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "cache", UID: "cache",
					Labels: map[string]string{"app": "cache"}},
				Spec: v1.PodSpec{NodeName: "n02", SchedulerName: "berth-scheduler",
					Containers: []v1.Container{{Name: "c", Image: "i"}}},
				Status: v1.PodStatus{Phase: v1.PodRunning},
			})
			ask := func(n int64) v1.ResourceRequirements {
				return v1.ResourceRequirements{Requests: v1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(n,
					resource.DecimalSI)}}
			}
			for i := range 8 {
				if tc.gpus == 0 {
					break
				}
				name := fmt.Sprint("used-", i)
				in.Objects = append(in.Objects, &v1.Pod{
					ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)},
					Spec: v1.PodSpec{NodeName: fmt.Sprintf("n%02d", 4*i+2), SchedulerName: "berth-scheduler",
						Containers: []v1.Container{{Name: "c", Image: "i", Resources: ask(tc.gpus)}}},
					Status: v1.PodStatus{Phase: v1.PodRunning},
				})
			}
			for i := range 4 {
				name := fmt.Sprint("member-", i)
				member := &v1.Pod{
					ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name), Labels: map[string]string{
						"pod-group.scheduling.sigs.k8s.io/name": "g", "pod-group.scheduling.sigs.k8s.io/min-available": "4"}},
					Spec: v1.PodSpec{SchedulerName: "berth-scheduler",
						Containers: []v1.Container{{Name: "c", Image: "i", Resources: ask(8)}}},
				}
				if tc.near != "" {
					member.Annotations = map[string]string{"berth.dev/near": tc.near}
				}
				in.Objects = append(in.Objects, member)
			}
			r := mustRun(t, shipped, in, Options{Mode: replayed.VirtualTime, Horizon: time.Hour})
			for i := range 4 {
				if got := racks[r.Placements[fmt.Sprint("default/member-", i)]]; got != tc.want {
					t.Errorf("member %d is in rack %q, want %s", i, got, tc.want)
				}
			}
		})
	}
}
