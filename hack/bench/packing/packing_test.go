package packing

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/test/harness/assert"
	"berth.dev/berth/test/harness/require"
)

func TestFamiliesAreWhatTheyPromise(t *testing.T) {
	t.Parallel()
	all := slices.Concat(Families(), HeldOut())
	for _, f := range Hard() {
		f.name += ", 0% CPU-only"
		all = append(all, f)
		if f.later != nil {
			f.name, f.weights = "later: "+f.name, f.later
			all = append(all, f)
		}
	}
	if len(all) < 190 {
		t.Fatalf("only %d families", len(all))
	}
	names := map[string]bool{}
	for i := range all {
		f := &all[i]
		sum, cpuOnly := 0.0, 0.0
		for k, w := range f.weights {
			if sum += w; f.kinds[k].milli == 0 {
				cpuOnly += w
			}
			if f.kinds[k].request.CPUMilli <= 0 {
				t.Errorf("%s: a pod of %d mCPU", f.name, f.kinds[k].request.CPUMilli)
			}
		}
		if math.Abs(sum-1) > 1e-9 || !strings.Contains(f.name, "% CPU-only") || names[f.name] {
			t.Errorf("%s: weights add up to %v, or the name comes twice", f.name, sum)
		}
		names[f.name] = true
		if c := newCluster(f.shapes); c.gpuMilli < 390_000 || c.gpuMilli > 410_000 {
			t.Errorf("%s: %d milli-GPU", f.name, c.gpuMilli)
		}
	}
}

// TestNothingIsPlacedTwice binds and releases pods at random: what is used is what runs, and a machine is as it was
// when all have gone.
func TestNothingIsPlacedTwice(t *testing.T) {
	t.Parallel()
	all := Families()
	rapid.Check(t, func(t *rapid.T) {
		f := &all[rapid.IntRange(0, len(all)-1).Draw(t, "family")]
		c := newCluster(f.shapes)
		p := newOurs(gpu.DefaultWeights(), c, f.mix())
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1)) //nolint:gosec // a test
		rank := r.Perm(len(c.machines))
		var running []placement
		used := 0
		for range 60 {
			if len(running) > 0 && r.IntN(3) == 0 {
				i := r.IntN(len(running))
				used -= running[i].kind.milli
				c.release(running[i], p)
				running[i] = running[len(running)-1]
				running = running[:len(running)-1]
				continue
			}
			k := f.draw(r, 0)
			for _, placed := range c.place(p, k, rank) {
				running = append(running, placed)
				used += k.milli
			}
		}
		idle := 0
		for i := range c.machines {
			idle += c.machines[i].inv.FreeMilli()
		}
		if c.usedMilli != used || idle != c.gpuMilli-used {
			t.Fatalf("%d milli-GPU are used and %d idle, want %d of %d used", c.usedMilli, idle, used, c.gpuMilli)
		}
		for _, placed := range running {
			c.release(placed, p)
		}
		for i := range c.machines {
			if m := &c.machines[i]; m.inv.FreeCPUMilli != m.inv.CPUMilli || m.inv.FreeWhole() != len(m.inv.Devices) ||
				m.inv.InUse {
				t.Fatalf("machine %d is not empty again: %+v", i, m.inv)
			}
		}
	})
}

