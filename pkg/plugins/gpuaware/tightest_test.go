package gpuaware

import (
	"fmt"
	"math"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	fwk "k8s.io/kube-scheduler/framework"
	"pgregory.net/rapid"

	"berth.dev/berth/pkg/gpu"
)

// sharedFleet is a profile on nodes that share GPUs, whose state a test sets again and again.
type sharedFleet struct {
	*harness
	nodes   []*v1.Node
	running []*v1.Pod
	pods    int
}

func newSharedFleet(t *testing.T, sizes ...int) *sharedFleet {
	f := &sharedFleet{}
	var objects []v1.Node
	for i, gpus := range sizes {
		objects = append(objects, *sharedNode(fmt.Sprint("n", i), gpus))
	}
	f.harness = newHarness(t, alone(defaultArgs()))
	for i := range objects {
		f.nodes = append(f.nodes, &objects[i])
		f.Cache.AddNode(f.logger, &objects[i])
	}
	return f
}

// set lets one pod run on each GPU that is not entirely free. free is milli-GPU by node and GPU, cpuMilli what is free
// of each node's CPU.
func (f *sharedFleet) set(t *testing.T, free [][]int, cpuMilli []int64) {
	for _, p := range f.running {
		if err := f.Cache.RemovePod(f.logger, p); err != nil {
			t.Fatal(err)
		}
	}
	f.running = nil
	for n, node := range f.nodes {
		cpu := resource.NewMilliQuantity(node.Status.Allocatable.Cpu().MilliValue()-cpuMilli[n], resource.DecimalSI).String()
		other := f.next(strs{"cpu": cpu})
		other.Spec.NodeName = node.Name
		f.run(t, other)
		for device, milli := range free[n] {
			if held := gpu.WholeMilli - milli; held > 0 {
				f.run(t, assignedTo(f.next(strs{"cpu": "0"}), node.Name, device, held, 16384*held/gpu.WholeMilli))
			}
		}
	}
}

func (f *sharedFleet) next(requests strs) *v1.Pod {
	f.pods++
	return podObject(fmt.Sprint("running-", f.pods), requests, nil)
}

func (f *sharedFleet) run(t *testing.T, p *v1.Pod) {
	if err := f.Cache.AddPod(f.logger, p); err != nil {
		t.Fatal(err)
	}
	f.running = append(f.running, p)
}

// placed is where a share may go and what becomes of it there.
type placed struct {
	node string
	// left is what stays free of the tightest GPU that holds the share.
	left  int
	score int64
	// others is the waste in all terms but the sliver.
	others float64
}

