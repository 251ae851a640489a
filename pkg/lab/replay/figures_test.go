package replay

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/lab/replay/replayed"
	"berth.dev/berth/pkg/lab/trace"
	"berth.dev/berth/pkg/schedulerconfig"
	"berth.dev/berth/pkg/wellknown"
	"berth.dev/berth/test/harness/assert"
	"berth.dev/berth/test/harness/require"
)

func gpuNodes(n, gpus int) []trace.Node {
	nodes := make([]trace.Node, n)
	for i := range nodes {
		nodes[i] = trace.Node{Name: fmt.Sprint("n", i), CPUMilli: 32_000, MemoryMiB: 65_536, GPUs: gpus, Model: "Tesla-T4",
			MicroDollarsPerHour: 1_000_000}
	}
	return nodes
}

func gpuJob(name string, gpus, milli int) trace.Job {
	return trace.Job{Name: name, Pods: 1, CPUMilli: 1000, MemoryMiB: 512, GPUs: gpus, GPUMilli: milli}
}

// figures are those of a result that a table of tests compares.
type figures struct {
	Basis                       replayed.Basis
	Allocated, Held, Incomplete int64
	Nodes                       float64
	Gangs, GangsStarted, Shares int
	Placed                      int
}

func figuresOf(r *replayed.Result) figures {
	return figures{Basis: r.Basis, Allocated: r.AllocatedMilli, Held: r.HeldMilli, Incomplete: r.IncompleteMilli,
		Nodes: r.NodesInUse,
		Gangs: r.Gangs, GangsStarted: r.GangsStarted, Shares: r.SharePods, Placed: r.Placed}
}

func TestADumpIsReportedAsItEnds(t *testing.T) {
	t.Parallel()
	bound := func(name, node string, gpus int) *v1.Pod {
		job := gpuJob(name, gpus, 1000)
		pod := podObject(&job, 0, 0, "", false, usualKeys())
		pod.Spec.NodeName, pod.Status.Phase = node, v1.PodRunning
		return pod
	}
	linked := func(name, node string, gpus int) *v1.Pod {
		pod := bound(name, node, gpus)
		pod.Annotations = map[string]string{wellknown.GPUInterconnectKey: "required"}
		return pod
	}
	share := func(name string, milli int) *v1.Pod {
		job := gpuJob(name, 1, milli)
		return podObject(&job, 0, 0, "", true, usualKeys())
	}
	member := func(name string) *v1.Pod {
		pod := bound(name, "", 1)
		pod.Status.Phase = v1.PodPending
		read.Join(pod, "gang")
		return pod
	}
	for name, tc := range map[string]struct {
		gpus   int
		pods   []*v1.Pod
		gang   int // the minimum of the PodGroup
		rebind bool
		want   map[string]figures // by configuration
	}{
		"what fits is allocated on either side": {4, []*v1.Pod{bound("a", "n0", 4), bound("b", "n1", 2)}, 0, true,
			map[string]figures{
				schedulerconfig.Stock: {Basis: replayed.EndState, Allocated: 6000, Nodes: 2, Placed: 2},
				shipped:               {Basis: replayed.EndState, Allocated: 6000, Nodes: 2, Placed: 2},
			}},
		"nothing moves": {4, []*v1.Pod{bound("a", "n0", 3)}, 0, false, map[string]figures{
			schedulerconfig.Stock: {Basis: replayed.EndState, Allocated: 3000, Nodes: 1, Placed: 1},
		}},
		"GPUs that have to be linked are held whatever their links": {4, []*v1.Pod{linked("a", "n0", 3)}, 0, false,
			map[string]figures{
				schedulerconfig.Stock: {Basis: replayed.EndState, Allocated: 3000, Nodes: 1, Placed: 1},
				shipped:               {Basis: replayed.EndState, Allocated: 3000, Nodes: 1, Placed: 1},
			}},
		"a share counts as what it asks for": {2, []*v1.Pod{share("a", 300), share("b", 300)}, 0, true, map[string]figures{
			schedulerconfig.Stock: {Basis: replayed.EndState, Allocated: 600, Held: 1400, Nodes: 2, Shares: 2, Placed: 2},
			shipped:               {Basis: replayed.EndState, Allocated: 600, Nodes: 1, Shares: 2, Placed: 2},
		}},
		"an incomplete gang does not work": {1, []*v1.Pod{member("a"), member("b"), member("c")}, 3, true, map[string]figures{
			schedulerconfig.Stock: {Basis: replayed.EndState, Held: 2000, Incomplete: 2000, Nodes: 2, Gangs: 1},
			shipped:               {Basis: replayed.EndState, Gangs: 1},
		}},
		"a gang that starts is counted": {1, []*v1.Pod{member("a"), member("b")}, 2, true, map[string]figures{
			schedulerconfig.Stock: {Basis: replayed.EndState, Allocated: 2000, Nodes: 2, Gangs: 1, GangsStarted: 1, Placed: 2},
			shipped:               {Basis: replayed.EndState, Allocated: 2000, Nodes: 2, Gangs: 1, GangsStarted: 1, Placed: 2},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for config, want := range tc.want {
				in := NewInput("dump", gpuNodes(2, tc.gpus), []trace.Job{gpuJob("share", 1, 500)})
				in.Jobs, in.Rebind = nil, tc.rebind
				for _, pod := range tc.pods {
					in.Objects = append(in.Objects, pod)
				}
				if tc.gang > 0 {
					in.Objects = append(in.Objects, read.NewPodGroup(namespace, "gang", tc.gang))
				}
				r := mustRun(t, config, in, Options{Mode: replayed.VirtualTime})
				assert.Equal(t, config, want, figuresOf(r))
				if r.Window != nil || r.MicroDollars != 0 {
					t.Errorf("%s: a window %v and a bill of %d, want neither", config, r.Window, r.MicroDollars)
				}
			}
		})
	}
}

