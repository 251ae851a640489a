package plugins_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"
	upstream "k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/test/harness/objects"
)

// phases runs those of one plugin for one pod, from PreFilter to Score. last is a node on which the pod fits.
func phases(ctx context.Context, b *testing.B, plugin fwk.PreFilterPlugin, infos []fwk.NodeInfo, pod *v1.Pod) (
	state fwk.CycleState, last string) {
	b.Helper()
	state = upstream.NewCycleState()
	_, status := plugin.PreFilter(ctx, state, pod, infos)
	if !status.IsSuccess() && !status.IsSkip() {
		b.Fatal(status)
	}
	passed := infos
	if filter, ok := plugin.(fwk.FilterPlugin); ok && !status.IsSkip() {
		passed = passed[:0:0]
		for _, info := range infos {
			if filter.Filter(ctx, state, pod, info).IsSuccess() {
				passed = append(passed, info)
			}
		}
	}
	if len(passed) == 0 {
		b.Fatal("no node fits")
	}
	last = passed[len(passed)-1].Node().Name
	if scorer, ok := plugin.(interface {
		fwk.PreScorePlugin
		fwk.ScorePlugin
	}); ok && !scorer.PreScore(ctx, state, pod, passed).IsSkip() {
		for _, info := range passed {
			if _, status := scorer.Score(ctx, state, pod, info); !status.IsSuccess() {
				b.Fatal(status)
			}
		}
	}
	return state, last
}

// measure reports the time of the processor that a step takes.
func measure(b *testing.B, step func(i int)) {
	b.Helper()
	for i := range 3 {
		step(i)
	}
	b.ReportAllocs()
	used := processorTime(b)
	for i := 3; b.Loop(); i++ {
		step(i)
	}
	b.ReportMetric(float64(used().Nanoseconds())/1000/float64(b.N), "cpu-µs/op")
}

// BenchmarkAddressPhases is what IPReservation alone adds to a scheduling cycle that looks at all of 5,000 nodes in 50
// racks, from PreFilter to Reserve and its end, by the number of reservations that exist: for pods that get no address,
// for those that ask for one of a pool with a subnet in each rack, and for those that a reservation is kept for.
//
//	go test ./test/plugins -run xxx -bench AddressPhases
func BenchmarkAddressPhases(b *testing.B) {
	const nodes, racks = 5000, 50
	var subnets []string
	for rack := range racks {
		subnets = append(subnets, fmt.Sprintf("{domain: {key: rack, value: r%d}, ranges: [10.%d.0.0/16]}", rack, rack))
	}
	for _, reservations := range []int{0, 100, 10_000} {
		texts := []string{"IPPool racks {subnets: [" + strings.Join(subnets, ", ") + "]}"}
		for i := range reservations {
			texts = append(texts, fmt.Sprintf("IPReservation ip-10-%[1]d-%[2]d-%[3]d {address: 10.%[1]d.%[2]d.%[3]d, "+
				"pool: racks, releasePolicy: Retain, domain: {key: rack, value: r%[1]d}, "+
				"pod: {namespace: default, name: owner-%[4]d}}", i%racks, i/racks/256, i/racks%256+1, i))
		}
		pods := map[string]func(int) *v1.Pod{
			"indifferent": func(i int) *v1.Pod { return asking(fmt.Sprint("pod-", i), "") },
			"asks":        func(i int) *v1.Pod { return asking(fmt.Sprint("pod-", i), "racks") },
		}
		if reservations > 0 {
			pods["owner"] = func(i int) *v1.Pod { return asking(fmt.Sprint("owner-", i%reservations), "") }
		}
		for name, pod := range pods {
			b.Run(fmt.Sprintf("reservations=%d/pod=%s", reservations, name), func(b *testing.B) {
				setup := addressSetup(b, texts...)
				for i := range nodes {
					setup.Objects = append(setup.Objects, racked(fmt.Sprintf("n%04d", i), fmt.Sprint("r", i%racks)))
				}
				c := startAddressed(b, setup)
				infos := c.Infos(b)
				measure(b, func(i int) {
					p := pod(i)
					state, last := phases(b.Context(), b, c.plugin, infos, p)
					if status := c.plugin.Reserve(b.Context(), state, p, last); !status.IsSuccess() {
						b.Fatal(status)
					}
					c.plugin.Unreserve(b.Context(), state, p, last)
				})
			})
		}
	}
}