// judge scores the nodes that have a GPU with so much free.
func (f *sharedFleet) judge(t *testing.T, pod *v1.Pod, free [][]int, milli int) []placed {
	var want, got []string
	left := map[string]int{}
	for n, node := range f.nodes {
		tightest := math.MaxInt
		for _, have := range free[n] {
			if have >= milli {
				tightest = min(tightest, have-milli)
			}
		}
		if tightest != math.MaxInt {
			left[node.Name] = tightest
			want = append(want, node.Name)
		}
	}
	if len(want) == 0 {
		return nil
	}
	state, scores, err := f.evaluate(t, f, pod)
	if err != nil {
		t.Fatal(err)
	}
	var all []placed
	for _, node := range f.nodes {
		for _, s := range scores {
			if s.Name == node.Name {
				got = append(got, s.Name)
				all = append(all, placed{s.Name, left[s.Name], s.TotalScore, f.others(t, state, pod, s.Name)})
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("nodes that hold %d milli-GPU, of %v (-want +got):\n%s", milli, free, diff)
	}
	return all
}

func (f *sharedFleet) others(t *testing.T, state fwk.CycleState, pod *v1.Pod, node string) float64 {
	info, err := f.Snapshot.NodeInfos().Get(node)
	if err != nil {
		t.Fatal(err)
	}
	cost, err := f.plugin.Terms(f.ctx, state, pod, info)
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, term := range cost.Terms {
		if term.Name != "sliver" {
			sum += term.Amount
		}
	}
	return sum
}

// TestTheTightestGPUOfAllNodesWins sets random states. A share goes to the GPU, on whichever node, that it fills most
// exactly; to another only where the other terms are less there by more than the sliver costs.
func TestTheTightestGPUOfAllNodesWins(t *testing.T) {
	t.Parallel()
	const stepMilli, steps = 50, gpu.WholeMilli / 50
	for name, arrivals := range map[string]int{"nothing is known of the work": 0, "the mix is known": 100} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newSharedFleet(t, 1, 2, 4, 4, 8, 8)
			for i := range arrivals {
				asked := []strs{{"gpu-fraction": "0.3"}, {"gpu-fraction": "0.5"}, {"gpu-fraction": "0.75"}, nil}[i%4]
				requests := strs{}
				if asked == nil {
					requests["nvidia.com/gpu"] = fmt.Sprint(1 + i%3)
				}
				f.plugin.cluster.arrived(podObject(fmt.Sprint("arrived-", i), requests, asked))
			}
			exact := 0
			// Cases that failed once.
			for name, c := range map[string]struct {
				milli int
				free  [][]int
				cores []int64
			}{
				"a node with more cores left has the GPU that the share fills": {
					50, [][]int{{0}, {0, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 0, 0, 0, 0, 100}, {0, 0, 0, 0, 0, 0, 0, 50}},
					[]int64{1, 1, 1, 1, 1, 2},
				},
			} {
				if !f.tightestWins(t, func(format string, args ...any) { t.Errorf(name+": "+format, args...) }, c.milli, c.free,
					c.cores) {
					t.Errorf("%s: another wins", name)
				}
			}
			rapid.Check(t, func(r *rapid.T) {
				milli := stepMilli * rapid.IntRange(1, steps-1).Draw(r, "share")
				free, cores := make([][]int, len(f.nodes)), make([]int64, len(f.nodes))
				for n, node := range f.nodes {
					gpus := node.Status.Allocatable["nvidia.com/gpu"]
					for range gpus.Value() {
						free[n] = append(free[n], stepMilli*rapid.IntRange(0, steps).Draw(r, "free"))
					}
					cores[n] = rapid.Int64Range(1, 64).Draw(r, "cores")
				}
				if f.tightestWins(t, r.Fatalf, milli, free, cores) {
					exact++
				}
			})
			if exact == 0 {
				t.Error("the tightest GPU never won")
			}
		})
	}
}

// tightestWins places a share on nodes with so much free. It fails where the share goes elsewhere than to the tightest
// GPU without a gain, and reports whether it goes there, with several nodes to choose from.
func (f *sharedFleet) tightestWins(t *testing.T, fail func(format string, args ...any), milli int, free [][]int,
	cores []int64) bool {
	cpuMilli := make([]int64, len(cores))
	for n := range cores {
		cpuMilli[n] = 1000 * cores[n]
	}
	f.set(t, free, cpuMilli)
	f.pods++
	all := f.judge(t, podObject(fmt.Sprint("new-", f.pods), nil, strs{"alibabacloud.com/gpu-milli": strconv.Itoa(milli)}),
		free, milli)
	sliver := gpu.DefaultWeights().Sliver / gpu.WholeMilli
	tightest := true
	for _, won := range all {
		for _, lost := range all {
			if won.score < fwk.MaxScore || lost.left >= won.left {
				continue
			}
			tightest = false
			if gain := lost.others - won.others; gain < sliver*float64(won.left-lost.left)-1./scoreUnit {
				fail("a share of %d wins on %s and leaves %d, on %s it would leave %d, and the other terms gain only %f",
					milli, won.node, won.left, lost.node, lost.left, gain)
			}
		}
	}
	return tightest && len(all) > 1
}