func TestPoliciesRankAsTheySay(t *testing.T) {
	t.Parallel()
	empty := machine{inv: &gpu.Inventory{Mode: gpu.ModeShared, Replicas: 1, Devices: gpu.NewDevices(4, 0),
		FreeCPUMilli: 64_000, CPUMilli: 64_000}}
	half := machine{inv: &gpu.Inventory{Mode: gpu.ModeShared, Replicas: 1, Devices: gpu.NewDevices(4, 0),
		FreeCPUMilli: 32_000, CPUMilli: 64_000}}
	half.inv.Take([]int{0, 1}, gpu.Share{Milli: gpu.WholeMilli})
	one, two := newKind(1000, 1, 1000), newKind(1000, 2, 1000)
	if !(bestFit(&half, &one) < bestFit(&empty, &one)) || !(mostAllocated(&half, &one) < mostAllocated(&empty, &one)) {
		t.Error("best-fit or most-allocated prefers the empty machine")
	}
	// One GPU more on the half-empty machine leaves one there that pods of two cannot use.
	f := newFGD([]kind{two}, []float64{1})
	if got := f.value(&half, 0, &one) - bestFit(&half, &one)*1e-3; got != 1000 {
		t.Errorf("fragmentation grows by %v, want 1000", got)
	}
	if got := f.value(&half, 0, &two) - bestFit(&half, &two)*1e-3; got != 0 {
		t.Errorf("fragmentation grows by %v with a pod that fits exactly", got)
	}
}

func TestSimulationsReachWhatIsPossible(t *testing.T) {
	t.Parallel()
	f, ok := newFamily("test", []shape{newShape("n", "A", 4, 48_000, 10)}, podSizes[2], 0)
	if !ok {
		t.Fatal("no family")
	}
	with := func(c *cluster) policy { return policies()["ours"](&f, c, 0) }
	if got := fill(&f, with, 1); got.Allocated < 97 || got.Nodes != 5 {
		t.Errorf("filled with single GPUs: %+v, want nearly all GPUs and 5 nodes at half", got)
	}
	got := churn(&f, with, 0.5, 1)
	if got.Allocated < 30 || got.Allocated > 70 || got.BigMissing != 0 {
		t.Errorf("a churn at half load: %+v", got)
	}
}

func TestWhatCannotBeMeasuredIsRefused(t *testing.T) {
	t.Parallel()
	traced := []Family{{name: "openb default", pods: []int{0}}}
	for name, tc := range map[string]struct {
		run  Run
		all  []Family
		want string
	}{
		"an unknown rule":      {Run{Policies: []string{"magic"}}, Families(), `"magic" is none of berth, best-fit`},
		"a load below nothing": {Run{Load: -1}, Families(), "--load: -1 is not allowed"},
		"a load of not a kind": {Run{Load: math.NaN()}, Families(), "--load: NaN is not allowed"},
		"a trace that churns":  {Run{Load: 0.9}, traced, "--load: the pods of a trace only come"},
		"no seed":              {Run{}, Families(), "--seeds: 0 is not allowed"},
		"no family":            {Run{Families: "cheese", Seeds: 1}, Families(), `--families: no family has "cheese"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := tc.run.Measure(t.Context(), io.Discard, tc.all)
			assert.Contains(t, fmt.Sprint(err), tc.want)
		})
	}
	if _, err := Openb("nowhere"); err == nil || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("a folder without a trace: error %v", err)
	}
	if _, err := Idle(t.Context(), "cheese"); err == nil || !strings.Contains(err.Error(), `"cheese"`) {
		t.Errorf("a family that is none: error %v", err)
	}
}

func TestATraceIsMeasured(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	write("openb_node_list_gpu_node.csv", "sn,cpu_milli,memory_mib,gpu,model\nn0,64000,1,4,T4\nn1,64000,1,4,T4\n")
	for _, variant := range variants {
		write("openb_pod_list_"+variant+".csv",
			"name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\np0,1000,1,1,500,\np1,1000,1,2,1000,T4|A10\np2,1000,1,0,0,\n")
	}
	all, err := Openb(folder)
	require.NoError(t, err)
	var out strings.Builder
	r := Run{Families: "openb default", Policies: []string{"best-fit", "fgd", "ours"}, Seeds: 2}
	results, err := r.Measure(t.Context(), &out, all)
	require.NoError(t, err)
	if len(results) != 3 || results[2].Policy != "ours" || results[2].Allocated < 70 {
		t.Errorf("results %+v", results)
	}
	assert.Contains(t, out.String(), "against the better of best-fit and fgd")
}
