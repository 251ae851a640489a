// Command ageing measures by replay how long pods of a low and of a high priority wait, with and without ageing, while
// pods of the high priority come nearly as fast as the cluster can run them, or faster. No pod preempts another, as
// with the preemptionPolicy Never: ageing orders the queue, and preemption goes by priority.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
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

// configuration is a profile without preemption. The args of Coscheduling are filled in.
const configuration = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
percentageOfNodesToScore: 100
profiles:
- schedulerName: ageing
  plugins:
    queueSort: {disabled: [{name: "*"}], enabled: [{name: Coscheduling}]}
    postFilter: {disabled: [{name: "*"}]}
    multiPoint: {enabled: [{name: Coscheduling}]}
  pluginConfig:
  - {name: Coscheduling, args: {%s}}
  - {name: PodTopologySpread, args: {defaultingType: List}}
  - {name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}}
`

// family is a load: what the pods of each priority ask for while the stream lasts, of all GPU time. After the stream
// nothing comes any more, and the queue drains.
type family struct {
	name      string
	high, low float64
}

var families = []family{
	{"high 0.90, low 0.15", 0.90, 0.15},
	{"high 1.05, low 0.10", 1.05, 0.10},
	{"high 0.60, low 0.30", 0.60, 0.30},
}

const (
	gpusPerNode  = 8
	lowPriority  = 0
	highPriority = 1000
	meanRun      = 20 * time.Minute
)

func main() {
	nodes := flag.Int("nodes", 4, "nodes of 8 GPUs")
	length := flag.Duration("length", 12*time.Hour, "virtual length of the stream")
	seed := flag.Uint64("seed", 1, "seed of the traces")
	rates := flag.String("rates", "0,1,100,500,2000",
		"points of priority an hour to measure, separated by commas; 0 is no ageing at all, and 1 hardly any, but the "+
			"order of creation")
	file := flag.String("json", "", "write the figures as JSON to this file")
	flag.Parse()
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	if err := run(*nodes, *length, *seed, strings.Split(*rates, ","), *file); err != nil {
		fmt.Fprintln(os.Stderr, "ageing:", err)
		os.Exit(1)
	}
}

// outcome is what one replay shows.
type outcome struct {
	Load        string  `json:"load"`
	PerHour     string  `json:"pointsPerHour"`
	Low         waiting `json:"low"`
	High        waiting `json:"high"`
	Pods        int     `json:"pods"`
	WallSeconds float64 `json:"wallSeconds"`
}

// waiting is how long the pods of one priority waited, in seconds.
type waiting struct {
	Median float64 `json:"medianSeconds"`
	P95    float64 `json:"p95Seconds"`
	Max    float64 `json:"maxSeconds"`
}

func waitingOf(sorted []float64) waiting {
	return waiting{percentile(sorted, 50), percentile(sorted, 95), percentile(sorted, 100)}
}

func (w waiting) String() string {
	text := func(seconds float64) string {
		return time.Duration(seconds * float64(time.Second)).Round(time.Second).String()
	}
	return text(w.Median) + "\t" + text(w.P95) + "\t" + text(w.Max)
}

func run(nodes int, length time.Duration, seed uint64, rates []string, file string) error {
	session, err := rig.Begin()
	if err != nil {
		return err
	}
	var all []outcome
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "load\tpoints an hour\tlow p50\tp95\tmax\thigh p50\tp95\tmax\tpods\treplayed in")
	for _, f := range families {
		jobs := f.jobs(nodes*gpusPerNode, length, seed)
		for _, rate := range rates {
			c, err := load(rate)
			if err != nil {
				return err
			}
			r, err := replay.Run(context.Background(), c, replay.NewInput(f.name, cluster(nodes), jobs),
				replay.Options{Mode: replayed.VirtualTime, Seed: seed})
			if err != nil {
				return fmt.Errorf("replaying %s with %s points an hour: %w", f.name, rate, err)
			}
			low, high, err := waits(jobs, r)
			if err != nil {
				return fmt.Errorf("replaying %s with %s points an hour: %w", f.name, rate, err)
			}
			o := outcome{f.name, rate, waitingOf(low), waitingOf(high), r.Pods, r.Timing.Wall}
			all = append(all, o)
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%d\t%.0fs\n", o.Load, o.PerHour, o.Low, o.High, o.Pods, o.WallSeconds)
			if err := table.Flush(); err != nil {
				return fmt.Errorf("printing the table: %w", err)
			}
		}
	}
	return session.End(os.Stdout, file, all)
}

// load returns the configuration with that ageing.
func load(rate string) (*schedulerconfig.Configuration, error) {
	args := ""
	if rate != "0" {
		args = "sla: {ageing: {priorityPerHour: " + rate + ", upToPriority: 1000}}"
	}
	folder, err := os.MkdirTemp("", "ageing")
	if err != nil {
		return nil, fmt.Errorf("making a folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	file := filepath.Join(folder, "config.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, configuration, args), 0o600); err != nil {
		return nil, fmt.Errorf("writing a scheduler configuration: %w", err)
	}
	return schedulerconfig.Load(file)
}

// jobs draws two Poisson streams of pods of one GPU whose run times are exponential.
func (f *family) jobs(gpus int, length time.Duration, seed uint64) []trace.Job {
	random := rand.New(rand.NewPCG(seed, 1))
	var jobs []trace.Job
	for _, stream := range []struct {
		name     string
		load     float64
		priority int32
	}{{"low", f.low, lowPriority}, {"high", f.high, highPriority}} {
		pause := float64(meanRun) / (stream.load * float64(gpus))
		for at := random.ExpFloat64() * pause; at < float64(length); at += random.ExpFloat64() * pause {
			run := max(time.Duration(random.ExpFloat64()*float64(meanRun)), time.Second)
			jobs = append(jobs, trace.Job{Name: fmt.Sprintf("%s-%d", stream.name, len(jobs)),
				Arrival:  time.Duration(at).Truncate(time.Millisecond),
				Duration: run.Truncate(time.Millisecond), Pods: 1, CPUMilli: 4000, MemoryMiB: 16384, GPUs: 1, GPUMilli: 1000,
				Priority: stream.priority})
		}
	}
	slices.SortStableFunc(jobs, func(a, b trace.Job) int { return int(a.Arrival - b.Arrival) })
	return jobs
}

func cluster(nodes int) []trace.Node {
	var out []trace.Node
	for i := range nodes {
		out = append(out, trace.Node{Name: fmt.Sprintf("node-%03d", i), CPUMilli: 96_000, MemoryMiB: 786_432,
			GPUs: gpusPerNode, Model: "NVIDIA-A100-SXM4-80GB"})
	}
	return out
}

// waits returns how long the pods of each priority waited, in seconds. All have started: the replay goes on until then.
func waits(jobs []trace.Job, r *replayed.Result) (low, high []float64, err error) {
	for i := range jobs {
		start, started := r.Starts[jobs[i].Name]
		if !started {
			return nil, nil, fmt.Errorf("job %s has not started", jobs[i].Name)
		}
		if wait := start - jobs[i].Arrival.Seconds(); jobs[i].Priority == lowPriority {
			low = append(low, wait)
		} else {
			high = append(high, wait)
		}
	}
	slices.Sort(low)
	slices.Sort(high)
	return low, high, nil
}

// percentile is the nearest-rank percentile of sorted seconds, 0 of none.
func percentile(sorted []float64, percent int) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[max((len(sorted)*percent+99)/100-1, 0)]
}
