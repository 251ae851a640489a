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
	"berth.dev/berth/pkg/wellknown"
)

// replayVariant is what the scheduler keeps for gangs, and what pods declare.
type replayVariant struct {
	name, reservation string
	// low and high are the bounds of what is declared, as a part of the truth; nothing is declared if both are 0.
	low, high float64
	// byDeadline has the queue ordered by the deadlines of the jobs.
	byDeadline bool
}

var replayVariants = []replayVariant{
	{name: "nothing kept", reservation: "{maxNodesPercent: 0}"},
	{name: "turns", reservation: "{}"},
	{name: "by time, learned", reservation: "{byTime: {mostGangs: 2}}"},
	{name: "by time, declared truly", reservation: "{byTime: {mostGangs: 2}}", low: 1, high: 1},
	{name: "by time, declared 0.2–1.2 × the truth", reservation: "{byTime: {mostGangs: 2}}", low: 0.2, high: 1.2},
	{name: "earliest deadline first, turns", reservation: "{}", byDeadline: true},
	{name: "earliest deadline first, by time, learned", reservation: "{byTime: {mostGangs: 2}}", byDeadline: true},
	{name: "earliest deadline first, by time, declared truly", reservation: "{byTime: {mostGangs: 2}}", low: 1, high: 1,
		byDeadline: true},
}

// scheduler replays the first jobs of each load with the real scheduler.
func (b *bench) scheduler() error {
	fmt.Fprintf(b.out, "\nScheduler, the first %d jobs\n\n| cluster | reservation | gangs | mean wait | p50 | p95 | max | others | "+
		"weighted by GPUs | allocated | told interval | error p50 | p95 | misses | CPU a pod |\n"+
		"|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
		b.jobs)
	// The first 4,000 jobs of Philly ask for more than 80 nodes have.
	loads := append(b.loaded(), b.trace("philly/mix1", 120), b.trace("philly/slo", 120), b.trace("philly/slo", 80))
	for i := range loads {
		for k := range replayVariants {
			v := &replayVariants[k]
			if !strings.Contains(loads[i].name+", "+v.name, b.only) ||
				v.byDeadline && !strings.HasPrefix(loads[i].name, "slo") {
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
	read = read[min(len(read), b.skip):]
	read = read[:min(len(read), b.jobs)]
	text, err := os.ReadFile(b.config)
	if err != nil {
		return fmt.Errorf("reading the scheduler configuration: %w", err)
	}
	const before = "    pluginConfig:\n"
	c, err := schedulerconfig.Parse(b.config, []byte(strings.ReplaceAll(string(text), before,
		before+"      - {name: Coscheduling, args: {reservation: "+v.reservation+v.order()+"}}\n")))
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
	fmt.Fprintf(b.out, "| %s | %s | %d | %.0f | %.0f | %.0f | %.0f | %.0f | %.0f | %.1f%% | %d of %d | %.0f | "+
		"%.0f | %s | %.1f ms |\n", s.name, v.name, gangs, f.gangs, f.p50, f.p95, f.max, f.others, f.weighted, out.AllocatedPercent, out.ToldStarts.Within,
		out.ToldStarts.Error.Count, out.ToldStarts.Error.P50/60, out.ToldStarts.Error.P95/60, part(missed, due),
		1000*out.Timing.CPU/float64(max(out.Pods, 1)))
	return nil
}

// job is a job as the scheduler gets it.
func (v *replayVariant) job(j *job) trace.Job {
	t := trace.Job{Name: fmt.Sprintf("j%05d", j.id), Arrival: whole(j.submit), Duration: whole(j.run), Pods: 1, CPUMilli: 1000,
		MemoryMiB: 1024, GPUs: j.gpus, GPUMilli: 1000}
	if j.user != "" {
		t.Namespace = strings.ReplaceAll(j.user, "_", "-")
	}
	if v.byDeadline {
		t.Labels = map[string]string{wellknown.SLAClassKey: classOfDeadline(j.due)}
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

const (
	// deadlineClasses is how many service levels stand for the deadlines of jobs, each longer than the one before by
	// this factor. Jobs without a deadline come last.
	deadlineClasses    = 50
	firstClass, longer = 300.0, 1.2
)

// order is the order of the queue, as an argument of Coscheduling behind the reservation.
func (v *replayVariant) order() string {
	if !v.byDeadline {
		return ""
	}
	classes := []string{"{name: none, deadlineSeconds: 2592000}"}
	for i := range deadlineClasses {
		classes = append(classes, fmt.Sprintf("{name: d%d, deadlineSeconds: %.0f}", i, firstClass*math.Pow(longer, float64(i))))
	}
	return ", sla: {classes: [" + strings.Join(classes, ", ") + "]}"
}

// classOfDeadline names the service level whose deadline is nearest to the job's.
func classOfDeadline(due float64) string {
	if due == 0 {
		return "none"
	}
	i := math.Round(math.Log(due/firstClass) / math.Log(longer))
	return fmt.Sprintf("d%.0f", min(max(i, 0), deadlineClasses-1))
}

func whole(s float64) time.Duration { return time.Duration(math.Round(s)) * time.Second }
