// Command network measures what NetworkTopology gains and what it costs: the real scheduler replays a cluster of racks,
// spines and zones with and without the plugin, and the distances between pods that talk to each other are compared.
//
//	go run ./hack/bench/network
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/metrics"

	"berth.dev/berth/hack/bench/rig"
	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/pkg/plugins/networktopology"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/replay"
	"berth.dev/berth/pkg/replay/replayed"
	"berth.dev/berth/pkg/schedulerconfig"
	"berth.dev/berth/pkg/topology"
	"berth.dev/berth/pkg/trace"
)

var (
	nodes   = flag.Int("nodes", 512, "number of nodes, of 8 GPUs each, 16 in a rack, 8 racks below a spine, 2 zones")
	file    = flag.String("config", "manifests/base/scheduler-config.yaml", "scheduler configuration")
	profile = flag.String("profile", "berth-scheduler", "profile to measure")
	only    = flag.String("workload", "", "gangs, services or conflict; empty: all")
	seeds   = flag.Int("seeds", 3, "how many workloads are drawn")
	weights = flag.String("weights", "0,10", "weights of the plugin to compare; 0 is without it")
	load    = flag.Int("load", 80, "GPUs asked for in the mean, in percent")
	keep    = flag.String("json", "", "write the figures as JSON to this file")
)

func main() {
	flag.Parse()
	metrics.Register()
	if err := bench(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "network:", err)
		os.Exit(1)
	}
}

// variant is a weight of the plugin; 0 is without it.
type variant struct{ weight int32 }

func (v variant) String() string {
	if v.weight == 0 {
		return "without"
	}
	return fmt.Sprintf("weight %d", v.weight)
}

// outcome is what one replay shows.
type outcome struct {
	Workload            string  `json:"workload"`
	Weight              int32   `json:"weight"`
	Seed                int     `json:"seed"`
	Microseconds        float64 `json:"microseconds"`
	SameRackPercent     float64 `json:"sameRackPercent"`
	AllocatedPercent    float64 `json:"allocatedPercent"`
	AllocatedAtEnd      float64 `json:"allocatedPercentAtEnd"`
	NodesInUse          float64 `json:"nodesInUse"`
	Pending             int     `json:"pending"`
	GangWaitMeanSeconds float64 `json:"gangWaitMeanSeconds"`
	CPUMillisPerPod     float64 `json:"cpuMillisPerPod"`
}

func bench(out io.Writer) error {
	session, err := rig.Begin()
	if err != nil {
		return err
	}
	c, err := schedulerconfig.Load(*file)
	if err != nil {
		return err
	}
	var results []outcome
	for _, workload := range []struct {
		name string
		make func(*rand.Rand, []runtime.Object) (replay.Input, []pair)
	}{{"gangs", gangs}, {"services", services}, {"conflict", conflict}} {
		if *only != "" && *only != workload.name {
			continue
		}
		fmt.Fprintf(out, "%s\n%-10s %22s %12s %14s %14s %12s %12s %14s %12s\n", workload.name, "", "us for 1 MiB, mean",
			"same rack", "allocated",
			"at the end", "nodes used", "pending", "gang wait, s", "CPU ms/pod")
		for _, text := range strings.Split(*weights, ",") {
			weight, err := strconv.ParseInt(text, 10, 32)
			if err != nil {
				return fmt.Errorf("reading weights: %w", err)
			}
			v := variant{int32(weight)}
			var all []outcome
			for seed := range *seeds {
				random := rand.New(rand.NewPCG(uint64(seed), 3))
				objects, err := fleet(c, *nodes)
				if err != nil {
					return err
				}
				in, pairs := workload.make(random, objects)
				f, err := measure(v, in, pairs, uint64(seed))
				if err != nil {
					return fmt.Errorf("%s, %s: %w", workload.name, v, err)
				}
				all = append(all, outcome{workload.name, v.weight, seed, f.microseconds, f.rackPercent, f.AllocatedPercent,
					f.Samples[len(f.Samples)-1].AllocatedPercent, f.NodesInUse, f.Pending, f.GangWait.Mean,
					1000 * f.Timing.CPU / float64(f.Pods)})
			}
			results = append(results, all...)
			column := func(format string, figure func(outcome) float64) string {
				values := make([]string, len(all))
				for i, f := range all {
					values[i] = fmt.Sprintf(format, figure(f))
				}
				return strings.Join(values, " ")
			}
			fmt.Fprintf(out, "%-10s %22s %12s %14s %14s %12s %12s %14s %12s\n", v,
				column("%.1f", func(o outcome) float64 { return o.Microseconds }),
				column("%.0f%%", func(o outcome) float64 { return o.SameRackPercent }),
				column("%.2f%%", func(o outcome) float64 { return o.AllocatedPercent }),
				column("%.2f%%", func(o outcome) float64 { return o.AllocatedAtEnd }),
				column("%.0f", func(o outcome) float64 { return o.NodesInUse }),
				column("%.0f", func(o outcome) float64 { return float64(o.Pending) }),
				column("%.1f", func(o outcome) float64 { return o.GangWaitMeanSeconds }),
				column("%.2f", func(o outcome) float64 { return o.CPUMillisPerPod }))
		}
	}
	return session.End(out, *keep, results)
}

