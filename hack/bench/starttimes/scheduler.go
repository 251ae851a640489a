package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"berth.dev/berth/hack/bench/replays"
	"berth.dev/berth/pkg/replay"
	"berth.dev/berth/pkg/replay/replayed"
	"berth.dev/berth/pkg/schedulerconfig"
	"berth.dev/berth/pkg/trace"
)

// replayVariant is what the scheduler keeps for gangs, and what pods declare.
type replayVariant struct {
	name, reservation string
	// low and high are the bounds of what is declared, as a part of the truth; nothing is declared if both are 0.
	low, high float64
}

var replayVariants = []replayVariant{
	{"nothing kept", "{maxNodesPercent: 0}", 0, 0},
	{"turns", "{}", 0, 0},
	{"by time, learned", "{byTime: {mostGangs: 2}}", 0, 0},
	{"by time, declared truly", "{byTime: {mostGangs: 2}}", 1, 1},
	{"by time, declared 0.2–1.2 × the truth", "{byTime: {mostGangs: 2}}", 0.2, 1.2},
}

// scheduler replays the first jobs of each load with the real scheduler.
func (b *bench) scheduler() error {
	fmt.Fprintf(b.out, "\nScheduler, the first %d jobs\n\n| cluster | reservation | gangs | mean wait | p50 | p95 | max | others | "+
		"weighted by GPUs | allocated | told interval | misses | CPU a pod |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
		b.jobs)
	loads := append(b.loaded(), b.trace("philly/mix1", 120), b.trace("philly/slo", 120))
	for i := range loads {
		for k := range replayVariants {
			v := &replayVariants[k]
			if !strings.Contains(loads[i].name+", "+v.name, b.only) {
				continue
			}
			if err := b.replay(&loads[i], v); err != nil {
				return fmt.Errorf("replaying %s, %s: %w", loads[i].name, v.name, err)
			}
		}
	}
	return nil
}

func (b *bench) replay(s *scenario, v *replayVariant) error {
	read, err := s.read()
	if err != nil {
		return err
	}
	read = slices.DeleteFunc(read, func(j job) bool { return j.members() > s.nodes })
	read = read[:min(len(read), b.jobs)]
	text, err := os.ReadFile(b.config)
	if err != nil {
		return fmt.Errorf("reading the scheduler configuration: %w", err)
	}
	const before = "    pluginConfig:\n"
	c, err := schedulerconfig.Parse(b.config, []byte(strings.ReplaceAll(string(text), before,
		before+"      - {name: Coscheduling, args: {reservation: "+v.reservation+"}}\n")))
	if err != nil {
		return fmt.Errorf("reading the scheduler configuration: %w", err)
	}
	jobs := make([]trace.Job, len(read))
	for i := range read {
		jobs[i] = v.job(&read[i])
	}
	out, err := replay.Run(context.Background(), c, replay.NewInput(s.name, replays.Cluster(s.nodes), jobs),
		replay.Options{Mode: replayed.VirtualTime, Profile: "gang-scheduler"})
	if err != nil {
		return err
	}
	due, missed := 0, 0
	for i := range read {
		j := &read[i]
		wait, started := replays.Wait(out, &jobs[i])
		if j.due > 0 {
			due++
		}
		if !started {
			continue
		}
		j.nodes, j.start = []int{}, j.submit+wait
		if j.due > 0 && wait+j.run > j.due {
			missed++
		}
	}
	f := measure(read)
	gangs := 0
	for i := range read {
		gangs += min(read[i].members(), 1)
	}
	part := func(of, all int) string {
		if all == 0 {
			return "–"
		}
		return fmt.Sprintf("%.1f%%", 100*float64(of)/float64(all))
	}
	fmt.Fprintf(b.out, "| %s | %s | %d | %.0f | %.0f | %.0f | %.0f | %.0f | %.0f | %.1f%% | %d of %d | %s | %.1f ms |\n", s.name, v.name,
		gangs, f.gangs, f.p50, f.p95, f.max, f.others, f.weighted, out.AllocatedPercent, out.ToldStarts.Within,
		out.ToldStarts.Error.Count, part(missed, due), 1000*out.Timing.CPU/float64(max(out.Pods, 1)))
	return nil
}

// job is a job as the scheduler gets it.
func (v *replayVariant) job(j *job) trace.Job {
	t := trace.Job{Name: fmt.Sprintf("j%05d", j.id), Arrival: whole(j.submit), Duration: whole(j.run), Pods: 1, CPUMilli: 1000,
		MemoryMiB: 1024, GPUs: j.gpus, GPUMilli: 1000}
	if j.user != "" {
		t.Namespace = strings.ReplaceAll(j.user, "_", "-")
	}
	if m := j.members(); m > 0 {
		t.Gang, t.Pods, t.GPUs = true, m, gpusPerNode
	}
	if v.high > 0 {
		r := rand.New(rand.NewPCG(uint64(j.id), 3))
		t.RunTime = max(whole(j.run*(v.low+r.Float64()*(v.high-v.low))), time.Second)
	}
	return t
}

func whole(s float64) time.Duration { return time.Duration(math.Round(s)) * time.Second }
