package price

import (
	"testing"

	"pgregory.net/rapid"
)

// reference rates of the tests: what a core, a GiB and a small GPU go for.
var reference = Rates{Core: 30_000, MemoryGiB: 4_000, GPU: 350_000}

func TestNewSplit(t *testing.T) {
	t.Parallel()
	gpuNode := Capacity{MilliCPU: 4000, MemoryMiB: 16 * 1024, MilliGPU: 1000}
	cpuNode := Capacity{MilliCPU: 4000, MemoryMiB: 16 * 1024}
	for name, tc := range map[string]struct {
		price       MicroDollars
		allocatable Capacity
		gpu, cpu    MicroDollars
	}{
		"GPUs take what the host's rates leave": {price: 600_000, allocatable: gpuNode, gpu: 416_000,
			cpu: 120_000},
		"an expensive GPU takes the whole difference": {price: 4 * Dollar, allocatable: gpuNode, gpu: 3_816_000,
			cpu: 120_000},
		"on a discounted node all rates shrink alike": {price: 267_000, allocatable: gpuNode, gpu: 175_000,
			cpu: 60_000},
		"without GPUs the price divides as the rates do":     {price: 368_000, allocatable: cpuNode, gpu: 0, cpu: 240_000},
		"a node that costs nothing has parts that cost none": {price: 0, allocatable: gpuNode, gpu: 0, cpu: 0},
		"a node with GPUs and nothing else is all GPU": {price: 3 * Dollar, allocatable: Capacity{MilliGPU: 8000},
			gpu: 3 * Dollar, cpu: 0},
		"a node without anything that is priced loses nothing": {price: 3 * Dollar, allocatable: Capacity{}, gpu: 0, cpu: 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := NewSplit(tc.price, tc.allocatable, reference)
			if s.gpu != tc.gpu || s.cpu != tc.cpu {
				t.Errorf("GPUs cost %s and cores %s, want %s and %s", s.gpu, s.cpu, tc.gpu, tc.cpu)
			}
			if sum := s.gpu + s.cpu + s.memory; sum != tc.price {
				t.Errorf("parts add up to %s, want %s", sum, tc.price)
			}
			if all := s.Share(tc.allocatable); all != tc.price {
				t.Errorf("the whole node costs %s, want %s", all, tc.price)
			}
		})
	}
}

func TestSharesOfPodsThatFillANodeAddUpToItsPrice(t *testing.T) {
	t.Parallel()
	amount := rapid.Int64Range(0, 1<<32)
	rapid.Check(t, func(t *rapid.T) {
		total := Capacity{MilliCPU: amount.Draw(t, "cpu"), MemoryMiB: amount.Draw(t, "memory"),
			MilliGPU: amount.Draw(t, "gpu")}
		node := NewSplit(MicroDollars(rapid.Int64Range(0, int64(MaxPrice/1000)).Draw(t, "price")), total, reference)
		left, paid, pods := total, MicroDollars(0), 0
		for ; pods < 5; pods++ {
			pod := Capacity{
				MilliCPU:  rapid.Int64Range(0, left.MilliCPU).Draw(t, "pod cpu"),
				MemoryMiB: rapid.Int64Range(0, left.MemoryMiB).Draw(t, "pod memory"),
				MilliGPU:  rapid.Int64Range(0, left.MilliGPU).Draw(t, "pod gpu"),
			}
			left.MilliCPU, left.MemoryMiB, left.MilliGPU = left.MilliCPU-pod.MilliCPU, left.MemoryMiB-pod.MemoryMiB,
				left.MilliGPU-pod.MilliGPU
			if total.MilliCPU > 0 && total.MemoryMiB > 0 && total.MilliGPU > 0 {
				paid += node.Share(pod)
			}
		}
		if total.MilliCPU > 0 && total.MemoryMiB > 0 && total.MilliGPU > 0 {
			paid += node.Share(left)
			// Each pod's three parts are rounded down.
			if short := node.Price - paid; short < 0 || short > MicroDollars(3*(pods+1)) {
				t.Fatalf("pods that fill the node pay %d of %d", paid, node.Price)
			}
		}
		if more := node.Share(Capacity{MilliCPU: 1 << 50, MemoryMiB: 1 << 50, MilliGPU: 1 << 50}); more > node.Price {
			t.Fatalf("a pod that asks for more than the node pays %d of %d", more, node.Price)
		}
	})
}

func TestCost(t *testing.T) {
	t.Parallel()
	// Eight GPUs for 24 dollars; the host's 96 cores and 1 TiB are worth 6.976 of them, a GPU 2.128.
	node := NewSplit(24*Dollar, Capacity{MilliCPU: 96_000, MemoryMiB: 1 << 20, MilliGPU: 8000}, reference)
	pod := Capacity{MilliCPU: 12_000, MemoryMiB: 1 << 17, MilliGPU: 1000}
	const full = 1000
	for name, tc := range map[string]struct {
		theta int64
		at    Placement
		want  MicroDollars
	}{
		"a running node charges the share": {theta: full, at: Placement{}, want: 3 * Dollar},
		"a node kept alive charges its whole price": {theta: full, at: Placement{KeepsAlive: true},
			want: 24 * Dollar},
		"stranded GPUs are charged to who strands them": {theta: full, at: Placement{StrandedMilliGPU: 2000},
			want: 3*Dollar + 4_256_000},
		"the expected loss is added": {theta: full,
			at: Placement{Risk: Interruption{PerThousandHours: 20, LostMinutes: 30}, Members: 2}, want: 3_060_000},
		"a pod that is in no gang loses its own work": {theta: full,
			at: Placement{Risk: Interruption{PerThousandHours: 20, LostMinutes: 30}}, want: 3_030_000},
		"a node kept alive for the pods that fill it charges one": {theta: full,
			at: Placement{KeepsAlive: true, ExpectedMilliPods: 8000}, want: 24 * Dollar},
		"a node kept alive for twice as many charges two": {theta: full,
			at: Placement{KeepsAlive: true, ExpectedMilliPods: 16_000}, want: 48 * Dollar},
		"expected pods are none of a running node's business": {theta: full, at: Placement{ExpectedMilliPods: 16_000},
			want: 3 * Dollar},
		"with theta at a half a running node charges half": {theta: 500, at: Placement{},
			want: 1_500_000},
		"with theta at a half a node kept alive charges all": {theta: 500,
			at: Placement{KeepsAlive: true}, want: 24 * Dollar},
		"with theta at nothing room on a running node is free": {theta: 0, at: Placement{}, want: 0},
		"with theta at nothing stranded GPUs still cost": {theta: 0, at: Placement{StrandedMilliGPU: 1000},
			want: 2_128_000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.at.Node, tc.at.Request = node, pod
			if got := tc.at.Cost(tc.theta).Sum(); got != tc.want {
				t.Fatalf("cost is %s, want %s", got, tc.want)
			}
		})
	}
}

