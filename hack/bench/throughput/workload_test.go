package main

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/sandbox"
)

// need is what a pod requests, in units in which sums are exact.
type need struct {
	cpuMilli, memoryMiB, gpus, milliGPU int64
}

func needOf(t *testing.T, pod *v1.Pod) need {
	t.Helper()
	requests := pod.Spec.Containers[0].Resources.Requests
	gpus := requests[gpuResource]
	n := need{requests.Cpu().MilliValue(), requests.Memory().Value() >> 20, gpus.Value(), 0}
	if share, ok := pod.Annotations[openbMilli]; ok {
		if _, err := fmt.Sscan(share, &n.milliGPU); err != nil {
			t.Fatalf("share %q of pod %s: %v", share, pod.Name, err)
		}
	}
	return n
}

// TestEveryPodFitsWhereverTheOthersAre checks what makes runs comparable: whatever nodes a scheduler chooses, no pod is
// left without one.
func TestEveryPodFitsWhereverTheOthersAre(t *testing.T) {
	t.Parallel()
	for i := range workloads {
		for _, nodes := range []int{minNodes, 200, 500, 1000, 5000} {
			w := workloads[i]
			t.Run(fmt.Sprintf("%s on %d nodes", w.name, nodes), func(t *testing.T) {
				t.Parallel()
				checkFits(t, w, nodes)
			})
		}
	}
}

func checkFits(t *testing.T, w *workload, nodes int) {
	var whole, shares []need
	for i := range mostPods(nodes) {
		if n := needOf(t, w.named(i, "x")); n.milliGPU > 0 {
			shares = append(shares, n)
		} else {
			whole = append(whole, n)
		}
	}
	leastCPU, leastMemory := int64(math.MaxInt64), int64(math.MaxInt64)
	for _, h := range hardwareKinds {
		leastCPU = min(leastCPU, int64(h.cores)*1000)
		leastMemory = min(leastMemory, int64(h.memoryGiB)<<10)
	}
	// Sums, and the most CPU and memory that a pod has for each of its GPUs.
	var withoutGPU, withGPU, mostPerGPU need
	gpuPods := int64(0)
	for _, n := range whole {
		if n.gpus == 0 {
			withoutGPU.cpuMilli += n.cpuMilli
			withoutGPU.memoryMiB += n.memoryMiB
			continue
		}
		gpuPods++
		withGPU.gpus += n.gpus
		mostPerGPU.cpuMilli = max(mostPerGPU.cpuMilli, n.cpuMilli/n.gpus)
		mostPerGPU.memoryMiB = max(mostPerGPU.memoryMiB, n.memoryMiB/n.gpus)
	}
	for _, n := range whole {
		// A node lacks GPUs, or else its GPU pods leave this much for pods without GPUs, which have to take it all.
		othersGPUs := gpusPerNode - n.gpus
		cpu := leastCPU - n.cpuMilli - othersGPUs*mostPerGPU.cpuMilli
		memory := leastMemory - n.memoryMiB - othersGPUs*mostPerGPU.memoryMiB
		if cpu <= 0 || memory <= 0 {
			t.Fatalf("pod %+v may not fit beside pods on the other GPUs", n)
		}
		blocked := withoutGPU.cpuMilli/cpu + withoutGPU.memoryMiB/memory + (int64(len(whole))-gpuPods)/(110-gpusPerNode)
		if n.gpus > 0 {
			blocked += min(gpuPods-1, (withGPU.gpus-n.gpus)/(othersGPUs+1))
		}
		if blocked >= int64(wholeNodes(nodes)) {
			t.Fatalf("pod %+v: the others can block %d of %d nodes", n, blocked, wholeNodes(nodes))
		}
	}
	total := need{}
	for _, n := range shares {
		total.cpuMilli += n.cpuMilli
		total.memoryMiB += n.memoryMiB
		total.milliGPU += n.milliGPU
	}
	for _, n := range shares {
		blocked := total.milliGPU/(gpusPerNode*(1000-n.milliGPU+1)) +
			total.cpuMilli/(int64(sharedHardware.cores)*1000-n.cpuMilli) +
			total.memoryMiB/(int64(sharedHardware.memoryGiB)<<10-n.memoryMiB) + int64(len(shares))/110
		if blocked >= int64(sharedNodes(nodes)) {
			t.Fatalf("share %+v: the others can block %d of %d shared nodes", n, blocked, sharedNodes(nodes))
		}
	}
}

