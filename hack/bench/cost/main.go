// Command cost measures what the nodes in use cost under different scheduler configurations when the openb trace has
// filled a quarter, a half and three quarters of the cluster, or work of several kinds as much of made-up clusters with
// prices (-families). The pods arrive in an order shuffled by a seed, none ends.
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
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"

	"k8s.io/klog/v2"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"berth.dev/berth/hack/bench/rig"
	"berth.dev/berth/pkg/price"
	"berth.dev/berth/pkg/replay"
	"berth.dev/berth/pkg/replay/replayed"
	"berth.dev/berth/pkg/schedulerconfig"
	"berth.dev/berth/pkg/trace"
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

func main() {
	data := flag.String("data", "../shared/data/openb", "folder of the openb trace")
	variant := flag.String("variant", "default", "variant of the pod list")
	config := flag.String("config", "manifests/base/scheduler-config.yaml", "scheduler configuration with the profile")
	profile := flag.String("profile", "cost-optimized-scheduler", "profile to measure beside stock")
	contenders := flag.String("contenders", "profile,stock,most-allocated",
		"what to measure: the profile, the stock scheduler, the stock scheduler with MostAllocated")
	weights := flag.String("weights", "",
		"weights of GPUAware, comma-separated, to try the profile with instead of its own")
	priced := flag.Bool("families", false, "measure made-up clusters with prices and work for them instead of the trace")
	seeds := flag.Uint64("seeds", 1, "orders of arrival to average over")
	file := flag.String("json", "", "write the figures as JSON to this file")
	flag.Parse()
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	list, err := makeContenders(*config, *profile, strings.Split(*contenders, ","), *weights)
	if err == nil {
		err = run(os.Stdout, *data, *variant, *priced, list, *seeds, *file)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "cost:", err)
		os.Exit(1)
	}
}

// contender is a configuration that is measured.
type contender struct {
	name, profile string
	config        *schedulerconfig.Configuration
}

// outcome is the mean of the orders of arrival of one contender at one load.
type outcome struct {
	Family      string  `json:"family"`
	Contender   string  `json:"contender"`
	LoadPercent int64   `json:"loadPercent"`
	Dollars     float64 `json:"dollarsPerHour"`
	Bound       float64 `json:"boundDollarsPerHour"`
	Pending     float64 `json:"pending"`
	NodesInUse  float64 `json:"nodesInUse"`
}

func run(out io.Writer, data, variant string, priced bool, contenders []contender, seeds uint64, file string) error {
	session, err := rig.Begin()
	if err != nil {
		return err
	}
	all := families()
	if !priced {
		openb, err := readOpenb(data, variant)
		if errors.Is(err, fs.ErrNotExist) {
			_, err := fmt.Fprintf(out, "skipped: there is no openb trace in %s\n", data)
			return err
		}
		if err != nil {
			return err
		}
		all = []family{openb}
	}
	var results []outcome
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for i := range all {
		fmt.Fprintf(table, "dollars an hour, %s\tload\tdollars\tbound\t× bound\tpending\tnodes\n", all[i].name)
		for _, c := range contenders {
			for _, load := range loads {
				o, err := measure(c, &all[i], load, seeds)
				if err != nil {
					return err
				}
				fmt.Fprintf(table, "%s\t%d%%\t%.0f\t%.0f\t%.3f\t%.0f\t%.0f\n", o.Contender, o.LoadPercent, o.Dollars, o.Bound,
					o.Dollars/o.Bound,
					o.Pending, o.NodesInUse)
				results = append(results, o)
			}
		}
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("printing the table: %w", err)
	}
	return session.End(out, file, results)
}

