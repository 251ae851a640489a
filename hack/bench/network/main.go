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
	"slices"
	"strconv"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"

	"berth.dev/berth/hack/bench/replays"
	"berth.dev/berth/hack/bench/rig"
	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/pkg/plugins/networktopology"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/ranks"
	"berth.dev/berth/pkg/replay"
	"berth.dev/berth/pkg/replay/replayed"
	"berth.dev/berth/pkg/schedulerconfig"
	"berth.dev/berth/pkg/topology"
	"berth.dev/berth/pkg/trace"
)

var (
	nodes   = rig.Count("nodes", 512, "number of nodes, of 8 GPUs each, 16 in a rack, 8 racks below a spine, 2 zones")
	file    = flag.String("config", "manifests/base/scheduler-config.yaml", "scheduler configuration")
	profile = flag.String("profile", "berth-scheduler", "profile to measure")
	chosen  = rig.Some("workload", workloads, "what to measure")
	seeds   = rig.Count("seeds", 3, "how many workloads are drawn")
	weights = rig.List("weights", []int{0, 10}, "weights of the plugin to compare; 0 is without it", strconv.Atoi)
	load    = flag.Int("load", 80, "GPUs asked for in the mean, in percent")
)

func main() {
	rig.Main("measures by replay what NetworkTopology gains and what it costs.", bench)
}

// outcome is what one replay shows.
type outcome struct {
	Workload            string  `json:"workload" row:"workload"`
	Weight              int32   `json:"weight" row:"weight"`
	Seed                int     `json:"seed"`
	Microseconds        float64 `json:"microseconds" column:"us for 1 MiB,\nmean|%.1f"`
	SameRackPercent     float64 `json:"sameRackPercent" column:"same rack|%.0f%%"`
	RingHops            float64 `json:"ringHops" column:"hops between\nracks|%.2f"`
	RingsBestPercent    float64 `json:"ringsBestPercent" column:"fewest|%.1f%%"`
	AllocatedPercent    float64 `json:"allocatedPercent" column:"allocated|%.2f%%"`
	AllocatedAtEnd      float64 `json:"allocatedPercentAtEnd" column:"at the end|%.2f%%"`
	NodesInUse          float64 `json:"nodesInUse" column:"nodes used|%.0f"`
	Pending             int     `json:"pending" column:"pending|%.0f"`
	GangWaitMeanSeconds float64 `json:"gangWaitMeanSeconds" column:"gang wait, s|%.1f"`
	CPUMillisPerPod     float64 `json:"cpuMillisPerPod" column:"CPU ms/pod|%.2f"`
}

func bench(ctx context.Context, out io.Writer) (any, error) {
	metrics.Register()
	var results []outcome
	for _, w := range *chosen {
		for _, weight := range *weights {
			for seed := range *seeds {
				rig.Progress("%s, weight %d, workload %d of %d", w.name, weight, seed+1, *seeds)
				o, err := measure(ctx, w, int32(weight), uint64(seed))
				if err != nil {
					return results, fmt.Errorf("%s, weight %d: %w", w.name, weight, err)
				}
				results = append(results, o)
			}
		}
	}
	return results, rig.Table(out, results)
}

// pair is two pods that talk to each other.
type pair struct{ a, b string }

// ring is the pods of a gang in the order of their ranks.
type ring []string

// hops returns how often the rings that are placed whole go from one rack to another in the mean, and what percentage
// of them does so at each level of the network as seldom as the nodes allow.
func hops(rings []ring, at map[string]site, placements map[string]string) (mean, best float64) {
	placed, fewest, sum := 0, 0, 0
	for _, pods := range rings {
		var members []ranks.Member
		for rank, pod := range pods {
			if at, ok := at[placements[pod]]; ok {
				members = append(members, ranks.Member{Rank: rank, Path: append(slices.Clone(at.path), placements[pod])})
			}
		}
		if len(members) < len(pods) {
			continue
		}
		placed++
		crossings := ranks.Crossings(members)
		sum += crossings[len(crossings)-2]
		if slices.Equal(crossings, ranks.Fewest(members)) {
			fewest++
		}
	}
	if placed == 0 {
		return 0, 0
	}
	return float64(sum) / float64(placed), 100 * float64(fewest) / float64(placed)
}

func measure(ctx context.Context, w workload, weight int32, seed uint64) (outcome, error) {
	c, err := schedulerconfig.Load(*file)
	if err != nil {
		return outcome{}, err
	}
	objects, err := fleet(c, *nodes)
	if err != nil {
		return outcome{}, err
	}
	in, pairs, rings := w.make(rand.New(rand.NewPCG(seed, 3)), objects)
	replays.SetWeight(c, networktopology.Name, weight)
	result, err := replay.Run(ctx, c, in, replay.Options{Mode: replayed.VirtualTime, Seed: seed, Profile: *profile})
	if err != nil {
		return outcome{}, err
	}
	places := placesOf(in.Objects)
	d := topology.Distances{4, 5, 25, 45, 70, 150, 2_200, 32_000}
	sum, counted, racked := 0.0, 0.0, 0.0
	for _, p := range pairs {
		a, b := places[result.Placements[p.a]].place, places[result.Placements[p.b]].place
		if a == nil || b == nil {
			continue
		}
		between := d.Between(a, b)
		sum += float64(between)
		if counted++; between <= d[2] {
			racked++
		}
	}
	crossed, best := hops(rings, places, result.Placements)
	return outcome{w.name, weight, int(seed), sum / max(counted, 1), 100 * racked / max(counted, 1), crossed, best,
		result.AllocatedPercent, result.Samples[len(result.Samples)-1].AllocatedPercent, result.NodesInUse, result.Pending,
		result.GangWait.Mean,
		1000 * result.Timing.CPU / float64(result.Pods)}, nil
}

// site is where a node is in the network. The path names its domains, the widest first.
type site struct {
	place *topology.Place
	path  []string
}

func placesOf(objects []runtime.Object) map[string]site {
	var levels podview.NetworkLevels
	for _, l := range config.DefaultNetworkLevels() {
		levels = append(levels, podview.NetworkLevel{Labels: l.Labels})
	}
	places := map[string]site{}
	for _, obj := range objects {
		if node, ok := obj.(*v1.Node); ok {
			path := levels.Path(node)
			places[node.Name] = site{topology.NewPlace(node.Name, path), path}
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