func TestDistinctPodsDiffer(t *testing.T) {
	t.Parallel()
	amounts, labels := map[need]bool{}, map[string]bool{}
	const pods = 80_000
	for i := range pods {
		pod := distinct(i)
		amounts[needOf(t, pod)], labels[pod.Labels["app"]] = true, true
	}
	if len(amounts) != pods || len(labels) != pods {
		t.Errorf("%d pods have %d different requests and %d different labels", pods, len(amounts), len(labels))
	}
}

func TestIdenticalPodsAreAlike(t *testing.T) {
	t.Parallel()
	if diff := cmp.Diff(identical(0), identical(7)); diff != "" {
		t.Errorf("two pods differ (-first +other):\n%s", diff)
	}
}

func TestMixComesInRounds(t *testing.T) {
	t.Parallel()
	var first, second []string
	for i := range 50 {
		first = append(first, mixed(i).Labels["app"])
		second = append(second, mixed(50 + i).Labels["app"])
	}
	if slices.Equal(first, second) {
		t.Error("two rounds have the same order")
	}
	count := map[string]int{}
	for _, app := range slices.Concat(first, second) {
		count[app]++
	}
	if len(count) != 50 || slices.ContainsFunc(slices.Collect(maps.Values(count)), func(n int) bool { return n != 2 }) {
		t.Errorf("in two rounds each of 50 kinds should come twice; got %v", count)
	}
	gpus := map[int64]int{}
	shares := 0
	for i := range 50 {
		n := needOf(t, mixed(i))
		gpus[n.gpus]++
		if n.milliGPU > 0 {
			shares++
		}
	}
	if diff := cmp.Diff(map[int64]int{0: 30, 1: 10, 2: 5, 4: 3, 8: 2}, gpus); diff != "" || shares != 10 {
		t.Errorf("%d shares, want 10; kinds by whole GPUs (-want +got):\n%s", shares, diff)
	}
}

func TestNamesSortAsNumbers(t *testing.T) {
	t.Parallel()
	var names []string
	for _, i := range []int{0, 9, 10, 99, 1000, 99999} {
		pod := workloads[0].named(i, "some-scheduler")
		names = append(names, pod.Name)
		if pod.Spec.SchedulerName != "some-scheduler" {
			t.Errorf("pod %s is for scheduler %q", pod.Name, pod.Spec.SchedulerName)
		}
	}
	if !slices.IsSorted(names) {
		t.Errorf("names %v are not sorted", names)
	}
}

func TestFleet(t *testing.T) {
	t.Parallel()
	for _, nodes := range []int{minNodes, 77, 500, 10000} {
		count, shared := 0, 0
		prices, products := map[string]bool{}, map[string]bool{}
		for _, s := range fleet(nodes) {
			count += s.Count
			prices[s.Annotations["berth.dev/price-per-hour"]] = true
			products[s.Labels["nvidia.com/gpu.product"]] = true
			if s.Labels["berth.dev/gpu-mode"] == "shared" {
				shared += s.Count
			}
			if q := s.Allocatable[gpuResource]; q.Value() != gpusPerNode {
				t.Errorf("a node of shape %s has %d GPUs", s.Name, q.Value())
			}
		}
		if count != nodes || shared != sharedNodes(nodes) {
			t.Errorf("a cluster of %d has %d nodes, %d of them shared; want %d shared", nodes, count, shared, sharedNodes(nodes))
		}
		if len(prices) != 6 || len(products) != 6 {
			t.Errorf("a cluster of %d nodes has %d prices and %d products, want 6 of each", nodes, len(prices), len(products))
		}
	}
}

func TestFleetFileIsRead(t *testing.T) {
	t.Parallel()
	file, err := fleetFile(minNodes)
	if err != nil {
		t.Fatal(err)
	}
	nodes, err := sandbox.LoadNodes(writeFile(t, "nodes.yaml", file))
	if err != nil {
		t.Fatal(err)
	}
	if len(nodes) != minNodes {
		t.Errorf("the file has %d nodes, want %d", len(nodes), minNodes)
	}
}
