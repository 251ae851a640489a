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
	"time"

	"berth.dev/berth/hack/bench/replays"
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
	lowPriority  = 0
	highPriority = 1000
	meanRun      = 20 * time.Minute
)

var (
	nodes  = rig.Count("nodes", 4, "nodes of 8 GPUs")
	length = flag.Duration("length", 12*time.Hour, "virtual length of the stream")
	seed   = flag.Uint64("seed", 1, "seed of the traces")
	rates  = rig.List("rates", []string{"0", "1", "100", "500", "2000"}, "points of priority an hour to measure; 0 is no "+
		"ageing at all, and 1 hardly any, but the order of creation", rig.Text)
)

func main() { rig.Main("measures by replay how long pods wait with and without ageing.", bench) }

// outcome is what one replay shows. Waits are seconds.
type outcome struct {
	Load        string  `json:"load" row:"load"`
	PerHour     string  `json:"pointsPerHour" row:"points an hour"`
	LowMedian   float64 `json:"lowMedianSeconds" column:"low p50|duration"`
	LowP95      float64 `json:"lowP95Seconds" column:"p95|duration"`
	LowMax      float64 `json:"lowMaxSeconds" column:"max|duration"`
	HighMedian  float64 `json:"highMedianSeconds" column:"high p50|duration"`
	HighP95     float64 `json:"highP95Seconds" column:"p95|duration"`
	HighMax     float64 `json:"highMaxSeconds" column:"max|duration"`
	Pods        int     `json:"pods" column:"pods|%.0f"`
	WallSeconds float64 `json:"wallSeconds" column:"replayed in|duration"`
}

func bench(ctx context.Context, out io.Writer) (any, error) {
	var all []outcome
	for _, f := range families {
		jobs := f.jobs(*nodes*replays.GPUsPerNode, *length, *seed)
		in := replay.NewInput(f.name, replays.Cluster(*nodes), jobs)
		for _, rate := range *rates {
			rig.Progress("%s, %s points an hour", f.name, rate)
			o, err := measure(ctx, in, rate)
			if err != nil {
				return all, fmt.Errorf("replaying %s with %s points an hour: %w", f.name, rate, err)
			}
			o.Load = f.name
			all = append(all, o)
		}
	}
	return all, rig.Table(out, all)
}

// measure replays the jobs with that ageing. All start: the replay goes on until then.
func measure(ctx context.Context, in replay.Input, rate string) (outcome, error) {
	args := ""
	if rate != "0" {
		args = "sla: {ageing: {priorityPerHour: " + rate + ", upToPriority: 1000}}"
	}
	config, err := schedulerconfig.Parse("ageing", fmt.Appendf(nil, configuration, args))
	if err != nil {
		return outcome{}, err
	}
	r, err := replay.Run(ctx, config, in, replay.Options{Mode: replayed.VirtualTime, Seed: *seed})
	if err != nil {
		return outcome{}, err
	}
	waits := map[int32][]float64{}
	for i := range in.Jobs {
		job := &in.Jobs[i]
		wait, started := replays.Wait(r, job)
		if !started {
			return outcome{}, fmt.Errorf("job %s has not started", job.Name)
		}
		waits[job.Priority] = append(waits[job.Priority], wait)
	}
	low, high := waits[lowPriority], waits[highPriority]
	return outcome{"", rate, rig.Percentile(low, 50), rig.Percentile(low, 95), rig.Percentile(low, 100),
		rig.Percentile(high, 50), rig.Percentile(high, 95), rig.Percentile(high, 100), r.Pods, r.Timing.Wall}, nil
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
		for at := range replays.Arrivals(random, pause, length) {
			job := replays.Job(fmt.Sprintf("%s-%d", stream.name, len(jobs)), at, replays.RunTime(random, meanRun), 1, 1)
			job.Priority = stream.priority
			jobs = append(jobs, job)
		}
	}
	replays.SortByArrival(jobs)
	return jobs
}
