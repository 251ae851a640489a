package plugins_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	upstream "k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/pkg/lab/simulation"
)

// BenchmarkAddressPhases is what IPReservation alone adds to a scheduling cycle that looks at all of 5,000 nodes in 50
// racks, from PreFilter to Reserve and its end, by the number of reservations that exist: for pods that get no address,
// for those that ask for one of a pool with a subnet in each rack, and for those that a reservation is kept for.
//
//	go test ./test/plugins -run xxx -bench AddressPhases
func BenchmarkAddressPhases(b *testing.B) {
	for _, reservations := range []int{0, 100, 10_000} {
		for _, pod := range []string{"indifferent", "asks", "owner"} {
			if reservations > 0 || pod != "owner" {
				b.Run(fmt.Sprintf("reservations=%d/pod=%s", reservations, pod),
					func(b *testing.B) { benchmarkAddressPhases(b, reservations, pod) })
			}
		}
	}
}

func benchmarkAddressPhases(b *testing.B, reservations int, which string) {
	const nodes, racks, pods = 5000, 50, 1000
	var subnets []string
	for rack := range racks {
		subnets = append(subnets, fmt.Sprintf("{domain: {key: rack, value: r%d}, ranges: [10.%d.0.0/16]}", rack, rack))
	}
	texts := []string{"IPPool racks {subnets: [" + strings.Join(subnets, ", ") + "]}"}
	for i := range reservations {
		rack, at := i%racks, i/racks
		texts = append(texts,
			fmt.
				Sprintf("IPReservation ip-10-%[1]d-%[2]d-%[3]d {address: 10.%[1]d.%[2]d.%[3]d, "+
					"pool: racks, releasePolicy: Retain, "+
					"domain: {key: rack, value: r%[1]d}, pod: {namespace: default, name: owner-%[4]d}}", rack, at/256, at%256+1, i))
	}
	setup := addressSetup(b, texts...)
	for i := range nodes {
		setup.Objects = append(setup.Objects, racked(fmt.Sprintf("n%04d", i), fmt.Sprint("r", i%racks)))
	}
	c := startAddressed(b, setup)
	infos, tried := c.Infos(b), make([]*v1.Pod, pods)
	for i := range tried {
		switch which {
		case "asks":
			tried[i] = asking(fmt.Sprint("pod-", i), "racks")
		case "owner":
			tried[i] = asking(fmt.Sprint("owner-", i%reservations), "")
		default:
			tried[i] = asking(fmt.Sprint("pod-", i), "")
		}
	}
	b.ReportAllocs()
	used := processorTime(b)
	for i := 0; b.Loop(); i++ {
		c.cycle(b, infos, tried[i%pods])
	}
	b.ReportMetric(float64(used().Nanoseconds())/1000/float64(b.N), "cpu-µs/op")
}

// cycle runs the plugin's phases for one pod. What is promised to it is given back.
func (a *addressed) cycle(b *testing.B, infos []fwk.NodeInfo, pod *v1.Pod) {
	b.Helper()
	state, ctx, last := upstream.NewCycleState(), b.Context(), onlyNode
	_, status := a.plugin.PreFilter(ctx, state, pod, infos)
	if !status.IsSuccess() && !status.IsSkip() {
		b.Fatal(status)
	}
	if status.IsSuccess() {
		last = ""
		for _, info := range infos {
			if a.plugin.Filter(ctx, state, pod, info).IsSuccess() {
				last = info.Node().Name
			}
		}
	}
	if last == "" {
		b.Fatal("no node fits")
	}
	if status := a.plugin.Reserve(ctx, state, pod, last); !status.IsSuccess() {
		b.Fatal(status)
	}
	a.plugin.Unreserve(ctx, state, pod, last)
}

// BenchmarkAddressRelease is one look at 10,000 reservations for those that may be released, which pods that end bring
// about at most once a second, and the release of one.
//
//	go test ./test/plugins -run xxx -bench AddressRelease -benchtime 20x
func BenchmarkAddressRelease(b *testing.B) {
	const reservations = 10_000
	err := simulation.Virtual(time.Now(), func() error {
		setup := addressSetup(b)
		for i := range reservations {
			a := fmt.Sprintf("10.0.%d.%d", i/250, i%250+1)
			setup.Objects = append(setup.Objects, asking(fmt.Sprint("owner-", i), ""), addressObject(b, fmt.Sprintf(
				"IPReservation ip-%s {address: %s, podUID: u, releasePolicy: OnPodDeletion, pod: {namespace: default, name: "+
					"owner-%d}}", strings.ReplaceAll(a, ".", "-"), a, i)))
		}
		c := startAddressed(b, setup)
		defer c.Stop()
		pass(minute)
		used := processorTime(b)
		for i := range b.N {
			c.DeletePod(b, fmt.Sprint("owner-", i))
			pass(2 * second)
		}
		b.ReportMetric(float64(used().Microseconds())/1000/float64(b.N), "cpu-ms/op")
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}