// figures are those of one replay.
type figures struct {
	*replayed.Result
	// microseconds is the mean distance between pods that talk to each other, rackPercent how many of these pairs are
	// in one rack.
	microseconds, rackPercent float64
}

// pair is two pods that talk to each other.
type pair struct{ a, b string }

func measure(v variant, in replay.Input, pairs []pair, seed uint64) (figures, error) {
	c, err := schedulerconfig.Load(*file)
	if err != nil {
		return figures{}, err
	}
	for i := range c.Component.Profiles {
		set := &c.Component.Profiles[i].Plugins.MultiPoint
		at := slices.IndexFunc(set.Enabled, func(p schedulerapi.Plugin) bool { return p.Name == networktopology.Name })
		switch {
		case at < 0:
		case v.weight == 0:
			set.Enabled = slices.Delete(set.Enabled, at, at+1)
		default:
			set.Enabled[at].Weight = v.weight
		}
	}
	result, err := replay.Run(context.Background(), c, in,
		replay.Options{Mode: replayed.VirtualTime, Seed: seed, Profile: *profile})
	if err != nil {
		return figures{}, err
	}
	places := placesOf(in.Objects)
	d := topology.Distances{4, 5, 25, 45, 70, 150, 2_200, 32_000}
	f := figures{Result: result}
	counted, racked := 0.0, 0.0
	for _, p := range pairs {
		a, b := places[result.Placements[p.a]], places[result.Placements[p.b]]
		if a == nil || b == nil {
			continue
		}
		between := d.Between(a, b)
		f.microseconds += float64(between)
		if counted++; between <= d[2] {
			racked++
		}
	}
	f.microseconds /= max(counted, 1)
	f.rackPercent = 100 * racked / max(counted, 1)
	return f, nil
}

func placesOf(objects []runtime.Object) map[string]*topology.Place {
	var levels podview.NetworkLevels
	for _, l := range config.DefaultNetworkLevels() {
		levels = append(levels, podview.NetworkLevel{Labels: l.Labels})
	}
	places := map[string]*topology.Place{}
	for _, obj := range objects {
		if node, ok := obj.(*v1.Node); ok {
			places[node.Name] = topology.NewPlace(node.Name, levels.Path(node))
		}
	}
	return places
}

// fleet is a cluster in which the racks of a spine, and the spines of a zone, are next to each other.
func fleet(c *schedulerconfig.Configuration, n int) ([]runtime.Object, error) {
	list := make([]trace.Node, n)
	for i := range list {
		list[i] = trace.Node{Name: fmt.Sprintf("n%04d", i), CPUMilli: 96_000, MemoryMiB: 1 << 20, GPUs: 8,
			Model: "NVIDIA-H100-80GB-HBM3",
			Rack:  fmt.Sprintf("rack-%d", i/16), Zone: fmt.Sprintf("zone-%d", i*2/n), MicroDollarsPerHour: 30_000_000}
	}
	in := replay.NewInput("", list, nil)
	objects, err := in.Cluster(c, "")
	if err != nil {
		return nil, err
	}
	for i, obj := range objects {
		labels := obj.(*v1.Node).Labels
		labels["network.topology.nvidia.com/spine"], labels[v1.LabelTopologyRegion] = fmt.Sprintf("spine-%d", i/128),
			"region-0"
	}
	return objects, nil
}
