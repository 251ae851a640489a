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
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/klog/v2"

	"berth.dev/berth/hack/bench/rig"
	"berth.dev/berth/pkg/replay"
	"berth.dev/berth/pkg/replay/replayed"
	"berth.dev/berth/pkg/schedulerconfig"
	"berth.dev/berth/pkg/trace"
)

// outcome is what one replay shows.
type outcome struct {
	Family      string `json:"family"`
	Reservation string `json:"reservation"`
	Pods        int    `json:"pods"`
	// AllocatedPercent is the mean over the time from the arrival of the first gang to the end of the trace.
	AllocatedPercent float64 `json:"allocatedPercent"`
	Gangs            int     `json:"gangs"`
	GangsStarted     int     `json:"gangsStarted"`
	// Waits in seconds, of what has started.
	GangWaitP50  float64 `json:"gangWaitP50Seconds"`
	GangWaitMax  float64 `json:"gangWaitMaxSeconds"`
	SmallWaitP50 float64 `json:"smallWaitP50Seconds"`
	SmallWaitP95 float64 `json:"smallWaitP95Seconds"`
	SmallPending int     `json:"smallPending"`
	WallSeconds  float64 `json:"wallSeconds"`
}

func main() {
	nodes := flag.Int("nodes", 32, "nodes of 8 GPUs")
	length := flag.Duration("length", 8*time.Hour,
		"virtual length of a trace with gangs of half an hour; traces with longer gangs are longer")
	seed := flag.Uint64("seed", 1, "seed of the traces")
	config := flag.String("config", "manifests/base/scheduler-config.yaml",
		"scheduler configuration without args of Coscheduling")
	profile := flag.String("profile", "gang-scheduler", "profile that schedules the pods")
	only := flag.String("family", "", "measure only this family of loads")
	variants := flag.String("reservations", "{maxNodesPercent: 0};{}",
		"reservation args to measure, separated by semicolons")
	keep := flag.String("json", "", "write the figures as JSON to this file")
	flag.Parse()
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	if err := run(*config, *profile, *only, strings.Split(*variants, ";"), *keep, *nodes, *length, *seed); err != nil {
		fmt.Fprintln(os.Stderr, "starvation:", err)
		os.Exit(1)
	}
}

func run(config, profile, only string, variants []string, keep string, nodes int, length time.Duration,
	seed uint64) error {
	session, err := rig.Begin()
	if err != nil {
		return err
	}
	var all []outcome
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table,
		"load\treservation\tgangs started\tgang wait p50\tmax\tallocated\tsmall wait p50\tp95\tsmall "+
			"pending\tpods\treplayed in")
	for i := range families {
		f := &families[i]
		if only != "" && f.name != only {
			continue
		}
		length := f.length(length)
		jobs := f.jobs(nodes, length, seed)
		for _, variant := range variants {
			c, err := configuration(config, variant)
			if err != nil {
				return err
			}
			result, err := replay.Run(context.Background(), c, replay.NewInput(f.name, cluster(nodes), jobs),
				replay.Options{Mode: replayed.VirtualTime, Profile: profile, Seed: seed, Horizon: length})
			if err != nil {
				return fmt.Errorf("replaying %s with reservation %s: %w", f.name, variant, err)
			}
			o := measure(jobs, result, f.warmUp(), length, nodes*gpusPerNode)
			o.Family, o.Reservation = f.name, variant
			all = append(all, o)
			seconds := func(s float64) string { return time.Duration(s * float64(time.Second)).Round(time.Second).String() }
			fmt.Fprintf(table, "%s\t%s\t%d of %d\t%s\t%s\t%.2f%%\t%s\t%s\t%d\t%d\t%.0fs\n", f.name, variant, o.GangsStarted,
				o.Gangs, seconds(o.GangWaitP50),
				seconds(o.GangWaitMax), o.AllocatedPercent, seconds(o.SmallWaitP50), seconds(o.SmallWaitP95), o.SmallPending,
				o.Pods, o.WallSeconds)
			if err := table.Flush(); err != nil {
				return fmt.Errorf("printing the table: %w", err)
			}
		}
	}
	return session.End(os.Stdout, keep, all)
}

// configuration returns the configuration with the args for reservations in every profile.
func configuration(path, reservation string) (*schedulerconfig.Configuration, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the scheduler configuration: %w", err)
	}
	const before = "    pluginConfig:\n"
	varied := strings.ReplaceAll(string(text), before, before+"      - {name: Coscheduling, args: {reservation: "+
		reservation+"}}\n")
	folder, err := os.MkdirTemp("", "starvation")
	if err != nil {
		return nil, fmt.Errorf("making a folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	file := filepath.Join(folder, "config.yaml")
	if err := os.WriteFile(file, []byte(varied), 0o600); err != nil {
		return nil, fmt.Errorf("writing a scheduler configuration: %w", err)
	}
	return schedulerconfig.Load(file)
}

// measure looks at the time between warm and end.
func measure(jobs []trace.Job, r *replayed.Result, warm, end time.Duration, gpus int) outcome {
	o := outcome{Pods: r.Pods, WallSeconds: r.Timing.Wall}
	var gangs, small []float64
	allocated := 0.0
	for _, j := range jobs {
		start, started := r.Starts[j.Name]
		switch {
		case j.Gang:
			o.Gangs++
			if started {
				gangs = append(gangs, start-j.Arrival.Seconds())
			}
		case started && j.Arrival >= warm:
			small = append(small, start-j.Arrival.Seconds())
		case !started:
			o.SmallPending++
		}
		if started {
			until := min(start+j.Duration.Seconds(), end.Seconds())
			allocated += max(until-max(start, warm.Seconds()), 0) * float64(j.Pods*j.GPUs)
		}
	}
	o.AllocatedPercent = 100 * allocated / (end - warm).Seconds() / float64(gpus)
	o.GangsStarted = len(gangs)
	o.GangWaitP50, o.GangWaitMax = percentile(gangs, 50), percentile(gangs, 100)
	o.SmallWaitP50, o.SmallWaitP95 = percentile(small, 50), percentile(small, 95)
	return o
}

// percentile returns the nearest-rank percentile.
func percentile(values []float64, percent int) float64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[max((len(values)*percent+99)/100-1, 0)]
}
