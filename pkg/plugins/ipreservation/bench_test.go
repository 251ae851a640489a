package ipreservation

import (
	"fmt"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/pkg/address"
	"berth.dev/berth/pkg/apis/config"
)

// BenchmarkPhases is what the plugin alone adds to a scheduling cycle that looks at all of 5,000 nodes in 50 racks, from
// PreFilter to Reserve and its end, by the number of reservations that exist: for pods that get no address, for those that ask
// for one of a pool, of which each rack has a subnet, and for those that a reservation is kept for.
//
//	go test ./pkg/plugins/ipreservation -run xxx -bench Phases
func BenchmarkPhases(b *testing.B) {
	for _, reservations := range []int{0, 100, 10_000} {
		for _, pod := range []string{"indifferent", "asks", "owner"} {
			if reservations > 0 || pod != "owner" {
				b.Run(fmt.Sprintf("reservations=%d/pod=%s", reservations, pod), func(b *testing.B) { benchmarkPhases(b, reservations, pod) })
			}
		}
	}
}

const (
	benchmarkNodes = 5000
	benchmarkRacks = 50
	benchmarkPods  = 1000
)

func benchmarkPhases(b *testing.B, reservations int, which string) {
	var subnets []string
	for rack := range benchmarkRacks {
		subnets = append(subnets, fmt.Sprintf("{domain: {key: rack, value: r%d}, ranges: [10.%d.0.0/16]}", rack, rack))
	}
	c := newCluster(b, nil, &config.IPReservationArgs{}, "IPPool racks {subnets: ["+strings.Join(subnets, ", ")+"]}")
	c.plugin.book.begin()
	for i := range reservations {
		rack := i % benchmarkRacks
		a := netip.AddrFrom4([4]byte{10, byte(rack), byte(i / benchmarkRacks / 256), byte(i/benchmarkRacks%256 + 1)})
		c.plugin.book.ledger.Observe(address.Holding{Address: a, Object: a.String(), Pool: "racks", Domain: address.Domain{Key: "rack", Value: fmt.Sprint("r", rack)},
			Identity: identity(fmt.Sprint("owner-", i))})
	}
	infos := make([]fwk.NodeInfo, benchmarkNodes)
	for i := range infos {
		info := framework.NewNodeInfo()
		info.SetNode(node(fmt.Sprintf("n%04d", i), fmt.Sprint("r", i%benchmarkRacks)))
		infos[i] = info
	}
	pods := make([]*v1.Pod, benchmarkPods)
	for i := range pods {
		switch which {
		case "asks":
			pods[i] = asking(fmt.Sprint("pod-", i), "racks")
		case "owner":
			pods[i] = asking(fmt.Sprint("owner-", i%reservations), "")
		default:
			pods[i] = asking(fmt.Sprint("pod-", i), "")
		}
	}
	b.ReportAllocs()
	before := processorTime(b)
	for i := 0; b.Loop(); i++ {
		c.cycle(b, infos, pods[i%len(pods)])
	}
	b.ReportMetric(float64((processorTime(b)-before).Nanoseconds())/1000/float64(b.N), "cpu-µs/op")
}

// processorTime is what this process has used: unlike the time on a clock it does not depend on who else uses the machine.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// cycle runs the plugin's phases for one pod. What is promised to it is given back.
func (c *cluster) cycle(b *testing.B, infos []fwk.NodeInfo, pod *v1.Pod) {
	b.Helper()
	state, ctx := framework.NewCycleState(), b.Context()
	_, status := c.plugin.PreFilter(ctx, state, pod, infos)
	switch {
	case status.IsSkip():
		c.plugin.Reserve(ctx, state, pod, onlyNode)
		return
	case !status.IsSuccess():
		b.Fatal(status)
	}
	var last fwk.NodeInfo
	for _, info := range infos {
		if c.plugin.Filter(ctx, state, pod, info).IsSuccess() {
			last = info
		}
	}
	if last == nil {
		b.Fatal("no node fits")
	}
	if _, reason := c.plugin.book.ledger.Reserve(mustAsk(pod), last.Node().Labels); reason != "" {
		b.Fatal(reason)
	}
	c.plugin.book.ledger.Drop(string(pod.UID))
}

// BenchmarkRelease is one look at 10,000 reservations for those that may be released, which pods that end bring about at most
// once a second.
//
//	go test ./pkg/plugins/ipreservation -run xxx -bench Release
func BenchmarkRelease(b *testing.B) {
	const reservations = 10_000
	api := newAPI()
	for i := range reservations {
		a := fmt.Sprintf("10.0.%d.%d", i/250, i%250+1)
		for _, o := range []runtime.Object{podObject(asking(fmt.Sprint("owner-", i), "")), object(b, fmt.Sprintf(
			"IPReservation ip-%s {address: %s, podUID: u, releasePolicy: OnPodDeletion, pod: {namespace: default, name: owner-%d}}", strings.ReplaceAll(a, ".", "-"), a, i))} {
			if err := api.Create(o); err != nil {
				b.Fatal(err)
			}
		}
	}
	c := newCluster(b, api, &config.IPReservationArgs{})
	b.ReportAllocs()
	for b.Loop() {
		if next := c.plugin.book.releaseRound(b.Context()); next != 0 {
			b.Fatalf("a reservation that is in use is to be looked at again in %s", next)
		}
	}
}
