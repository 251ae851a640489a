package dashboard

import (
	"bytes"
	"fmt"
	"net/url"
	"testing"

	"berth.dev/berth/pkg/cluster/overview"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/wellknown"
)

// fleet is a cluster of 5,000 nodes of eight GPUs in racks of 20, with 300 workloads that wait. Every run of it has
// other allocations in 16 of the racks, and all ages are two seconds higher.
func fleet(run int) *overview.Cluster {
	c := &overview.Cluster{Totals: overview.Totals{Nodes: 5000, NodesWithGPUs: 5000, GPUs: 40000}}
	for i := range 5000 {
		rack := i / 20
		used := (i * 7) % 9
		if rack%16 == 0 && i%20 == 0 {
			used = (used + run) % 9
		}
		n := overview.Node{Name: fmt.Sprintf("node-%04d", i), Model: "NVIDIA-H100-80GB-HBM3",
			Domain: podview.Domain{Level: wellknown.RackLabel, Value: fmt.Sprintf("rack-%03d", rack)}, State: overview.Ready,
			AllocatedMilliGPU: int64(used) * 1000,
			Use:               []overview.Use{{Workload: fmt.Sprint("team/job-", i%40), MilliGPU: int64(used) * 1000}}}
		for g := range 8 {
			gpu := overview.GPU{State: overview.Free}
			if g < used {
				gpu = overview.GPU{State: overview.Allocated, UsedMilliGPU: 1000}
			}
			n.GPUs = append(n.GPUs, gpu)
		}
		c.Nodes = append(c.Nodes, n)
	}
	const reason = "gang team/job-7 needs 24 × 8 nvidia.com/gpu, fits 22; 2 more are needed (18 nodes with too little " +
		"free nvidia.com/gpu)"
	for i := range 300 {
		name := fmt.Sprint("job-", i)
		c.Jobs = append(c.Jobs, overview.Job{Namespace: "team", Kind: "Job", Name: name, State: overview.JobPending, Pods: 8,
			MilliGPU: 64_000, AgeSeconds: float64(2 * run), Reason: reason})
		c.Queue = append(c.Queue, overview.Waiting{Position: i + 1, Namespace: "team", Name: name, Pods: 8, Pod: name,
			MilliGPU: 64_000, WaitSeconds: float64(2 * run), Reason: reason})
		c.Gangs = append(c.Gangs, overview.Gang{Namespace: "team", Name: name, MinMember: 8, Members: 8, MilliGPU: 64_000,
			WaitSeconds: float64(2 * run), Reason: reason})
		c.Warnings = append(c.Warnings, overview.Warning{Namespace: "team", Object: "Pod/" + name, Reason: "FailedScheduling",
			Message: reason, Count: int32(run)})
	}
	return c
}

// What the server does and sends for a page of 5,000 nodes that is opened, and for one that follows:
//
//	go test ./pkg/screen/dashboard -run xxx -bench Fleet
func BenchmarkFleetIsOpened(b *testing.B) {
	s := New(overview.Source{Cluster: func() *overview.Cluster { return fleet(0) }})
	var out bytes.Buffer
	for b.Loop() {
		out.Reset()
		if err := templates.ExecuteTemplate(&out, "page", s.view(url.Values{})); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(out.Len()), "bytes/page")
}

func BenchmarkFleetIsFollowed(b *testing.B) {
	views := make([]*view, 2)
	for i := range views {
		s := New(overview.Source{Cluster: func() *overview.Cluster { return fleet(i) }})
		views[i] = s.view(url.Values{})
	}
	shown, sent, runs := map[string]string{}, 0, 0
	for runs < 2 || b.Loop() {
		changed, err := redrawn(shown, views[runs%2])
		if err != nil {
			b.Fatal(err)
		}
		for _, text := range changed {
			if runs > 0 {
				sent += len(text)
			}
		}
		runs++
	}
	b.ReportMetric(float64(sent)/float64(max(1, runs-1)), "bytes/change")
}
