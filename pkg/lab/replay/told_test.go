package replay

import (
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/lab/replay/replayed"
	"berth.dev/berth/pkg/lab/trace"
	"berth.dev/berth/pkg/schedulerconfig"
)

func TestProgressIsThatOfPodsThatAreDone(t *testing.T) {
	t.Parallel()
	node := trace.Node{Name: "a", CPUMilli: 8000, MemoryMiB: 16384}
	job := func(name string) trace.Job {
		return trace.Job{Name: name, Duration: time.Hour, Pods: 1, CPUMilli: 8000, MemoryMiB: 512}
	}
	in := NewInput("one after the other", []trace.Node{node}, []trace.Job{job("a"), job("b"), job("c")})
	for mode, want := range map[replayed.Mode]int64{replayed.VirtualTime: 2, replayed.ArrivalOrder: 3} {
		progress := &replayed.Progress{}
		options := Options{Mode: mode, Progress: progress}
		if mode == replayed.VirtualTime {
			options.Horizon = 90 * time.Minute
		}
		mustRun(t, schedulerconfig.Stock, in, options)
		if done, total := progress.Read(); done != want || total != 3 {
			t.Errorf("%s: %d of %d pods are done, want %d of 3: all have come, and each needs the node for an hour", mode, done,
				total, want)
		}
	}
}

func TestWaitsHaveTheirReasons(t *testing.T) {
	t.Parallel()
	nodes := []trace.Node{{Name: "a", CPUMilli: 8000, MemoryMiB: 16384}, {Name: "spot", CPUMilli: 8000, MemoryMiB: 16384,
		Spot: true}}
	job := func(name string) trace.Job {
		return trace.Job{Name: name, Duration: time.Hour, Pods: 1, CPUMilli: 6000, MemoryMiB: 512}
	}
	in := NewInput("spot is avoided", nodes, []trace.Job{job("first"), job("second")})
	r := mustRun(t, shipped, in, Options{Mode: replayed.VirtualTime})
	spot := slices.IndexFunc(r.WaitByReason, func(w replayed.Wait) bool { return strings.Contains(w.Reason, "spot") })
	if spot < 0 || len(r.WaitByReason) != 2 || r.WaitByReason[spot].Pods != 1 || r.WaitByReason[spot].Seconds < 3500 {
		t.Errorf("waits: %+v, want an hour of one pod for spot nodes, and for too little CPU", r.WaitByReason)
	}
	if r := mustRun(t, schedulerconfig.Stock, in, Options{Mode: replayed.VirtualTime}); len(r.WaitByReason) != 0 {
		t.Errorf("the default scheduler takes the spot node, but: %+v", r.WaitByReason)
	}
}

// TestADumpIsTakenAsItIsNot has pods of another scheduler, a PodGroup that does not exist, and a gang for which there
// is no room.
func TestADumpIsTakenAsItIsNot(t *testing.T) {
	t.Parallel()
	in := NewInput("dump", []trace.Node{{Name: "a", CPUMilli: 8000, MemoryMiB: 16384}}, nil)
	add := func(name, scheduler string, cpu int64, change func(*v1.Pod)) {
		job := trace.Job{Name: name, Pods: 1, CPUMilli: cpu, MemoryMiB: 512}
		pod := podObject(&job, 0, 0, scheduler, false, usualKeys())
		if change != nil {
			change(pod)
		}
		in.Objects = append(in.Objects, pod)
	}
	add("foreign", "volcano", 1000, nil)
	add("ours", "berth-scheduler", 1000, nil)
	ghost := func(pod *v1.Pod) { pod.Labels = map[string]string{"scheduling.x-k8s.io/pod-group": "ghost"} }
	add("one", "berth-scheduler", 1000, ghost)
	add("two", "berth-scheduler", 1000, ghost)
	gang := func(pod *v1.Pod) {
		pod.Labels = map[string]string{"pod-group.scheduling.sigs.k8s.io/name": "g",
			"pod-group.scheduling.sigs.k8s.io/min-available": "4"}
	}
	for _, name := range []string{"g-0", "g-1", "g-2", "g-3"} {
		add(name, "berth-scheduler", 3000, gang)
	}
	const missing = "2 pods name a PodGroup that does not exist (replay/ghost) and are of no gang"
	for config, want := range map[string]struct {
		incomplete bool
		note       string
	}{
		shipped: {false, "1 pod of schedulers that the configuration does not have (volcano 1) is placed as " +
			"if of the profile berth-scheduler"},
		schedulerconfig.Stock: {true, "8 pods of schedulers that the configuration does not have (berth-scheduler 7, " +
			"volcano 1) are placed as if of the profile"},
	} {
		r := mustRun(t, config, in, Options{Mode: replayed.VirtualTime})
		if r.Placed+r.Pending+r.Incomplete != 8 || r.Incomplete > 0 != want.incomplete || r.Placed > 4 || r.Gangs != 1 ||
			r.GangsStarted != 0 {
			t.Errorf("%s: %d placed, %d pending, %d of incomplete gangs, %d of %d gangs started; want %+v, at most 4 placed, "+
				"and none of 1",
				config, r.Placed, r.Pending, r.Incomplete, r.GangsStarted, r.Gangs, want)
		}
		for _, note := range []string{want.note, missing} {
			if !slices.ContainsFunc(r.Notes, func(have string) bool { return strings.HasPrefix(have, note) }) {
				t.Errorf("%s: notes %q, want %q", config, r.Notes, note)
			}
		}
	}
}
