// Command starvation measures by replay how long gangs of a quarter of the cluster wait under a steady stream of small
// jobs of the same priority, and what the reservation that lets them start costs: the allocated GPUs, and the waits of
// the small jobs. Each family of loads is replayed with the reservation switched off, with its defaults, and with those
// given.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"berth.dev/berth/hack/bench/replays"
	"berth.dev/berth/hack/bench/rig"
	"berth.dev/berth/pkg/replay"
	"berth.dev/berth/pkg/replay/replayed"
	"berth.dev/berth/pkg/schedulerconfig"
	"berth.dev/berth/pkg/trace"
)

// outcome is what one replay shows.
type outcome struct {
	Family      string `json:"family" row:"load"`
	Reservation string `json:"reservation" row:"reservation"`
	Pods        int    `json:"pods" column:"pods|%.0f"`
	// AllocatedPercent is the mean over the time from the arrival of the first gang to the end of the trace.
	AllocatedPercent float64 `json:"allocatedPercent" column:"allocated|%.2f%%"`
	Gangs            int     `json:"gangs" column:"gangs|%.0f"`
	GangsStarted     int     `json:"gangsStarted" column:"started|%.0f"`
	// Waits in seconds, of what has started.
	GangWaitP50  float64 `json:"gangWaitP50Seconds" column:"gang wait p50|duration"`
	GangWaitMax  float64 `json:"gangWaitMaxSeconds" column:"max|duration"`
	SmallWaitP50 float64 `json:"smallWaitP50Seconds" column:"small wait p50|duration"`
	SmallWaitP95 float64 `json:"smallWaitP95Seconds" column:"p95|duration"`
	SmallPending int     `json:"smallPending" column:"small pending|%.0f"`
	WallSeconds  float64 `json:"wallSeconds" column:"replayed in|duration"`
}

var (
	nodes  = rig.Count("nodes", 32, "nodes of 8 GPUs")
	length = flag.Duration("length", 8*time.Hour,
		"virtual length of a trace with gangs of half an hour; traces with longer gangs are longer")
	seed   = flag.Uint64("seed", 1, "seed of the traces")
	config = flag.String("config", "manifests/base/scheduler-config.yaml",
		"scheduler configuration without args of Coscheduling")
	profile = flag.String("profile", "gang-scheduler", "profile that schedules the pods")
	chosen  = rig.Some("family", families, "measure only these families of loads")
	// Args have commas themselves.
	variants = flag.String("reservations", "{maxNodesPercent: 0};{}",
		"reservation args to measure, separated by semicolons")
)

func main() { rig.Main("measures by replay how long gangs wait under a stream of small jobs.", bench) }

func bench(ctx context.Context, out io.Writer) (any, error) {
	text, err := os.ReadFile(*config)
	if err != nil {
		return nil, fmt.Errorf("reading the scheduler configuration: %w", err)
	}
	var all []outcome
	for _, f := range *chosen {
		until := f.length(*length)
		jobs := f.jobs(*nodes, until, *seed)
		for variant := range strings.SplitSeq(*variants, ";") {
			rig.Progress("%s with reservation %s", f.name, variant)
			c, err := withReservation(string(text), variant)
			if err != nil {
				return all, err
			}
			result, err := replay.Run(ctx, c, replay.NewInput(f.name, replays.Cluster(*nodes), jobs),
				replay.Options{Mode: replayed.VirtualTime, Profile: *profile, Seed: *seed, Horizon: until})
			if err != nil {
				return all, fmt.Errorf("replaying %s with reservation %s: %w", f.name, variant, err)
			}
			o := measure(jobs, result, f.warmUp(), until, *nodes*replays.GPUsPerNode)
			o.Family, o.Reservation = f.name, variant
			all = append(all, o)
		}
	}
	return all, rig.Table(out, all)
}

// withReservation gives every profile the args for reservations.
func withReservation(text, reservation string) (*schedulerconfig.Configuration, error) {
	const before = "    pluginConfig:\n"
	return schedulerconfig.Parse(*config, []byte(strings.ReplaceAll(text, before,
		before+"      - {name: Coscheduling, args: {reservation: "+reservation+"}}\n")))
}

// measure looks at the time between warm and end.
func measure(jobs []trace.Job, r *replayed.Result, warm, end time.Duration, gpus int) outcome {
	o := outcome{Pods: r.Pods, WallSeconds: r.Timing.Wall}
	var gangs, small []float64
	allocated := 0.0
	for i := range jobs {
		j := &jobs[i]
		wait, started := replays.Wait(r, j)
		switch {
		case j.Gang:
			o.Gangs++
			if started {
				gangs = append(gangs, wait)
			}
		case started && j.Arrival >= warm:
			small = append(small, wait)
		case !started:
			o.SmallPending++
		}
		if started {
			start := j.Arrival.Seconds() + wait
			until := min(start+j.Duration.Seconds(), end.Seconds())
			allocated += max(until-max(start, warm.Seconds()), 0) * float64(j.Pods*j.GPUs)
		}
	}
	o.AllocatedPercent = 100 * allocated / (end - warm).Seconds() / float64(gpus)
	o.GangsStarted = len(gangs)
	o.GangWaitP50, o.GangWaitMax = rig.Percentile(gangs, 50), rig.Percentile(gangs, 100)
	o.SmallWaitP50, o.SmallWaitP95 = rig.Percentile(small, 50), rig.Percentile(small, 95)
	return o
}
