// Command cost measures what the nodes in use cost under different scheduler configurations when the openb trace has
// filled a quarter, a half and three quarters of the cluster. The pods arrive in an order shuffled by a seed, none ends.
//
// The trace is Alibaba's gpu-v2023 (Weng et al., USENIX ATC 2023); prices are the rates below. A scheduler without a
// plugin that shares GPUs gives every pod whole ones.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"berth.dev/berth/hack/bench/rig"
	"berth.dev/berth/pkg/cost/price"
	"berth.dev/berth/pkg/lab/replay"
	"berth.dev/berth/pkg/lab/replay/replayed"
	"berth.dev/berth/pkg/lab/trace"
	"berth.dev/berth/pkg/process/schedulerconfig"
)

// rates are dollars an hour of a GPU, of a core and of a GiB, in millionths.
var rates = price.ModelRates{
	GPU: map[string]price.MicroDollars{
		"T4": 350_000, "P100": 600_000, "V100M16": 1_200_000, "V100M32": 1_500_000,
		"A10": 750_000, "G1": 500_000, "G2": 950_000, "G3": 1_800_000,
	},
	Core: 30_000, MemoryGiB: 4_000,
}

// loads are the points of measurement, in thousandths of the cluster's GPUs.
var loads = []int64{250, 500, 750}

var (
	data       = flag.String("data", "../shared/data/openb", "folder of the openb trace")
	variant    = flag.String("variant", "default", "variant of the pod list")
	config     = flag.String("config", "manifests/base/scheduler-config.yaml", "scheduler configuration with the profile")
	profile    = flag.String("profile", "cost-optimized-scheduler", "profile to measure beside stock")
	contenders = rig.List("contenders", []string{"profile", "stock", "most-allocated"},
		"what to measure: the profile, the stock scheduler, the stock scheduler with MostAllocated", rig.Text)
	seeds = rig.Count("seeds", 1, "orders of arrival to average over")
)

func main() { rig.Main("measures by replay what the nodes in use cost.", bench) }

// contender is a configuration that is measured.
type contender struct {
	name, profile string
	config        *schedulerconfig.Configuration
}

// outcome is the mean of the orders of arrival of one contender at one load.
type outcome struct {
	Contender   string  `json:"contender" row:"dollars an hour"`
	LoadPercent int64   `json:"loadPercent" row:"load, %"`
	Dollars     float64 `json:"dollarsPerHour" column:"dollars|%.0f"`
	Bound       float64 `json:"boundDollarsPerHour" column:"bound|%.0f"`
	OverBound   float64 `json:"overBound" column:"× bound|%.3f"`
	Pending     float64 `json:"pending" column:"pending|%.0f"`
	NodesInUse  float64 `json:"nodesInUse" column:"nodes|%.0f"`
}

func bench(ctx context.Context, out io.Writer) (any, error) {
	list, err := makeContenders()
	if err != nil {
		return nil, err
	}
	in, err := readOpenb()
	if errors.Is(err, fs.ErrNotExist) {
		_, err := fmt.Fprintf(out, "skipped: there is no openb trace in %s\n", *data)
		return nil, err
	}
	if err != nil {
		return nil, err
	}
	var results []outcome
	for _, c := range list {
		for _, load := range loads {
			rig.Progress("%s at %d%%", c.name, load/10)
			o, err := measure(ctx, c, in, load)
			if err != nil {
				return results, err
			}
			results = append(results, o)
		}
	}
	return results, rig.Table(out, results)
}

// readOpenb reads a variant of the trace and gives its nodes the prices above.
func readOpenb() (replay.Input, error) {
	in, err := replay.Files{Nodes: filepath.Join(*data, "openb_node_list_gpu_node.csv"),
		Jobs: filepath.Join(*data, "openb_pod_list_"+*variant+".csv")}.Load()
	if err != nil {
		return in, err
	}
	for i := range in.Nodes {
		n := &in.Nodes[i]
		amount, err := rates.Price(n.Name, n.Model,
			price.Capacity{MilliCPU: n.CPUMilli, MemoryMiB: n.MemoryMiB, MilliGPU: 1000 * int64(n.GPUs)})
		if err != nil {
			return in, err
		}
		n.MicroDollarsPerHour = int64(amount)
	}
	return in, nil
}

func makeContenders() ([]contender, error) {
	var list []contender
	for _, name := range *contenders {
		switch name {
		case "profile":
			c, err := schedulerconfig.Load(*config)
			if err != nil {
				return nil, err
			}
			list = append(list, contender{*profile, *profile, c})
		case "stock", "most-allocated":
			c, err := schedulerconfig.Load(schedulerconfig.Stock)
			if err != nil {
				return nil, err
			}
			for _, p := range c.Component.Profiles[0].PluginConfig {
				if args, ok := p.Args.(*schedulerapi.NodeResourcesFitArgs); ok && name == "most-allocated" {
					args.ScoringStrategy.Type = schedulerapi.MostAllocated
				}
			}
			list = append(list, contender{name, c.Component.Profiles[0].SchedulerName, c})
		default:
			return nil, fmt.Errorf("contender %q is unknown: want profile, stock or most-allocated", name)
		}
	}
	return list, nil
}

func measure(ctx context.Context, c contender, in replay.Input, load int64) (outcome, error) {
	fleet := map[shape]int{}
	byName := map[string]trace.Job{}
	for _, n := range in.Nodes {
		fleet[shape{
			offers:  amounts{float64(n.CPUMilli), float64(n.MemoryMiB), float64(1000 * n.GPUs)},
			dollars: float64(n.MicroDollarsPerHour) / 1e6,
		}]++
	}
	for _, j := range in.Jobs {
		byName[j.Name] = j
	}
	o := outcome{Contender: c.name, LoadPercent: load / 10}
	n := float64(*seeds)
	for seed := range uint64(*seeds) {
		result, err := replay.Run(ctx, c.config, replay.NewInput("openb "+*variant, in.Nodes, in.Jobs),
			replay.Options{Mode: replayed.ArrivalOrder, Seed: seed, Load: load, Profile: c.profile})
		if err != nil {
			return outcome{}, err
		}
		var placed amounts
		for pod, node := range result.Placements {
			job, ok := jobOf(pod, byName)
			if !ok {
				return outcome{}, fmt.Errorf("placement of pod %s: the trace has no such job", pod)
			}
			if node != "" {
				placed[0] += float64(job.CPUMilli)
				placed[1] += float64(job.MemoryMiB)
				placed[2] += float64(job.MilliGPU())
			}
		}
		o.Dollars += float64(result.MicroDollarsPerHour) / 1e6 / n
		o.Bound += fractionalBound(fleet, placed) / n
		o.Pending += float64(result.Pending) / n
		o.NodesInUse += result.NodesInUse / n
	}
	o.OverBound = o.Dollars / o.Bound
	return o, nil
}

// jobOf finds the job of a pod, "namespace/job" or "namespace/job-c1" for a copy, which a replay makes where the load
// asks for more pods than the trace has.
func jobOf(pod string, jobs map[string]trace.Job) (trace.Job, bool) {
	name := pod[strings.IndexByte(pod, '/')+1:]
	job, ok := jobs[name]
	if !ok {
		job, ok = jobs[name[:max(strings.LastIndexByte(name, '-'), 0)]]
	}
	return job, ok
}