// BenchmarkTopologyPhases is what NetworkTopology takes of one cycle on 5,000 nodes, each scored once by one goroutine,
// by how many pods the pod talks to.
//
//	go test ./test/plugins -run xxx -bench TopologyPhases -benchtime 200x
func BenchmarkTopologyPhases(b *testing.B) {
	const size, group = 5000, "scheduling.x-k8s.io/pod-group"
	var nodes []*v1.Node
	for i := range size {
		nodes = append(nodes, objects.Labelled(objects.Node(fmt.Sprintf("n%05d", i), "cpu", "64", "memory", "256Gi"),
			v1.LabelTopologyRegion, "r", v1.LabelTopologyZone, fmt.Sprintf("z%d", i*3/size),
			"network.topology.nvidia.com/spine", fmt.Sprintf("s%d", i/512), "topology.kubernetes.io/rack",
			fmt.Sprintf("r%d", i/32)))
	}
	for _, peers := range []int{0, 10, 1000} {
		b.Run(fmt.Sprintf("peers=%d", peers), func(b *testing.B) {
			var pods []*v1.Pod
			for i := range peers {
				pods = append(pods, talker(fmt.Sprintf("q%d", i), nodes[i*size/peers].Name).Label(group, "g").Obj())
			}
			r, p := newRig(b, nodes, pods...), talker("p", "")
			if peers > 0 {
				p.Label(group, "g")
			}
			plugin, infos, pod := topologyOf(b, r), r.infos(b), p.Obj()
			measure(b, func(int) { phases(r.ctx, b, plugin, infos, pod) })
		})
	}
}

// BenchmarkPolicyPhases is what PlacementPolicy alone adds to a scheduling cycle that looks at all of 5,000 nodes, with
// policies of a license, a dataset and a rule by an expression each, for pods that no rule concerns and for pods that
// one policy concerns. Every pod is new.
//
//	go test ./test/plugins -run xxx -bench PolicyPhases
func BenchmarkPolicyPhases(b *testing.B) {
	for _, policies := range []int{0, 10, 100} {
		all, policyOf := []runtime.Object{objects.Namespace("default")}, specs{}
		for i := range policies {
			policyOf[fmt.Sprint("policy-", i)] = fmt.Sprintf(`{licenses: [{name: tool-%[1]d, count: 1000000}],
datasets: [{name: data-%[1]d, nodes: {selector: {matchLabels: {zone: z1}}}}],
compliance: {rules: [{name: zone, pods: {expression: "pod.labels[?'tenant'].orValue('') == 'tenant-%[1]d'"}, nodes: {expression: "node.labels[?'zone'].orValue('') != 'z2'"}}]}}`, i)
		}
		for i := range 5000 {
			name := fmt.Sprintf("n%04d", i)
			all = append(all, pooled(name, "zone", fmt.Sprint("z", i%3), "kubernetes.io/hostname", name))
		}
		for _, concerned := range []bool{false, true}[:min(policies+1, 2)] {
			b.Run(fmt.Sprintf("policies=%d/concerned=%t", policies, concerned), func(b *testing.B) {
				g := govern(b, policyOf, all...)
				infos := g.Infos(b)
				measure(b, func(i int) {
					p := objects.Pod(fmt.Sprint("p", i)).Label("index", fmt.Sprint(i))
					if concerned {
						p = p.Label("tenant", "tenant-1").Annotation("berth.dev/licenses", "tool-1").Annotation("berth.dev/datasets",
							"data-1")
					}
					phases(b.Context(), b, g.plugin, infos, p.Obj())
				})
			})
		}
	}
}