func TestStranded(t *testing.T) {
	t.Parallel()
	need := HostNeed{MilliCPU: 2000, MemoryMiB: 4096}
	free := Capacity{MilliCPU: 32_000, MemoryMiB: 1 << 18, MilliGPU: 8000}
	for name, tc := range map[string]struct {
		need          HostNeed
		free, request Capacity
		want          int64
	}{
		"a pod that leaves enough for every GPU strands none": {need: need, free: free,
			request: Capacity{MilliCPU: 16_000}, want: 0},
		"a pod without GPU that takes the last cores strands all": {need: need, free: free,
			request: Capacity{MilliCPU: 32_000}, want: 8000},
		"one that takes most of the memory strands what it leaves": {need: need, free: free,
			request: Capacity{MemoryMiB: 1<<18 - 6*4096}, want: 2000},
		"GPUs that the pod takes itself are not stranded": {need: need, free: free,
			request: Capacity{MilliCPU: 32_000, MilliGPU: 8000}, want: 0},
		"GPUs that were of no use before are not charged again": {need: need,
			free: Capacity{MilliCPU: 1000, MemoryMiB: 1 << 18, MilliGPU: 8000}, request: Capacity{MilliCPU: 1000}, want: 500},
		"a pod that takes the GPUs nobody else could use saves some": {need: need,
			free: Capacity{MilliCPU: 1000, MemoryMiB: 1 << 18, MilliGPU: 8000}, request: Capacity{MilliGPU: 8000}, want: 0},
		"without a need nothing is stranded": {need: HostNeed{}, free: free,
			request: Capacity{MilliCPU: 32_000}, want: 0},
		"a node without GPUs has none to strand": {need: need, free: Capacity{MilliCPU: 8000},
			request: Capacity{MilliCPU: 8000}, want: 0},
		"a pod that asks for more than is free strands what is free": {need: need, free: free,
			request: Capacity{MilliCPU: 64_000}, want: 8000},
	} {
		if got := tc.need.Stranded(tc.free, tc.request); got != tc.want {
			t.Errorf("%s: got %d, want %d", name, got, tc.want)
		}
	}
}

// The worked example: a pod that asks for an eighth of a node may join a running A100 node at 24 dollars, a running
// H100 node at 40.20 or start an empty H100 node.
func TestScoreOfTheWorkedExample(t *testing.T) {
	t.Parallel()
	capacity := Capacity{MilliCPU: 96_000, MemoryMiB: 1 << 20, MilliGPU: 8000}
	pod := Capacity{MilliCPU: 12_000, MemoryMiB: 1 << 17, MilliGPU: 1000}
	a100, h100 := NewSplit(24*Dollar, capacity, reference), NewSplit(40_200_000, capacity, reference)
	cost := func(at Placement) MicroDollars { return at.Cost(1000).Sum() }
	costs := map[string]MicroDollars{
		"running A100": cost(Placement{Node: a100, Request: pod}),
		"running H100": cost(Placement{Node: h100, Request: pod}),
		"empty H100":   cost(Placement{Node: h100, Request: pod, KeepsAlive: true, ExpectedMilliPods: 1200}),
	}
	cheapest, slack := costs["running A100"], Slack(a100.Share(pod))
	for node, want := range map[string]int64{"running A100": 100, "running H100": 62, "empty H100": 8} {
		if got := Score(costs[node], cheapest, slack); got != want {
			t.Errorf("%s at %s scores %d, want %d", node, costs[node], got, want)
		}
	}
}

func TestScoreIsMonotonicAndInRange(t *testing.T) {
	t.Parallel()
	const most = int64(10_000 * MaxPrice)
	money := rapid.Int64Range(0, most)
	rapid.Check(t, func(t *rapid.T) {
		cheapest := MicroDollars(money.Draw(t, "cheapest"))
		a := MicroDollars(rapid.Int64Range(int64(cheapest), most).Draw(t, "a"))
		b := MicroDollars(rapid.Int64Range(int64(a), most).Draw(t, "b"))
		slack := Slack(MicroDollars(money.Draw(t, "share")))
		scoreA, scoreB := Score(a, cheapest, slack), Score(b, cheapest, slack)
		if scoreA < scoreB || scoreA > 100 || scoreB < 0 || scoreA == 100 && a > cheapest {
			t.Fatalf("costs %d and %d beside %d score %d and %d", a, b, cheapest, scoreA, scoreB)
		}
	})
}
