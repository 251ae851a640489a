package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"berth.dev/berth/hack/bench/rig"
	"berth.dev/berth/pkg/cost/price"
	"berth.dev/berth/pkg/lab/replay"
	"berth.dev/berth/pkg/lab/replay/replayed"
	"berth.dev/berth/pkg/lab/trace"
	"berth.dev/berth/pkg/schedulerconfig"
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

// contender is a configuration that is measured.
type contender struct {
	name, profile string
	config        *schedulerconfig.Configuration
}

// costRow is the mean of the orders of arrival of one contender at one load.
type costRow struct {
	Contender   string  `json:"contender" row:"dollars an hour"`
	LoadPercent int64   `json:"loadPercent" row:"load, %"`
	Dollars     float64 `json:"dollarsPerHour" column:"dollars|%.0f"`
	Bound       float64 `json:"boundDollarsPerHour" column:"bound|%.0f"`
	OverBound   float64 `json:"overBound" column:"× bound|%.3f"`
	Pending     float64 `json:"pending" column:"pending|%.0f"`
	NodesInUse  float64 `json:"nodesInUse" column:"nodes|%.0f"`
}

// cost measures what the nodes in use cost under different configurations when the openb trace has filled a quarter, a
// half and three quarters of the cluster. The pods arrive in an order shuffled by a seed, none ends.
//
// The trace is Alibaba's gpu-v2023 (Weng et al., USENIX ATC 2023); prices are the rates above. A scheduler without a
// plugin that shares GPUs gives every pod whole ones.
func cost(ctx context.Context, out io.Writer, o *options) (any, error) {
	list, err := contenders(o.config)
	if err != nil {
		return nil, err
	}
	in, err := readOpenb(o.trace)
	if err != nil {
		return nil, err
	}
	var rows []costRow
	for _, c := range list {
		for _, load := range loads {
			rig.Progress("%s at %d%%", c.name, load/10)
			row, err := c.cost(ctx, in, load, cmp.Or(o.seeds, 1))
			if err != nil {
				return rows, err
			}
			rows = append(rows, row)
		}
	}
	return rows, rig.Table(out, rows)
}

// readOpenb reads the trace and gives its nodes the prices above.
func readOpenb(folder string) (replay.Input, error) {
	in, err := replay.Files{Nodes: filepath.Join(folder, "openb_node_list_gpu_node.csv"),
		Jobs: filepath.Join(folder, "openb_pod_list_default.csv")}.Load()
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

// contenders are two profiles of the configuration, and the stock scheduler as it is and with MostAllocated.
func contenders(config string) ([]contender, error) {
	ours, err := schedulerconfig.Load(config)
	if err != nil {
		return nil, err
	}
	list := []contender{
		{"cost-optimized-scheduler", "cost-optimized-scheduler", ours}, {"berth-scheduler", "berth-scheduler", ours},
	}
	for _, name := range []string{"stock", "most-allocated"} {
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
	}
	return list, nil
}

// cost places the trace up to a load.
func (c *contender) cost(ctx context.Context, in replay.Input, load int64, seeds int) (costRow, error) {
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
	row := costRow{Contender: c.name, LoadPercent: load / 10}
	n := float64(seeds)
	for seed := range uint64(seeds) {
		result, err := replay.Run(ctx, c.config, replay.NewInput("openb", in.Nodes, in.Jobs),
			replay.Options{Mode: replayed.ArrivalOrder, Seed: seed, Load: load, Profile: c.profile})
		if err != nil {
			return costRow{}, err
		}
		var placed amounts
		for pod, node := range result.Placements {
			job, ok := jobOf(pod, byName)
			if !ok {
				return costRow{}, fmt.Errorf("placement of pod %s: the trace has no such job", pod)
			}
			if node != "" {
				placed[0] += float64(job.CPUMilli)
				placed[1] += float64(job.MemoryMiB)
				placed[2] += float64(job.MilliGPU())
			}
		}
		row.Dollars += float64(result.MicroDollarsPerHour) / 1e6 / n
		row.Bound += fractionalBound(fleet, placed) / n
		row.Pending += float64(result.Pending) / n
		row.NodesInUse += result.NodesInUse / n
	}
	row.OverBound = row.Dollars / row.Bound
	return row, nil
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