func TestMeansAreOverAStatedTime(t *testing.T) {
	t.Parallel()
	at := func(arrival, duration time.Duration) trace.Job {
		j := gpuJob(fmt.Sprint("j", arrival, duration), 1, 1000)
		j.Arrival, j.Duration = arrival, duration
		return j
	}
	tooLarge := at(0, time.Hour)
	tooLarge.GPUs = 16
	over := func(from, to float64, until replayed.Until) *replayed.Window {
		return &replayed.Window{From: from, To: to, Until: until}
	}
	for name, tc := range map[string]struct {
		jobs            []trace.Job
		warmup, horizon time.Duration
		basis           replayed.Basis
		window          *replayed.Window
		percent         float64
	}{
		"until the last arrival": {[]trace.Job{at(0, time.Hour), at(2*time.Hour, time.Hour)}, 0, 0, replayed.TimeMean,
			over(0, 7200, replayed.LastArrival), 25},
		"without the warm-up": {[]trace.Job{at(0, time.Hour), at(3*time.Hour, time.Hour)}, 30 * time.Minute, 0,
			replayed.TimeMean, over(1800, 10800, replayed.LastArrival), 10},
		"all at once, until the work is done": {[]trace.Job{at(0, time.Hour), at(0, 2*time.Hour)}, 0, 0, replayed.TimeMean,
			over(0, 7200, replayed.WorkDone), 75},
		"within less time than they run": {[]trace.Job{at(0, time.Hour), at(time.Minute, time.Hour)}, 0, 0, replayed.TimeMean,
			over(0, 3660, replayed.WorkDone), 98.36},
		"until the horizon": {[]trace.Job{at(0, 2*time.Hour), at(0, 3*time.Hour)}, 0, time.Hour, replayed.TimeMean,
			over(0, 3600, replayed.Horizon), 100},
		"done before the horizon": {[]trace.Job{at(0, time.Hour), at(0, 2*time.Hour)}, 0, 9 * time.Hour, replayed.TimeMean,
			over(0, 7200, replayed.WorkDone), 75},
		"at once, and it never fits": {[]trace.Job{tooLarge}, 0, 0, replayed.EndState, nil, 0},
		"at once and forever":        {[]trace.Job{at(0, 0)}, 0, 0, replayed.EndState, nil, 50},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := mustRun(t, schedulerconfig.Stock, NewInput("x", gpuNodes(1, 2), tc.jobs),
				Options{Mode: replayed.VirtualTime, Warmup: tc.warmup, Horizon: tc.horizon})
			if r.Window != nil {
				r.Window.To = float64(int(r.Window.To)) // the cycles take milliseconds
			}
			assert.Equal(t, "window", tc.window, r.Window)
			if r.Basis != tc.basis || r.AllocatedPercent < tc.percent-0.1 || r.AllocatedPercent > tc.percent+0.1 {
				t.Errorf("%s of %v%%, want %s of %v%%", r.Basis, r.AllocatedPercent, tc.basis, tc.percent)
			}
		})
	}
}

func TestNodesAreTakenAsASandboxTakesThem(t *testing.T) {
	t.Parallel()
	const short = "shapes:\n- name: a\n  count: 3\n  labels: {nvidia.com/gpu.product: Tesla-T4}\n" +
		"  allocatable: {cpu: 32, memory: 64Gi, nvidia.com/gpu: 2}\n"
	for name, tc := range map[string]struct{ text, want string }{
		"the short form":                     {"# nodes\n\n" + short, ""},
		"with a line that begins a document": {"---\n" + short, ""},
		"JSON":                               {`{"shapes": [{"name": "a", "count": 3, "allocatable": {"cpu": "32", "memory": "64Gi", "nvidia.com/gpu": "2"}}]}`, ""},
		"a table": {"name,cpu_milli,memory_mib,gpus,model,count\na,32000,65536,2,Tesla-T4,3\n",
			""},
		"a table with a byte order mark": {
			"\ufeffname,cpu_milli,memory_mib,gpus,model,count\na,32000,65536,2,Tesla-T4,3\n", ""},
		"an empty file is a table that is wrong": {"", "the file is empty"},
		"a mistake in the short form":            {"shapes:\n- nome: a\n", "nome"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			f := Files{Nodes: filepath.Join(dir, "nodes"), Jobs: filepath.Join(dir, "jobs.csv")}
			require.NoError(t, errors.Join(os.WriteFile(f.Nodes, []byte(tc.text), 0o600),
				os.WriteFile(f.Jobs, []byte("name,cpu_milli,memory_mib,gpus,pods\nj,1000,512,2,3\n"), 0o600)))
			in, err := f.Load()
			if tc.want != "" {
				assert.Contains(t, fmt.Sprint(err), tc.want)
				return
			}
			require.NoError(t, err)
			r := mustRun(t, schedulerconfig.Stock, in, Options{Mode: replayed.VirtualTime})
			if r.Nodes != 3 || r.CapacityMilli != 6000 || r.Placed != 3 {
				t.Errorf("%d nodes with %d milli-GPU, %d pods placed; want 3, 6000, 3", r.Nodes, r.CapacityMilli, r.Placed)
			}
		})
	}
}