// readOpenb reads a variant of the trace and gives its nodes the prices above.
func readOpenb(data, variant string) (family, error) {
	f := family{name: "openb " + variant}
	var err error
	if f.nodes, err = read(filepath.Join(data, "openb_node_list_gpu_node.csv"), trace.ReadNodes); err != nil {
		return f, err
	}
	if f.jobs, err = read(filepath.Join(data, "openb_pod_list_"+variant+".csv"), trace.ReadJobs); err != nil {
		return f, err
	}
	for i := range f.nodes {
		n := &f.nodes[i]
		amount, err := rates.Price(n.Name, n.Model,
			price.Capacity{MilliCPU: n.CPUMilli, MemoryMiB: n.MemoryMiB, MilliGPU: 1000 * int64(n.GPUs)})
		if err != nil {
			return f, err
		}
		n.MicroDollarsPerHour = int64(amount)
	}
	return f, nil
}

func makeContenders(path, profile string, names []string, weights string) ([]contender, error) {
	var list []contender
	for _, name := range names {
		file := schedulerconfig.Stock
		if name == "profile" {
			if weights != "" {
				varied, err := vary(path, profile, strings.Split(weights, ","))
				if err != nil {
					return nil, err
				}
				list = append(list, varied...)
				continue
			}
			file = path
		}
		c, err := schedulerconfig.Load(file)
		if err != nil {
			return nil, err
		}
		scheduler := c.Component.Profiles[0].SchedulerName
		switch name {
		case "profile":
			name, scheduler = profile, profile
		case "stock":
		case "most-allocated":
			for _, p := range c.Component.Profiles[0].PluginConfig {
				if args, ok := p.Args.(*schedulerapi.NodeResourcesFitArgs); ok {
					args.ScoringStrategy.Type = schedulerapi.MostAllocated
				}
			}
		default:
			return nil, fmt.Errorf("contender %q is unknown: want profile, stock or most-allocated", name)
		}
		list = append(list, contender{name, scheduler, c})
	}
	return list, nil
}

// vary returns the profile with each of the weights for GPUAware.
func vary(path, profile string, weights []string) ([]contender, error) {
	var list []contender
	for _, text := range weights {
		weight, err := strconv.ParseInt(text, 10, 32)
		if err != nil || weight < 1 {
			return nil, fmt.Errorf("weight %q of GPUAware: want a whole number of at least 1", text)
		}
		c, err := schedulerconfig.Load(path)
		if err != nil {
			return nil, err
		}
		for i := range c.Component.Profiles {
			enabled := c.Component.Profiles[i].Plugins.MultiPoint.Enabled
			for n := range enabled {
				if enabled[n].Name == "GPUAware" {
					enabled[n].Weight = int32(weight)
				}
			}
		}
		list = append(list, contender{fmt.Sprintf("%s, GPUAware %d", profile, weight), profile, c})
	}
	return list, nil
}

func measure(c contender, f *family, load int64, seeds uint64) (outcome, error) {
	fleet := map[rig.Shape]int{}
	byName := map[string]trace.Job{}
	for _, n := range f.nodes {
		fleet[rig.Shape{
			Offers:  rig.Amounts{float64(n.CPUMilli), float64(n.MemoryMiB), float64(1000 * n.GPUs)},
			Dollars: float64(n.MicroDollarsPerHour) / 1e6,
		}]++
	}
	for _, j := range f.jobs {
		byName[j.Name] = j
	}
	o := outcome{Family: f.name, Contender: c.name, LoadPercent: load / 10}
	for seed := range seeds {
		result, err := replay.Run(context.Background(), c.config, replay.NewInput(f.name, f.nodes, f.jobs),
			replay.Options{Mode: replayed.ArrivalOrder, Seed: seed, Load: load, Profile: c.profile})
		if err != nil {
			return outcome{}, err
		}
		var placed rig.Amounts
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
		o.Dollars += float64(result.MicroDollarsPerHour) / 1e6 / float64(seeds)
		o.Bound += rig.FractionalBound(fleet, placed) / float64(seeds)
		o.Pending += float64(result.Pending) / float64(seeds)
		o.NodesInUse += result.NodesInUse / float64(seeds)
	}
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

func read[T any](path string, parse func(io.Reader, string) (T, error)) (value T, err error) {
	f, err := os.Open(path)
	if err != nil {
		return value, err
	}
	defer f.Close()
	return parse(f, path)
}
